"""Dagster for anyone's project: a resource, partitions that are time chunks, and metadata of what was committed."""

from lakehouse.dagster.partitions import chunk_partitions, key_range_interval, run_interval

__all__ = ["chunk_partitions", "key_range_interval", "run_interval"]
