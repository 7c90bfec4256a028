"""Finds values in a catalog that no release writes, after reading it has failed, to report where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, get_args

from sqlalchemy import Boolean, Column, Connection, Float, Integer, LargeBinary, func, select

from lakehouse.catalog.store.encoding import decode_keys, decode_map, decode_statistics
from lakehouse.catalog.store.rows import spec_from_row
from lakehouse.catalog.store.tables import metadata
from lakehouse.core.operation import Kind
from lakehouse.core.tombstone import TombstoneKind
from lakehouse.errors import LakehouseError

UNREADABLE = (TypeError, ValueError, LookupError, AttributeError, OverflowError)
"""Errors that values of a wrong type, or meaningless texts, cause in code that trusts them."""
_STATES = ("reserved", "running", "committed", "aborted", "collected")
_DECODED: dict[str, Callable[[Any], object]] = {
    "commit_log.properties": decode_map,
    "operation.keys": partial(decode_keys, current={}),
    "operation.kind": lambda kind: kind == "reserved" or Kind(kind),
    "operation.state": _STATES.index,
    "segment.statistics": decode_statistics,
    "tombstone.keys": partial(decode_keys, current={}),
    "tombstone.statistics": decode_statistics,
    "tombstone.kind": get_args(TombstoneKind).index,
}


def find_damage(connection: Connection) -> str | None:
    """The first column with an impossible value; None if every value can be read.

    Cost: a pass over the whole catalog, only after a failure. A server checks types itself.
    """
    return next(_damages(connection), None)


def _damages(connection: Connection) -> Iterator[str]:
    for table in metadata.sorted_tables:
        if connection.dialect.name == "sqlite":
            for column in table.columns:
                kind = func.typeof(column)
                found = connection.execute(select(kind).where(kind.not_in(_kinds(column))).limit(1)).scalar()
                if found is not None:
                    yield f"{table.name}.{column.name} holds {found}"
        for column in table.columns:
            decode = _DECODED.get(f"{table.name}.{column.name}")
            if decode is not None:
                values = connection.execute(select(column).where(column.is_not(None)).distinct()).scalars()
                yield from (f"{table.name}.{column.name}: {found}" for found in _unreadable(values, decode))
        if table.name == "lake_table":
            rows = connection.execute(select(table))
            yield from (f"lake_table.definition: {found}" for found in _unreadable(rows, spec_from_row))


def _kinds(column: Column[Any]) -> tuple[str, ...]:
    """The storage classes that SQLite may hold in a column."""
    kinds = {Boolean: "integer", Integer: "integer", LargeBinary: "blob", Float: "real"}
    found = next((kind for of, kind in kinds.items() if isinstance(column.type, of)), "text")
    return found, "integer" if found == "real" else found, "null" if column.nullable else found


def _unreadable(values: Any, decode: Callable[[Any], object]) -> Iterator[str]:
    for value in values:
        try:
            decode(value)
        except (*UNREADABLE, LakehouseError) as error:
            yield f"{type(error).__name__}: {error}"[:200]
