"""Metadata of a materialization: the commit behind it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import dagster as dg
import pyarrow as pa

from lakehouse.core.column import is_uuid_column
from lakehouse.core.commit import Commit
from lakehouse.core.interval import Interval
from lakehouse.core.segments import Segments
from lakehouse.dagster.picture import timeline_picture
from lakehouse.dagster.resource import console_address

if TYPE_CHECKING:
    from lakehouse.table.table import Table

_TYPE_NAMES = {
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.int16(): "smallint",
    pa.int8(): "tinyint",
    pa.float32(): "float",
    pa.date32(): "date",
    pa.bool_(): "boolean",
}
_LOOK_BACK = 50
"""How many versions of a table are searched for what a commit did to it."""


def commit_metadata(
    table: "Table",
    commit: Commit,
    interval: Interval | None = None,
    *,
    duration_seconds: float | None = None,
    console_url: str | None = None,
) -> Mapping[str, Any]:
    """What a commit did to a table, and what lies in an interval as of its version.

    ``rows_in`` and ``rows_out`` are of the commit: rows of segments that it added, and those that readers lost by it
    (``12 stored`` or ``?`` if they were not counted). ``rows``, ``segments``, ``bytes``, ``tombstones``, bounds and
    picture are of the interval: of live segments that touch it. ``rows`` counts visible rows; if more than a million
    would have to be read for that, ``rows_stored`` replaces it. The link opens the console at the version.
    """
    version = commit.version
    segments = table.segments(as_of=version, interval=interval)
    tombstones = table.tombstones(as_of=version, interval=interval)
    own = _of_table(table, commit)
    rows = table.count(interval=interval, as_of=version)
    counted = (
        {"rows_stored": sum(segment.rows for segment in segments)}
        if rows is None
        else {"dagster/row_count": rows, "rows": rows}
    )
    metadata: dict[str, Any] = {
        "dagster/table_name": table.name,
        "dagster/column_schema": column_schema(table),
        "version": version,
        "operation": own.operation,
        "rows_in": own.rows_added,
        "rows_out": own.rows_deleted if own.is_exact else own.rows_lost,
        **counted,
        "segments": len(segments),
        "bytes": sum(segment.bytes for segment in segments),
        "tombstones": len(tombstones),
        "interval": "all time" if interval is None or interval == Interval(None, None) else str(interval),
        "console": dg.MetadataValue.url(
            f"{console_address(console_url)}/timeline?table={table.name}&version={version}"
        ),
        "timeline": dg.MetadataValue.md(timeline_picture(table, version, interval)),
    }
    if segments:
        metadata["columns"] = column_bounds(table, segments)
    if duration_seconds is not None:
        metadata["duration_seconds"] = round(duration_seconds, 3)
    return metadata


def column_schema(table: "Table") -> dg.TableSchema:
    """The table's columns, with their comments, as Dagster shows and compares them between materializations."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                field.name,
                "uuid" if is_uuid_column(field) else _type_name(field.type),
                constraints=dg.TableColumnConstraints(
                    nullable=field.nullable, unique=table.primary_key == (field.name,)
                ),
                tags=_roles(table, field.name),
                description=table.spec.history(field).comment or None,
            )
            for field in table.schema
        ]
    )


def column_bounds(table: "Table", segments: Any) -> dg.TableMetadataValue:
    """Minimum, maximum and null count by column, as far as footers have them."""
    records = []
    for name in table.schema.names:
        least = _known(segments, lambda one: one.min.get(name), min)  # noqa: B023 - used at once
        greatest = _known(segments, lambda one: one.max.get(name), max)  # noqa: B023
        nulls = _known(segments, lambda one: one.nulls.get(name), lambda *found: sum(found[0]))  # noqa: B023
        records.append(
            dg.TableRecord({"column": name, "min": _text(least), "max": _text(greatest), "nulls": _text(nulls)})
        )
    return dg.MetadataValue.table(records, dg.TableSchema(columns=[dg.TableColumn(one) for one in records[0].data]))


def add_partition_rows(context: dg.AssetExecutionContext, table: "Table", commit: Commit) -> None:
    """Report the rows of each partition of the run to Dagster (``dagster/partition_row_count``).

    Metadata of a result is copied to every partition of a range, so a count there would be the range's.
    """
    for key, rows in partition_rows(context.assets_def.partitions_def, context.partition_keys, table, commit).items():
        context.add_asset_metadata({"dagster/partition_row_count": rows}, partition_key=key)


def partition_rows(partitions: Any, keys: Any, table: "Table", commit: Commit) -> Mapping[str, int]:
    """Visible rows of each partition at a commit's version, where counting is cheap; not for partitions by key."""
    if not isinstance(partitions, dg.TimeWindowPartitionsDefinition):
        return {}
    windows = {key: partitions.time_window_for_partition_key(key) for key in keys}
    counts = {
        key: table.count(interval=Interval(window.start, window.end), as_of=commit.version)
        for key, window in windows.items()
    }
    return {key: rows for key, rows in counts.items() if rows is not None}


def data_version(commit: Commit) -> dg.DataVersion:
    """The lake's version as Dagster's data version."""
    return dg.DataVersion(str(commit.version))


def _of_table(table: "Table", commit: Commit) -> Commit:
    """The part of a commit that concerns one table."""
    if commit.tables == (table.name,):
        return commit
    return next((one for one in table.log(limit=_LOOK_BACK) if one.version == commit.version), commit)


def _roles(table: "Table", name: str) -> Mapping[str, str]:
    roles = {"time": name == table.time, "primary_key": name in table.primary_key, "cluster": name in table.cluster_by}
    return {role: "" for role, holds in roles.items() if holds}


def _type_name(kind: pa.DataType) -> str:
    """A type's name in SQL.

    >>> _type_name(pa.timestamp("us", "UTC")), _type_name(pa.int64()), _type_name(pa.list_(pa.string()))
    ('timestamp', 'bigint', 'list<item: string>')
    """
    return _TYPE_NAMES.get(kind, str(kind))


def _known(segments: Segments, of: Callable[[Any], Any], choose: Callable[..., Any]) -> Any:
    """Combine a value over all segments; None if a segment lacks it."""
    found = [of(segment) for segment in segments]
    return choose(found) if found and all(value is not None for value in found) else None


def _text(value: Any) -> str:
    return "" if value is None else value.isoformat() if isinstance(value, datetime) else str(value)
