"""What a materialization tells of the commit behind it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.core.commit import Commit
from lakehouse.core.interval import Interval

if TYPE_CHECKING:
    from lakehouse.table import Table


def commit_metadata(
    table: "Table", commit: Commit, interval: Interval | None = None, *, duration_seconds: float | None = None
) -> Mapping[str, Any]:
    """Version, and the rows, segments, bytes and tombstones of one table in an interval as of that version.

    Counts are those of live segments that touch the interval, hidden rows included: right after a replace of whole
    chunks, exactly what it wrote. Read from the catalog alone.
    """
    segments = table.segments(as_of=commit.version, interval=interval)
    tombstones = table.tombstones(as_of=commit.version, interval=interval)
    metadata: dict[str, Any] = {
        "dagster/table_name": table.name,
        "version": commit.version,
        "operation": commit.operation,
        "rows": sum(segment.rows for segment in segments),
        "segments": len(segments),
        "bytes": sum(segment.bytes for segment in segments),
        "tombstones": len(tombstones),
        "interval": "all time" if interval is None else str(interval),
    }
    if duration_seconds is not None:
        metadata["duration_seconds"] = round(duration_seconds, 3)
    return metadata


def add_partition_rows(context: dg.AssetExecutionContext, table: "Table", commit: Commit) -> None:
    """Tell Dagster the rows of each partition of the run, one by one (``dagster/partition_row_count``).

    Metadata of a result is copied to every partition of a range, so a count there would be the range's.
    """
    partitions = context.assets_def.partitions_def
    if not isinstance(partitions, dg.TimeWindowPartitionsDefinition):
        return
    rows = {chunk.start: chunk.rows for chunk in table.chunks(as_of=commit.version)}
    for key in context.partition_keys:
        start = partitions.time_window_for_partition_key(key).start
        context.add_asset_metadata({"dagster/partition_row_count": rows.get(start, 0)}, partition_key=key)
