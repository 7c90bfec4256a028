"""Dagster for any project: resources, an IO manager, time chunks as partitions, checks and sensors."""

from lakehouse.extras import named

with named():
    from lakehouse.dagster import checks
    from lakehouse.dagster.assets import (
        chunk_asset,
        replace_chunks,
        replace_each_chunk,
        replace_together,
        report_commit,
    )
    from lakehouse.dagster.automation import observe_table, on_new_version
    from lakehouse.dagster.cells import Cell, run_cells
    from lakehouse.dagster.checks import build_checks
    from lakehouse.dagster.io import LakehouseIOManager
    from lakehouse.dagster.maintenance import build_compaction_sensor, build_maintenance_jobs
    from lakehouse.dagster.metadata import add_partition_rows, commit_metadata, data_version
    from lakehouse.dagster.options import table_metadata
    from lakehouse.dagster.partitions import chunk_partitions, key_range_interval, run_interval
    from lakehouse.dagster.progress import logging_progress
    from lakehouse.dagster.resource import LakehouseResource
    from lakehouse.dagster.serving import ServingResource
    from lakehouse.dagster.spark import SparkResource
    from lakehouse.dagster.streams import (
        build_stalled_sensor,
        materialize_topic,
        observe_topic,
        topic_asset,
        topic_metadata,
    )

__all__ = [
    "Cell",
    "LakehouseIOManager",
    "LakehouseResource",
    "ServingResource",
    "SparkResource",
    "add_partition_rows",
    "build_checks",
    "build_compaction_sensor",
    "build_maintenance_jobs",
    "build_stalled_sensor",
    "checks",
    "chunk_asset",
    "chunk_partitions",
    "commit_metadata",
    "data_version",
    "key_range_interval",
    "logging_progress",
    "materialize_topic",
    "observe_table",
    "observe_topic",
    "on_new_version",
    "replace_chunks",
    "replace_each_chunk",
    "replace_together",
    "report_commit",
    "run_cells",
    "run_interval",
    "table_metadata",
    "topic_asset",
    "topic_metadata",
]
