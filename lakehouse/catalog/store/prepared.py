"""Statements compiled once and run on the driver itself: the few that every operation runs.

SQLAlchemy takes several times as long to run a small statement as SQLite, and all writers wait for the holder of the
head. The statements are still SQLAlchemy expressions; only their execution bypasses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import ClauseElement, Connection, Executable


class Prepared:
    """A statement with named parameters. ``build`` makes it for a dialect, by name: ``sqlite`` or ``postgresql``."""

    def __init__(self, build: Callable[[str], ClauseElement]) -> None:
        self._build = build
        self._compiled: dict[str, tuple[str, tuple[str, ...] | None, dict[str, Any]]] = {}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """Run it and return a cursor over its rows, which may be read when the transaction has ended.

        SQLite's rows are fetched now, because an unfinished statement would keep its transaction open.
        """
        text, names, constants = self._text(connection)
        cursor = _driver(connection).cursor()
        if names is None:
            return cursor.execute(text, {**constants, **values})
        cursor.execute(text, [values[name] if name in values else constants[name] for name in names])
        return Fetched(cursor.fetchall())

    def run_many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run it for every row. Nothing is returned."""
        if not rows:
            return
        text, names, constants = self._text(connection)
        cursor = _driver(connection).cursor()
        if names is None:
            cursor.executemany(text, [{**constants, **row} for row in rows])
        else:
            cursor.executemany(
                text, [[row[name] if name in row else constants[name] for name in names] for row in rows]
            )

    def _text(self, connection: Connection) -> tuple[str, tuple[str, ...] | None, dict[str, Any]]:
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            compiled: Any = self._build(dialect.name).compile(dialect=dialect)
            names = tuple(compiled.positiontup) if compiled.positional else None
            constants = {name: bound.value for name, bound in compiled.binds.items() if not bound.required}
            found = self._compiled[dialect.name] = (str(compiled), names, constants)
        return found


def run_for_each(connection: Connection, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run a statement once for every row of values; not at all without rows.

    SQLAlchemy runs a statement with an empty list of rows once, without values. Such a list may be empty, because rows
    found in one transaction may be gone in the next.
    """
    if rows:
        connection.execute(statement, rows)


class Fetched:
    """Fetched rows with the interface of a cursor."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = iter(rows)

    def fetchone(self) -> Any:
        """The next row; None after the last."""
        return next(self._rows, None)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


@contextmanager
def pipelined(connection: Connection) -> Iterator[None]:
    """Send the block's statements without waiting for each answer, if the database is remote."""
    if connection.dialect.name == "sqlite":
        yield
        return
    with _driver(connection).pipeline():
        yield
