"""Dagster for anyone's project: a resource, partitions that are time chunks, and assets that replace them."""

from lakehouse.dagster.assets import chunk_asset, replace_chunks, replace_together
from lakehouse.dagster.metadata import add_partition_rows, commit_metadata
from lakehouse.dagster.partitions import chunk_partitions, key_range_interval, run_interval
from lakehouse.dagster.resource import LakehouseResource

__all__ = [
    "LakehouseResource",
    "add_partition_rows",
    "chunk_asset",
    "chunk_partitions",
    "commit_metadata",
    "key_range_interval",
    "replace_chunks",
    "replace_together",
    "run_interval",
]
