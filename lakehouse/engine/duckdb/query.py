"""A read plan as one DuckDB query over explicit lists of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from lakehouse.core.plan import ReadGroup
from lakehouse.core.segment import Segment
from lakehouse.core.spec import FIELD_ID, ROW_ID
from lakehouse.engine import ROW_ID_FIELD, Query
from lakehouse.engine.duckdb import literals as sql
from lakehouse.engine.masks import visible


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
    schema = query.spec.schema.append(ROW_ID_FIELD) if query.row_ids else query.spec.schema
    columns = sql.listed(f"{sql.null(field.type)} AS {sql.name(field.name)}" for field in schema)
    return f"SELECT {columns} WHERE FALSE"


def _group(query: Query, group: ReadGroup, files: Mapping[str, Path]) -> str:
    columns = [sql.name(column) for column in query.spec.schema.names]
    if query.row_ids:
        columns.append(f"{_row_id(group.segments)} AS {sql.name(ROW_ID)}")
    paths = sql.listed(sql.file(str(files[segment.path])) for segment in group.segments)
    source = f"read_parquet([{paths}], schema={_file_schema(query)}, hive_partitioning=false)"
    mask = visible(query, group)
    condition = "TRUE" if mask is None else mask.duckdb
    return f"SELECT {sql.listed(columns)} FROM {source} WHERE {condition}"  # noqa: S608 - quoted by `literals`


def _row_id(segments: Sequence[Segment]) -> str:
    """The stored row id, else the segment's first one and the row's place in the file."""
    firsts = sql.listed(str(segment.first_row_id) for segment in segments)
    by_place = f"CAST([{firsts}] AS BIGINT[])[CAST(file_index AS BIGINT) + 1] + file_row_number"
    return f"coalesce({sql.name(ROW_ID)}, {by_place})"


def _file_schema(query: Query) -> str:
    """The columns by Parquet field id, so that a column absent from a file reads as null."""
    schema = query.spec.schema.append(ROW_ID_FIELD) if query.row_ids else query.spec.schema
    entries = []
    for field in schema:
        name, kind = sql.text(field.name), sql.text(sql.type_name(field.type))
        entries.append(f"{field.metadata[FIELD_ID].decode()}: {{name: {name}, type: {kind}, default_value: NULL}}")
    return f"MAP {{{sql.listed(entries)}}}"
