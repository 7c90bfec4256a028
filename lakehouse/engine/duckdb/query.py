"""A read plan as one DuckDB query over explicit lists of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import pyarrow as pa

from lakehouse.core.spec import FIELD_ID, ROW_ID
from lakehouse.engine import ORDINAL, ROW_ID_FIELD, Query
from lakehouse.engine.duckdb import literals as sql
from lakehouse.engine.hidden import KeyMask, Part

_EXTRAS = {ROW_ID: pa.int64(), ORDINAL: pa.int64()}
_VIRTUAL = {"file_index", "file_row_number"}
"""Columns that DuckDB adds to every file, unless a column of the file has their name."""


def result_schema(query: Query) -> pa.Schema:
    """The columns of a query's rows: the table's own, exactly."""
    fields = [query.spec.schema.field(name) for name in query.columns or query.spec.schema.names]
    return pa.schema([*fields, *(pa.field(name, _EXTRAS[name], nullable=False) for name in _extras(query))])


def rows_query(query: Query, parts: Sequence[Part], files: Mapping[str, Path], among: str = "") -> str:
    """The rows of some of the plan's parts that pass the filter.

    ``among``, a semi join's text, keeps those of relation ``f`` that a caller can use before anything is made of them.
    """
    columns = sql.listed(sql.name(column) for column in result_schema(query).names)
    return f"SELECT {columns} FROM ({_visible(query, parts, files, among)}){_where(query)}"  # noqa: S608 - quoted by `literals`


def count_query(query: Query, parts: Sequence[Part], files: Mapping[str, Path]) -> str:
    """The number of those rows."""
    return f"SELECT count(*) FROM ({_visible(query, parts, files)}){_where(query)}"  # noqa: S608 - quoted by `literals`


def _extras(query: Query) -> list[str]:
    return [name for name, is_wanted in ((ROW_ID, query.row_ids), (ORDINAL, query.ordinals)) if is_wanted]


def _where(query: Query) -> str:
    return f" WHERE {query.where}" if query.where else ""


def _visible(query: Query, parts: Sequence[Part], files: Mapping[str, Path], among: str = "") -> str:
    selects = [_part(query, part, files, among) for part in parts]
    return " UNION ALL ".join(selects) if selects else _nothing(query)


def _nothing(query: Query) -> str:
    fields = [*query.spec.schema, *(pa.field(name, _EXTRAS[name]) for name in _extras(query))]
    columns = sql.listed(f"{sql.null(field.type)} AS {sql.name(field.name)}" for field in fields)
    return f"SELECT {columns} WHERE FALSE"


def _part(query: Query, part: Part, files: Mapping[str, Path], among: str) -> str:
    """A scan, and an anti join with each of what hides its rows."""
    wanted = _extras(query)
    needed = set(wanted)
    if part.places or any(ROW_ID in mask.columns for mask in part.masks):
        needed.add(ROW_ID)
    if any(mask.is_ordered for mask in part.masks):
        needed.add(ORDINAL)
    scan = _scan(query, part, files, [name for name in _EXTRAS if name in needed], among)
    if not part.places and not part.masks:
        return scan
    joins = [_anti_join(mask, number) for number, mask in enumerate(part.masks)]
    if part.places:
        ids = sql.numbers(part.hidden_ids)
        joins.append(f"ANTI JOIN (SELECT unnest({ids}) AS id) AS h ON r.{sql.name(ROW_ID)} = h.id")
    columns = sql.listed(sql.name(name) for name in (*query.spec.schema.names, *wanted))
    return f"SELECT {columns} FROM ({scan}) AS r {' '.join(joins)}"  # noqa: S608 - quoted by `literals`


def _scan(query: Query, part: Part, files: Mapping[str, Path], extras: Sequence[str], among: str) -> str:
    renamed = {name for name in query.spec.schema.names if extras and name.lower() in _VIRTUAL}
    columns = [
        f'"_{name}" AS {sql.name(name)}' if name in renamed else sql.name(name) for name in query.spec.schema.names
    ]
    if ROW_ID in extras:
        columns.append(f"{_row_id(part)} AS {sql.name(ROW_ID)}")
    if ORDINAL in extras:
        columns.append(f"{_by_file([one.ordinal for one in part.segments])} AS {sql.name(ORDINAL)}")
    schema = query.spec.schema.append(ROW_ID_FIELD) if ROW_ID in extras else query.spec.schema
    paths = sql.listed(sql.file(str(files[segment.path])) for segment in part.segments)
    source = f"read_parquet([{paths}], schema={_file_schema(schema, renamed)}, hive_partitioning=false)"
    if renamed:
        source = f"(SELECT {sql.listed(columns)} FROM {source})"  # noqa: S608 - quoted by `literals`
        columns = [sql.name(name) for name in (*query.spec.schema.names, *extras)]
    condition = "TRUE" if part.condition is None else part.condition.duckdb
    return f"SELECT {sql.listed(columns)} FROM {source} AS f {among} WHERE {condition}"  # noqa: S608 - quoted by `literals`


def _by_file(values: Sequence[int]) -> str:
    """A number for each file, as a column."""
    if len(set(values)) == 1:
        return f"CAST({values[0]} AS BIGINT)"
    return f"CAST([{sql.listed(map(str, values))}] AS BIGINT[])[CAST(file_index AS BIGINT) + 1]"


def _row_id(part: Part) -> str:
    """The stored row id, else the segment's first one and the row's place in the file."""
    by_place = f"{_by_file([segment.first_row_id for segment in part.segments])} + file_row_number"
    return by_place if part.places else f"coalesce({sql.name(ROW_ID)}, {by_place})"


def _anti_join(mask: KeyMask, number: int) -> str:
    """What is left of relation ``r`` by a mask."""
    hidden = f"m{number}"
    conditions = [f"r.{sql.name(name)} = {hidden}.{sql.name(name)}" for name in mask.columns]
    if mask.is_ordered:
        conditions.append(f"{hidden}.{sql.name(ORDINAL)} > r.{sql.name(ORDINAL)}")
    lists = sql.listed(f"unnest({sql.values(mask.table.column(name))}) AS {sql.name(name)}" for name in _used(mask))
    return f"ANTI JOIN (SELECT {lists}) AS {hidden} ON {' AND '.join(conditions)}"


def _used(mask: KeyMask) -> list[str]:
    return [name for name in mask.table.column_names if mask.is_ordered or name != ORDINAL]


def _file_schema(schema: pa.Schema, renamed: Set[str]) -> str:
    """The columns by Parquet field id, so that a column absent from a file reads as null."""
    entries = []
    for field in schema:
        name = sql.text(f"_{field.name}" if field.name in renamed else field.name)
        kind = sql.text(sql.type_name(field.type))
        entries.append(f"{field.metadata[FIELD_ID].decode()}: {{name: {name}, type: {kind}, default_value: NULL}}")
    return f"MAP {{{sql.listed(entries)}}}"
