"""A source joined to a plan's rows, for a merge: one pass over both, kept in a table of its own connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa

from lakehouse.core.spec import ORDINAL, ROW_ID
from lakehouse.engine.duckdb import literals as sql
from lakehouse.engine.duckdb.result import BATCH_ROWS, DuckDBRows
from lakehouse.engine.duckdb.source import tables


@contextmanager
def matched(
    cursor: duckdb.DuckDBPyConnection, condition: str, target: DuckDBRows, source: Any
) -> Iterator[DuckDBMatches]:
    """Join, keep, and forget at the end. The source is read once, into memory."""
    cursor.register("lakehouse_source", pa.concat_tables(tables(source, target.schema.names)))
    view = f"lakehouse_target_{uuid4().hex}"
    target.relation(cursor).create_view(view)
    try:
        pairs = f"lakehouse_source AS source LEFT JOIN {view} AS target ON {condition}"
        cursor.execute(f"CREATE TEMP TABLE lakehouse_pairs AS SELECT source, target FROM {pairs}")  # noqa: S608
        yield DuckDBMatches(cursor, target.schema)
    finally:
        for statement in ("DROP TABLE IF EXISTS lakehouse_pairs", f"DROP VIEW IF EXISTS {view}"):
            cursor.execute(statement)
        cursor.unregister("lakehouse_source")


class DuckDBMatches:
    """Pairs in a temporary table of two structs, ``source`` and ``target``; the latter's id is null where none is."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, schema: pa.Schema) -> None:
        self._cursor = cursor
        self._schema = schema

    def hits(self, columns: Sequence[str], where: str) -> pa.Table:
        """Columns of the matched rows for which a condition holds, with `_row_id` and `_ordinal`; one row a pair."""
        chosen = sql.listed(f"target.{sql.name(one)} AS {sql.name(one)}" for one in (*columns, ROW_ID, ORDINAL))
        found: pa.Table = self._rows(self._pairs(chosen, where)).to_arrow_table()
        return found.cast(pa.schema([self._schema.field(name) for name in found.column_names]))

    def updated(self, assigned: Mapping[str, str], where: str) -> pa.RecordBatchReader:
        """Matched rows for which a condition holds with new values; with ``_row_id``."""
        values = [self._value(name, assigned.get(name, f"target.{sql.name(name)}")) for name in self._columns()]
        chosen = sql.listed([*values, f"target.{sql.name(ROW_ID)} AS {sql.name(ROW_ID)}"])
        return self._rows(self._pairs(chosen, where)).to_arrow_reader(BATCH_ROWS)

    def inserted(self, values: Mapping[str, str]) -> pa.RecordBatchReader:
        """Rows made of the source's rows that match none."""
        chosen = sql.listed(self._value(name, values.get(name, "NULL")) for name in self._columns())
        query = f"SELECT {chosen} FROM lakehouse_pairs WHERE target.{sql.name(ROW_ID)} IS NULL"  # noqa: S608
        return self._rows(query).to_arrow_reader(BATCH_ROWS)

    def _rows(self, query: str) -> Any:
        return self._cursor.sql(query)

    def _columns(self) -> list[str]:
        return [name for name in self._schema.names if name not in (ROW_ID, ORDINAL)]

    def _value(self, name: str, expression: str) -> str:
        return f"{sql.value(expression, self._schema.field(name).type)} AS {sql.name(name)}"

    @staticmethod
    def _pairs(chosen: str, where: str) -> str:
        return f"SELECT {chosen} FROM lakehouse_pairs WHERE target.{sql.name(ROW_ID)} IS NOT NULL AND {where}"  # noqa: S608
