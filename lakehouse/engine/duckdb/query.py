"""A read plan as one DuckDB query over explicit lists of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.plan import ReadGroup
from lakehouse.core.segment import Segment
from lakehouse.core.spec import FIELD_ID, ROW_ID, TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine import Query
from lakehouse.engine.duckdb import literals as sql
from lakehouse.errors import InternalError

_ROW_ID_NUMBER = 2147483540


def result_schema(query: Query) -> pa.Schema:
    """The columns of a query's rows: the table's own, exactly."""
    fields = [query.spec.schema.field(name) for name in query.columns or query.spec.schema.names]
    return pa.schema([*fields, pa.field(ROW_ID, pa.int64(), nullable=False)] if query.row_ids else fields)


def rows_query(query: Query, groups: Sequence[ReadGroup], files: Mapping[str, Path]) -> str:
    """The rows of some of the plan's groups that pass the filter."""
    columns = sql.listed(sql.name(column) for column in result_schema(query).names)
    return f"SELECT {columns} FROM ({_visible(query, groups, files)}){_where(query)}"  # noqa: S608 - quoted by `literals`


def count_query(query: Query, groups: Sequence[ReadGroup], files: Mapping[str, Path]) -> str:
    """The number of those rows."""
    return f"SELECT count(*) FROM ({_visible(query, groups, files)}){_where(query)}"  # noqa: S608 - quoted by `literals`


def _where(query: Query) -> str:
    return f" WHERE {query.where}" if query.where else ""


def _visible(query: Query, groups: Sequence[ReadGroup], files: Mapping[str, Path]) -> str:
    selects = [_group(query, group, files) for group in groups if group.segments]
    return " UNION ALL ".join(selects) if selects else _nothing(query)


def _nothing(query: Query) -> str:
    schema = query.spec.schema.append(pa.field(ROW_ID, pa.int64())) if query.row_ids else query.spec.schema
    columns = sql.listed(f"{sql.typed(None, field.type)} AS {sql.name(field.name)}" for field in schema)
    return f"SELECT {columns} WHERE FALSE"


def _group(query: Query, group: ReadGroup, files: Mapping[str, Path]) -> str:
    columns = [sql.name(column) for column in query.spec.schema.names]
    if query.row_ids:
        columns.append(f"{_row_id(group.segments)} AS {sql.name(ROW_ID)}")
    paths = sql.listed(sql.file(str(files[segment.path])) for segment in group.segments)
    source = f"read_parquet([{paths}], schema={_file_schema(query)}, hive_partitioning=false)"
    conditions = " AND ".join(group_conditions(query, group)) or "TRUE"
    return f"SELECT {sql.listed(columns)} FROM {source} WHERE {conditions}"  # noqa: S608 - quoted by `literals`


def group_conditions(query: Query, group: ReadGroup) -> list[str]:
    """What a group's rows must pass to be visible within the plan's interval; empty if all are."""
    time = sql.name(query.spec.time)
    conditions = []
    inside = query.plan.interval
    if inside is not None and not _covers(inside, group.segments):
        conditions.append(_within(time, inside))
    masks = (_matches(tombstone, query.spec, group.segments) for tombstone in group.masks())
    return [*conditions, *(f"NOT ({mask})" for mask in masks)]


def _covers(interval: Interval, segments: Sequence[Segment]) -> bool:
    return all(interval.contains(segment.interval) for segment in segments)


def _within(time: str, interval: Interval) -> str:
    return f"({time} >= {sql.instant(interval.start)} AND {time} < {sql.instant(interval.end)})"


def _matches(tombstone: Tombstone, spec: TableSpec, segments: Sequence[Segment]) -> str:
    """A condition that is true for rows that an interval tombstone hides and false, never null, for others."""
    if tombstone.kind != "interval":
        raise InternalError("this engine masks by interval tombstones only", kind=tombstone.kind)
    parts = [] if _covers(tombstone.interval, segments) else [_within(sql.name(spec.time), tombstone.interval)]
    return " AND ".join([*parts, *_listed_keys(tombstone.keys or {}, spec)]) or "TRUE"


def _listed_keys(keys: KeyScope, spec: TableSpec) -> list[str]:
    conditions = []
    for column, values in keys.items():
        name, kind = sql.name(column), spec.schema.field(column).type
        present = sql.listed(sql.typed(value, kind) for value in values if value is not None)
        parts = [f"({name} IS NOT NULL AND {name} IN ({present}))"] if present else []
        if None in values:
            parts.append(f"{name} IS NULL")
        conditions.append(f"({' OR '.join(parts)})")
    return conditions


def _row_id(segments: Sequence[Segment]) -> str:
    """The stored row id, else the segment's first one and the row's place in the file."""
    firsts = sql.listed(str(segment.first_row_id) for segment in segments)
    by_place = f"CAST([{firsts}] AS BIGINT[])[CAST(file_index AS BIGINT) + 1] + file_row_number"
    return f"coalesce({sql.name(ROW_ID)}, {by_place})"


def _file_schema(query: Query) -> str:
    """The columns by Parquet field id, so that a column absent from a file reads as null."""
    fields = [(int(field.metadata[FIELD_ID]), field) for field in query.spec.schema]
    if query.row_ids:
        fields.append((_ROW_ID_NUMBER, pa.field(ROW_ID, pa.int64())))
    entries = sql.listed(
        f"{number}: {{name: {sql.text(field.name)}, type: {sql.text(sql.type_name(field.type))}, default_value: NULL}}"
        for number, field in fields
    )
    return f"MAP {{{entries}}}"
