"""Opening DuckDB: in memory, and with what is the same wherever the library runs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from lakehouse import progress
from lakehouse.cancelling import watch
from lakehouse.forks import watch_forks

if TYPE_CHECKING:
    import duckdb

_SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_file_cache": "false",
    "python_enable_replacements": "false",
    # Of an outer join under IS NULL it makes an anti join that loses rows (duckdb/duckdb#24623, #25211; open in 2.0.0).
    "disabled_optimizers": "outer_join_simplification",
}


def open_memory(**more: Any) -> duckdb.DuckDBPyConnection:
    """A database of its own in memory, in UTC, that loads no extension and sees no Python variable.

    ``more`` are settings besides, by DuckDB's names.
    """
    import duckdb  # noqa: PLC0415 - late

    connection = duckdb.connect(":memory:", config={**_SETTINGS, **more})
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


@contextmanager
def counted(connection: duckdb.DuckDBPyConnection, what: str) -> Iterator[None]:
    """A step for what a connection runs in the block, if somebody listens: DuckDB says how much of it is done."""
    if progress.listener() is None:
        yield
        return
    import duckdb  # noqa: PLC0415 - late

    with suppress(duckdb.InvalidInputException):  # its configuration is locked: then it was opened with it
        keep_count(connection)
    with progress.step(what, "percent", 100) as step:
        step.asked = connection.query_progress
        try:
            yield
            step.done = 100
        finally:
            step.asked = None


def keep_count(connection: duckdb.DuckDBPyConnection) -> None:
    """Let a connection know how much of its statements is done."""
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")


_of_parents: list[duckdb.DuckDBPyConnection] = []


def interrupt(connection: duckdb.DuckDBPyConnection) -> None:
    """End what a connection runs now; one that was closed meanwhile runs nothing."""
    import duckdb  # noqa: PLC0415 - late

    with suppress(duckdb.ConnectionException):
        connection.interrupt()


class KeptDatabase:
    """A database that is opened when it is first needed, and kept. Safe to share between threads."""

    def __init__(self, opened: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        self._opened = opened
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None

    def after_fork(self) -> None:
        """A child begins with a database of its own: the threads of its parent's did not come along."""
        if self._database is not None:
            _of_parents.append(self._database)  # to close it would wait for them
        self._reset()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of the caller's own, which is interrupted when the caller's work is cancelled."""
        with self._lock:
            if self._database is None:
                self._database = self._opened()
            cursor = self._database.cursor()
        watch(partial(interrupt, cursor))
        return cursor

    def let_go(self) -> duckdb.DuckDBPyConnection | None:
        """Keep it no longer; the next cursor opens another. Returns it, for who wants to close all cursors with it."""
        with self._lock:
            database, self._database = self._database, None
        return database
