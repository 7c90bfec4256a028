"""Connections and transactions on the catalog's database: SQLite or PostgreSQL, one behaviour.

Rules, each measured (ADR 0002): SQLite runs WAL with ``BEGIN IMMEDIATE``, and a commit is answered when its log is
synced, which happens outside of the queue, so that writers share it; PostgreSQL runs READ COMMITTED under the head row.
Errors are classified by code, never by their text. Those who write to one SQLite file stand in one queue, across
threads and processes: SQLite's own waiting polls, and is unfair.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import Enum, auto
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    RootTransaction,
    bindparam,
    create_engine,
    event,
    func,
    literal_column,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, InterfaceError, ProgrammingError

from lakehouse.catalog import models
from lakehouse.catalog.prepared import Prepared, pipelined
from lakehouse.catalog.queue import writer_queue
from lakehouse.errors import CatalogUnavailable, CommitUnknown, InternalError, InvalidInput

try:
    from pysqlite3 import dbapi2 as sqlite
except ImportError:  # no wheel for this platform: Python's own, checked by version below
    import sqlite3 as sqlite

T = TypeVar("T")


class Refused(InternalError):
    """A statement would have broken a rule of the database's; nothing of its transaction is there."""


WAL_IS_SAFE_FROM = (3, 51, 3)
"""Older releases of SQLite can corrupt a database when the write-ahead log is reset."""
WRITES_AHEAD = sqlite.sqlite_version_info >= WAL_IS_SAFE_FROM
SYNCS_LOG = WRITES_AHEAD and hasattr(os, "fdatasync")
"""Whether a commit's log is synced here, after the queue was left, and not by SQLite."""
_BUSY_TIMEOUT_MS = 30_000
_IDLE_TIMEOUT_MS = 30_000
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
        self._log = Path(f"{self.url.database}-wal")
        self._is_closed = False
        _databases.add(self)

    def _server_engine(self) -> Engine:
        # A process that is paused within a transaction must not hold its rows, or the head, for ever.
        given = self.url.query.get("options", "")
        options = f"{given} -c idle_in_transaction_session_timeout={_IDLE_TIMEOUT_MS}".strip()
        return create_engine(self.url, pool_size=16, max_overflow=64, connect_args={"options": options})

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
        """Close every pooled connection, and each that is in use when its use ends."""
        self._is_closed = True
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
        with self._connected() as opened:
            begin = {"lakehouse_begin": "BEGIN IMMEDIATE"} if self.is_sqlite else {}
            connection = opened.execution_options(**begin)
            with self._queue, self._giving_up_broken(connection, stage), connection.begin() as transaction:
                result = self._written(connection, transaction, stage, work, last, settled)
            if durable and self.is_sqlite and SYNCS_LOG:
                self._sync_log()
            return result

    def _written(
        self,
        connection: Connection,
        transaction: RootTransaction,
        stage: _Stage,
        work: Callable[[Connection], T],
        last: Callable[[Connection, T], None] | None,
        settled: Callable[[Connection], T | None] | None,
    ) -> T:
        if settled is not None:
            take_head(connection)
            found = settled(connection)
            if found is not None:
                return found
        result = work(connection)
        with pipelined(connection) if last is not None else nullcontext():
            if last is not None:
                last(connection, result)
            stage.committing = True
            transaction.commit()
        return result

    def _sync_log(self) -> None:
        """Wait until SQLite's log is on the disk, and so what this process committed and all that it stands on.

        What SQLite's own ``synchronous=FULL`` does before it lets the next writer in. The log is gone only when all of
        it was brought into the database, which SQLite synced.
        """
        try:
            handle = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unsynced(error) from error
        try:
            os.fdatasync(handle)
        except OSError as error:
            raise self._unsynced(error) from error
        finally:
            os.close(handle)

    def _unsynced(self, error: OSError) -> CommitUnknown:
        return CommitUnknown(
            "a commit is there but its disk did not confirm it; check the disk, then read the commit back",
            path=self._log,
            cause=error,
        )

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._translating(), self.engine.connect() as opened:
            try:
                yield opened
            finally:
                if self._is_closed and not opened.invalidated:
                    opened.detach()  # its pool was given up meanwhile

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Raise an error of the driver, from a prepared statement, as SQLAlchemy raises those of its own."""
        try:
            yield
        except self._driver_error as error:
            dialect = self.engine.dialect
            raise DBAPIError.instance(None, None, error, self._driver_error, dialect=dialect) from error

    @contextmanager
    def _giving_up_broken(self, connection: Connection, stage: _Stage | None = None) -> Iterator[None]:
        """Take a connection out of the pool that a statement found broken, or whose commit failed.

        A transaction whose COMMIT was sent with statements that failed stays open, and nobody ends it.
        """
        try:
            yield
        except (self._driver_error, DBAPIError) as error:
            driver = connection.connection.driver_connection if not connection.invalidated else None
            was_committing = stage is not None and stage.committing
            if driver is not None and (was_committing or getattr(driver, "closed", False)):
                connection.invalidate(error)
            raise

    def read(self, question: Callable[[Connection], T]) -> T:
        """Ask one state of the catalog, in a read-only transaction; again on a new connection if one was lost."""
        for pause_seconds in _RECONNECT_SECONDS:
            if pause_seconds:
                time.sleep(pause_seconds)  # there is no event for a server that comes back
            try:
                with self._connected() as opened:
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
_LINE = Prepared(lambda _: select(func.pg_advisory_xact_lock(literal_column("776941"))))
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


def stand_in_line(connection: Connection) -> None:
    """Wait for one's turn at the head, which is to be taken next. It is a courtesy: the head's row is what excludes.

    PostgreSQL gives a row that many wait for to whoever wakes first; an advisory lock, to the first in the line.
    """
    if connection.dialect.name != "sqlite":
        _LINE.run(connection, {})


def take_head(connection: Connection) -> None:
    """Hold the head until the transaction ends, so that what is read next cannot change."""
    stand_in_line(connection)
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
    journal = "WAL" if WRITES_AHEAD else "DELETE"
    for pragma in (
        f"busy_timeout={_BUSY_TIMEOUT_MS}",
        f"journal_mode={journal}",
        f"synchronous={'NORMAL' if SYNCS_LOG else 'FULL'}",
        "foreign_keys=ON",
        f"cache_size=-{_CACHE_KIBIBYTES}",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    # On the driver: SQLAlchemy's way to it takes longer than all that SQLite does here, and others wait meanwhile.
    begin = connection.get_execution_options().get("lakehouse_begin", "BEGIN")
    connection.connection.cursor().execute(begin)


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
    if state is None or state[:2] == "08" or state in ("25P03", "40003", "57P01", "57P02", "57P03"):
        return _Reaction.RECONNECT
    return _Reaction.RAISE


def _translated(error: DBAPIError, url: URL) -> Exception:
    if isinstance(error, IntegrityError):
        return Refused("the catalog refused a statement", cause=str(error.orig).strip())
    if isinstance(error, ProgrammingError | DataError | InterfaceError):
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

__all__ = ["WAL_IS_SAFE_FROM", "Database", "sqlite", "stand_in_line", "take_head"]
