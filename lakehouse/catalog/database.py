"""Connections and transactions on the catalog's database: SQLite or PostgreSQL, one behaviour.

Rules, each measured (ADR 0002): SQLite runs WAL with ``synchronous=FULL`` and ``BEGIN IMMEDIATE``; PostgreSQL runs READ
COMMITTED under the head row. Errors are classified by code, never by their text. Those who write to one SQLite file
stand in one queue, across threads and processes: SQLite's own waiting polls, and is unfair.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    bindparam,
    create_engine,
    event,
    func,
    literal_column,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, InterfaceError, ProgrammingError

from lakehouse.catalog import models
from lakehouse.catalog.prepared import pipelined
from lakehouse.catalog.queue import writer_queue
from lakehouse.errors import CatalogUnavailable, CommitUnknown, InternalError, InvalidInput

try:
    from pysqlite3 import dbapi2 as sqlite
except ImportError:  # no wheel for this platform: Python's own, checked by version below
    import sqlite3 as sqlite

T = TypeVar("T")
WAL_IS_SAFE_FROM = (3, 51, 3)
"""Older releases of SQLite can corrupt a database when the write-ahead log is reset."""
_BUSY_TIMEOUT_MS = 30_000
_CACHE_KIBIBYTES = 64 << 10
_RECONNECT_SECONDS = (0.0, 0.1, 0.4, 1.0, 2.0)
_SQLITE_BUSY, _SQLITE_LOCKED = 5, 6

_databases: weakref.WeakSet[Database] = weakref.WeakSet()


class _Reaction(Enum):
    RUN_AGAIN = auto()
    RECONNECT = auto()
    RAISE = auto()


class Database:
    """A catalog's database.

    ``run`` takes a function of a connection and gives it one transaction; the function may be called again, so it
    must have no effect but through its connection.
    """

    def __init__(self, url: str) -> None:
        self.url = _read_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = self._sqlite_engine() if self.is_sqlite else self._server_engine()
        self._driver_error: type[Exception] = self.engine.dialect.loaded_dbapi.Error
        self._queue = writer_queue(str(self.url.database)) if self.is_sqlite else _NoQueue()
        _databases.add(self)

    def _server_engine(self) -> Engine:
        return create_engine(self.url, pool_size=16, max_overflow=64)

    def _sqlite_engine(self) -> Engine:
        path = Path(str(self.url.database)).absolute()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CatalogUnavailable(
                "cannot make the folder of the catalog; check the path and its permissions",
                path=path.parent,
                cause=error,
            ) from error
        self.url = self.url.set(database=str(path))
        engine = create_engine(
            self.url, module=sqlite, pool_size=16, max_overflow=64, connect_args={"check_same_thread": False}
        )
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()

    def run(
        self,
        work: Callable[[Connection], T],
        *,
        last: Callable[[Connection, T], None] | None = None,
        settled: Callable[[Connection], T | None] | None = None,
        durable: bool = True,
    ) -> T:
        """Run ``work`` in one writing transaction, again after a serialisation failure or a lost connection.

        ``last`` gets its result and writes more, by prepared statements only, which are sent together with COMMIT.
        ``settled`` looks up what an earlier try may have committed: it is asked, under the head, after a connection
        was lost. What is not ``durable`` may be undone by a crash of SQLite's machine, which ends this process too,
        together with all that came after it and is not durable either. Raises `CommitUnknown` if a commit's answer was
        lost and the catalog cannot be asked, else `CatalogUnavailable`.
        """
        was_committing = False
        for pause_seconds in _RECONNECT_SECONDS:
            if pause_seconds:
                time.sleep(pause_seconds)  # there is no event for a server that comes back
            stage = _Stage()
            try:
                return self._once(stage, work, last, settled if was_committing else None, durable)
            except DBAPIError as error:
                reaction = _reaction(error)
                if reaction is _Reaction.RAISE:
                    raise _translated(error, self.url) from error
                was_committing = was_committing or (reaction is _Reaction.RECONNECT and stage.committing)
                failure = error
        if was_committing:
            raise CommitUnknown(
                "the answer to a commit was lost and the catalog cannot be asked; read it back when it is up",
                cause=failure.orig,
            ) from failure
        raise _translated(failure, self.url) from failure

    def _once(
        self,
        stage: _Stage,
        work: Callable[[Connection], T],
        last: Callable[[Connection, T], None] | None,
        settled: Callable[[Connection], T | None] | None,
        durable: bool,
    ) -> T:
        with self._translating(), self.engine.connect() as opened:
            if self.is_sqlite:
                connection = opened.execution_options(lakehouse_begin="BEGIN IMMEDIATE")
                _sync_commits(connection, durable)
            else:
                connection = opened
            with self._queue, self._giving_up_broken(connection), connection.begin() as transaction:
                if settled is not None:
                    take_head(connection)
                    found = settled(connection)
                    if found is not None:
                        return found
                result = work(connection)
                if last is None:
                    stage.committing = True
                    transaction.commit()
                    return result
                with pipelined(connection):
                    last(connection, result)
                    stage.committing = True
                    transaction.commit()
                return result

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Raise an error of the driver, from a prepared statement, as SQLAlchemy raises those of its own."""
        try:
            yield
        except self._driver_error as error:
            dialect = self.engine.dialect
            raise DBAPIError.instance(None, None, error, self._driver_error, dialect=dialect) from error

    @contextmanager
    def _giving_up_broken(self, connection: Connection) -> Iterator[None]:
        """Take a connection that a prepared statement found broken out of the pool."""
        try:
            yield
        except self._driver_error as error:
            driver = connection.connection.driver_connection if not connection.invalidated else None
            if driver is not None and getattr(driver, "closed", False):
                connection.invalidate(error)
            raise

    def read(self, question: Callable[[Connection], T]) -> T:
        """Ask one state of the catalog, in a read-only transaction; again on a new connection if one was lost."""
        for pause_seconds in _RECONNECT_SECONDS:
            if pause_seconds:
                time.sleep(pause_seconds)  # there is no event for a server that comes back
            try:
                with self._translating(), self.engine.connect() as opened:
                    connection = opened if self.is_sqlite else opened.execution_options(**_SNAPSHOT)
                    with self._giving_up_broken(connection), connection.begin():
                        return question(connection)
            except DBAPIError as error:
                if _reaction(error) is _Reaction.RAISE:
                    raise _translated(error, self.url) from error
                last = error
        raise _translated(last, self.url) from last

    def now_us(self, connection: Connection) -> int:
        """The database's clock in microseconds; on SQLite the host's, never behind the newest time stored."""
        if self.is_sqlite:
            stored = connection.execute(_CLOCK).scalar_one()
            return max(int(stored), time.time_ns() // 1000)
        return int(connection.execute(_SERVER_CLOCK).scalar_one())


class _Stage:
    """How far a transaction got, for the one who catches its error."""

    def __init__(self) -> None:
        self.committing = False


class _NoQueue:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_SNAPSHOT: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
_CLOCK = text("SELECT clock_us FROM lake")
_SERVER_CLOCK = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)")
_TAKE_HEAD = models.lake.update().values(id=1)


def now_us(dialect: str) -> ColumnElement[int]:
    """The catalog's clock as an expression over `models.lake`, with the host's as the parameter ``host_us``.

    It is the database's own; SQLite has none, so there it is the host's, never behind the newest time stored.
    """
    if dialect == "sqlite":
        return func.max(models.lake.c.clock_us, bindparam("host_us", type_=BigInteger))
    return literal_column("CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)", BigInteger)


def host_us() -> int:
    """The host's clock in microseconds."""
    return time.time_ns() // 1000


def take_head(connection: Connection) -> None:
    """Hold the head until the transaction ends, so that what is read next cannot change."""
    connection.execute(_TAKE_HEAD)


def _read_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise InvalidInput(
            "not a catalog address; write sqlite:///path or postgresql+psycopg://user@host/database", catalog=url
        ) from error
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise InvalidInput(
            "no such kind of catalog; write sqlite:///path or postgresql+psycopg://user@host/database",
            kind=parsed.drivername,
        )
    if parsed.drivername == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise InvalidInput("a catalog must outlive its process; write sqlite:///path", catalog=url)
    return parsed


def _configure_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    journal = "WAL" if sqlite.sqlite_version_info >= WAL_IS_SAFE_FROM else "DELETE"
    for pragma in (
        f"busy_timeout={_BUSY_TIMEOUT_MS}",
        f"journal_mode={journal}",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"cache_size=-{_CACHE_KIBIBYTES}",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("lakehouse_begin", "BEGIN"))


def _sync_commits(connection: Connection, durable: bool) -> None:
    """Let SQLite sync the log at every commit, or not; a new connection does."""
    if connection.info.get("lakehouse_durable", True) != durable:
        connection.connection.dbapi_connection.execute(  # type: ignore[union-attr]
            "PRAGMA synchronous=FULL" if durable else "PRAGMA synchronous=NORMAL"
        )
        connection.info["lakehouse_durable"] = durable


def _reaction(error: DBAPIError) -> _Reaction:
    """What to do about a database error, by its SQLSTATE or SQLite code."""
    if isinstance(error, IntegrityError):
        return _Reaction.RAISE
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return _Reaction.RUN_AGAIN if code & 0xFF in (_SQLITE_BUSY, _SQLITE_LOCKED) else _Reaction.RAISE
    if not hasattr(error.orig, "sqlstate"):
        return _Reaction.RAISE
    state = getattr(error.orig, "sqlstate", None)
    if state in ("40001", "40P01", "55P03"):
        return _Reaction.RUN_AGAIN
    if state is None or state[:2] == "08" or state in ("40003", "57P01", "57P02", "57P03"):
        return _Reaction.RECONNECT
    return _Reaction.RAISE


def _translated(error: DBAPIError, url: URL) -> Exception:
    if isinstance(error, IntegrityError | ProgrammingError | DataError | InterfaceError):
        return InternalError("the catalog refused a statement", cause=str(error.orig).strip())
    shown = url.render_as_string(hide_password=True)
    return CatalogUnavailable(
        "the catalog's database does not answer as it should; check that it runs and may be written",
        catalog=shown,
        cause=str(error.orig).strip(),
    )


def _forget_connections() -> None:
    """No connection crosses a fork: the child opens its own."""
    for database in list(_databases):
        database.engine.dispose(close=False)


os.register_at_fork(after_in_child=_forget_connections)

__all__ = ["WAL_IS_SAFE_FROM", "Database", "sqlite", "take_head"]
