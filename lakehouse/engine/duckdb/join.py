"""A source joined to a plan's rows, for a merge: one pass over both, kept in a table of its own connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa

from lakehouse.cancelling import shielded
from lakehouse.core.spec import ORDINAL, ROW_ID, SIDES
from lakehouse.engine.duckdb import literals as sql
from lakehouse.engine.duckdb.result import BATCH_ROWS, DuckDBRows
from lakehouse.engine.duckdb.source import tables

_SOURCE, _TARGET = SIDES["source"], SIDES["target"]
_PLACES = tuple(pa.field(name, pa.int64(), nullable=False) for name in (ROW_ID, ORDINAL))


@contextmanager
def matched(
    cursor: duckdb.DuckDBPyConnection,
    condition: str,
    schema: pa.Schema,
    target: DuckDBRows,
    source: Any,
    equal: Sequence[tuple[str, str]],
    left: tuple[DuckDBRows, str] | None = None,
) -> Iterator[DuckDBMatches]:
    """Join, keep, and forget at the end. The source is read once, into memory.

    ``schema`` is the table's; ``target`` has those of its columns that are asked for. Rows that differ from every row
    of the source in what must be ``equal`` are left out as they are read, before their ids are made. Of ``left``, rows
    that match none are kept, if they pass the condition beside them.
    """
    cursor.register("lakehouse_source", pa.concat_tables(tables(source, schema)))
    try:
        with ExitStack() as held:
            found = DuckDBMatches(cursor, schema, "lakehouse_pairs")
            view = held.enter_context(_view(cursor, target, _among(equal)))
            pairs = f"lakehouse_source AS {_SOURCE} LEFT JOIN {view} AS {_TARGET} ON {condition}"
            held.enter_context(_kept(cursor, found.name, target, f"SELECT {_SOURCE}, {_TARGET} FROM {pairs}"))  # noqa: S608
            if left is not None:
                found.left = DuckDBMatches(cursor, schema, "lakehouse_left")
                others, where = left
                view = held.enter_context(_view(cursor, others, ""))
                rows = f"{view} AS {_TARGET} ANTI JOIN lakehouse_source AS {_SOURCE} ON {condition} WHERE {where}"
                held.enter_context(_kept(cursor, found.left.name, others, f"SELECT {_TARGET} FROM {rows}"))  # noqa: S608
            yield found
    finally:
        cursor.unregister("lakehouse_source")


@contextmanager
def _view(cursor: duckdb.DuckDBPyConnection, rows: DuckDBRows, among: str) -> Iterator[str]:
    """A view of rows, under a name that no other connection uses."""
    view = f"lakehouse_target_{uuid4().hex}"
    rows.relation(cursor, among).create_view(view)
    try:
        yield view
    finally:
        with shielded():
            cursor.execute(f"DROP VIEW IF EXISTS {view}")


@contextmanager
def _kept(cursor: duckdb.DuckDBPyConnection, name: str, rows: DuckDBRows, query: str) -> Iterator[None]:
    """The result of a query over some rows, in a temporary table."""
    try:
        with rows.naming_files():
            cursor.execute(f"CREATE TEMP TABLE {name} AS {query}")
        yield
    finally:
        with shielded():
            cursor.execute(f"DROP TABLE IF EXISTS {name}")


def _among(equal: Sequence[tuple[str, str]]) -> str:
    """A semi join of relation ``f`` with the source's values, by a list.

    DuckDB takes a list for one row, so that it goes into the hash table, and the files' rows pass by it.
    """
    if not equal:
        return ""
    held = sql.listed(f"{sql.name(f'k{number}')}: {sql.name(other)}" for number, (_, other) in enumerate(equal))
    values = f"(SELECT unnest(list({{{held}}})) AS held FROM lakehouse_source)"  # noqa: S608 - quoted by `literals`
    pairs = [f"f.{sql.name(name)} = s.held.{sql.name(f'k{number}')}" for number, (name, _) in enumerate(equal)]
    return f"SEMI JOIN {values} AS s ON {' AND '.join(pairs)}"


class DuckDBMatches:
    """Pairs in a temporary table of two structs, one a side; the target's id is null where there is none."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, schema: pa.Schema, name: str) -> None:
        self._cursor = cursor
        self._schema = schema
        self.name = name
        self.left: DuckDBMatches | None = None

    def hits(self, columns: Sequence[str], where: str) -> pa.Table:
        """Columns of the matched rows for which a condition holds, with `_row_id` and `_ordinal`; one row a pair."""
        chosen = sql.listed(f"{_TARGET}.{sql.name(one)} AS {sql.name(one)}" for one in (*columns, ROW_ID, ORDINAL))
        found: pa.Table = self._rows(self._pairs(chosen, where)).to_arrow_table()
        return found.cast(pa.schema([*(self._schema.field(name) for name in columns), *_PLACES]))

    def updated(self, assigned: Mapping[str, str], where: str) -> pa.RecordBatchReader:
        """Matched rows for which a condition holds with new values; with ``_row_id``."""
        values = [self._value(name, assigned.get(name, f"{_TARGET}.{sql.name(name)}")) for name in self._schema.names]
        chosen = sql.listed([*values, f"{_TARGET}.{sql.name(ROW_ID)} AS {sql.name(ROW_ID)}"])
        return self._rows(self._pairs(chosen, where)).to_arrow_reader(BATCH_ROWS)

    def inserted(self, values: Mapping[str, str], where: str) -> pa.RecordBatchReader:
        """Rows made of the source's rows that match none and for which a condition holds."""
        chosen = sql.listed(self._value(name, values.get(name, "NULL")) for name in self._schema.names)
        missing = f"{_TARGET}.{sql.name(ROW_ID)} IS NULL"
        query = f"SELECT {chosen} FROM {self.name} WHERE {missing} AND {where}"  # noqa: S608
        return self._rows(query).to_arrow_reader(BATCH_ROWS)

    def _rows(self, query: str) -> Any:
        return self._cursor.sql(query)

    def _value(self, name: str, expression: str) -> str:
        return f"{sql.value(expression, self._schema.field(name).type)} AS {sql.name(name)}"

    def _pairs(self, chosen: str, where: str) -> str:
        return f"SELECT {chosen} FROM {self.name} WHERE {_TARGET}.{sql.name(ROW_ID)} IS NOT NULL AND {where}"  # noqa: S608
