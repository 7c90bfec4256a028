"""Connections and transactions on the catalog's database: SQLite or PostgreSQL, one behaviour.

Rules, each measured (ADR 0002): SQLite runs WAL with ``BEGIN IMMEDIATE`` and syncs its log before anybody can see a
commit; PostgreSQL runs READ COMMITTED under the head row. Errors are classified by code, never by their text. Writers
to one SQLite file wait in one queue, across threads and processes, because SQLite's own waiting has growing pauses and
is unfair.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    RootTransaction,
    create_engine,
    event,
    func,
    literal_column,
    select,
)
from sqlalchemy.exc import DBAPIError

from lakehouse.catalog.store import models
from lakehouse.catalog.store.clock import read_clock
from lakehouse.catalog.store.damage import UNREADABLE, find_damage
from lakehouse.catalog.store.opening import configure, prepare_file, read_url, sqlite
from lakehouse.catalog.store.prepared import Prepared, pipelined
from lakehouse.catalog.store.presence import Presence
from lakehouse.catalog.store.reaction import Reaction, Tries, damaged, reaction_of, translated
from lakehouse.catalog.store.writer_queue import writer_queue
from lakehouse.errors import (
    CatalogHeld,
    CatalogUnavailable,
    CommitUnknown,
    InvalidArgument,
    LakeClosed,
    LakehouseError,
)
from lakehouse.extras import named
from lakehouse.forks import stop_for_forks, watch_forks

T = TypeVar("T")


IDLE_TIMEOUT_MS = 30_000
FORK_SECONDS = 5.0
"""How long a fork waits for transactions of other threads."""


class Database:
    """A catalog's database.

    ``run`` calls a function of a connection in one transaction. The function may be called again, so it must have no
    effect except through its connection.
    """

    def __init__(self, url: str) -> None:
        self.url = read_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = self._sqlite_engine() if self.is_sqlite else self._server_engine()
        self._driver_error: type[Exception] = self.engine.dialect.loaded_dbapi.Error
        self._queue = writer_queue(str(self.url.database)) if self.is_sqlite else _NoQueue()
        self._is_closed = False
        self._presence: Presence | None = None
        self._coming = threading.Lock()
        self._snapshot = threading.local()
        self._uses, self._uses_change, self._is_torn = 0, threading.Condition(), False
        stop_for_forks(self)
        watch_forks(self)
        self._come()

    def _come(self) -> None:
        """Be present at a SQLite file before anything is read from it, until this object is closed or unused."""
        tries = Tries()
        while self.is_sqlite and self._presence is None:
            try:
                with self._translating(), self._coming:
                    self._be_present()
            except CatalogHeld:
                if not tries.again(Reaction.WAIT):
                    raise
            except DBAPIError as error:
                reaction = reaction_of(error)
                if not tries.again(reaction):
                    raise translated(error, self.url, reaction) from error

    def _present(self) -> Connection:
        self._come()
        return self.engine.connect()

    def _be_present(self) -> None:
        if self._presence is None:
            self._presence = Presence(Path(str(self.url.database)))
            weakref.finalize(self, self._presence.end)

    def _server_engine(self) -> Engine:
        # A process paused within a transaction must not hold its rows, or the head, for ever.
        given = self.url.query.get("options", "")
        options = f"{given} -c idle_in_transaction_session_timeout={IDLE_TIMEOUT_MS}".strip()
        with named():
            engine = create_engine(self.url, pool_size=16, max_overflow=64, connect_args={"options": options})
        event.listen(engine, "connect", lambda connection, _: _flush_first(connection))
        return engine

    def _sqlite_engine(self) -> Engine:
        prepare_file(Path(str(self.url.database)))
        engine = create_engine(
            self.url, module=sqlite, pool_size=16, max_overflow=64, connect_args={"check_same_thread": False}
        )
        event.listen(engine, "connect", lambda connection, _: configure(connection))
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def close(self) -> None:
        """Close every pooled connection, and connections in use when their use ends."""
        self._is_closed = True
        self.engine.dispose()
        self._go()

    def _go(self) -> None:
        if self._presence is not None:
            self._presence.end()
            self._presence = None

    def before_fork(self) -> None:
        """Close every connection to a SQLite file: the library in a child would take its parent's locks for its own.

        Waits for running transactions, but not for ever: a child forked during one cannot use the catalog.
        """
        self._uses_change.acquire()
        if self.is_sqlite and self._uses_change.wait_for(lambda: not self._uses, FORK_SECONDS):
            self.engine.dispose()
            self._go()

    def go_on(self) -> None:
        """The parent opens connections again as it needs them."""
        self._uses_change.release()

    def after_fork(self) -> None:
        """A child opens its own connections."""
        self._is_torn = self.is_sqlite and self._uses > 0
        self._uses, self._uses_change = 0, threading.Condition()
        self._coming, self._snapshot = threading.Lock(), threading.local()
        self.engine.dispose(close=False)

    @contextmanager
    def _used(self) -> Iterator[None]:
        if self._is_torn:
            raise CatalogUnavailable(
                "this process was forked while its parent was in a transaction; fork when none runs, or start processes"
                " by spawn",
                catalog=self.url.database,
            )
        with self._uses_change:
            self._uses += 1
        try:
            yield
        finally:
            with self._uses_change:
                self._uses -= 1
                self._uses_change.notify_all()

    def run(
        self,
        work: Callable[[Connection], T],
        *,
        last: Callable[[Connection, T], None] | None = None,
        settled: Callable[[Connection], T | None] | None = None,
        wait_seconds: float | None = None,
    ) -> T:
        """Run ``work`` in one writing transaction; retry after a serialisation failure or a lost connection.

        ``last`` gets its result and writes more, by prepared statements only, which are sent together with COMMIT.
        ``settled`` looks up what an earlier try may have committed; it is called, under the head, after a connection
        was lost or a disk refused to sync. Raises `CommitUnknown` if a commit's answer was lost and the catalog cannot
        be asked, else `CatalogUnavailable`; `CatalogHeld` when another program holds the database for ``wait_seconds``
        (`WAIT_SECONDS` if not given).
        """
        tries, was_committing = Tries(wait_seconds), False
        while True:
            stage = _Stage()
            try:
                return self._once(stage, work, last, settled if was_committing else None)
            except UNREADABLE as error:
                self._refuse_damaged(error)
                raise
            except DBAPIError as error:
                reaction = reaction_of(error)
                if reaction is Reaction.DISTRUST and stage.committing:
                    return self._found_whole(settled, error)
                was_committing = was_committing or (reaction is Reaction.RECONNECT and stage.committing)
                if tries.again(reaction):
                    continue
                if was_committing and reaction is not Reaction.RAISE:
                    raise CommitUnknown(
                        "the answer to a commit was lost and the catalog cannot be asked; read it back when it is up",
                        cause=error.orig,
                    ) from error
                raise translated(error, self.url, reaction) from error

    def _once(
        self,
        stage: _Stage,
        work: Callable[[Connection], T],
        last: Callable[[Connection, T], None] | None,
        settled: Callable[[Connection], T | None] | None,
    ) -> T:
        with self._connected() as opened:
            begin = {"lakehouse_begin": "BEGIN IMMEDIATE"} if self.is_sqlite else {}
            connection = opened.execution_options(**begin)
            with self._queue, self._giving_up_broken(connection, stage), connection.begin() as transaction:
                return self._written(connection, transaction, stage, work, last, settled)

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

    def _found_whole(self, settled: Callable[[Connection], T | None] | None, error: DBAPIError) -> T:
        """What an earlier try committed whose sync the disk refused; raises if that is nothing, or unknown.

        SQLite never shows a commit that it could not sync, and writes the next one over it. This does so on a new
        connection, with a transaction that changes nothing: once the disk accepts it, the refused commit is not in the
        log, and everything before it was synced before it was visible.
        """
        self.engine.dispose()
        try:
            found = self._once(_Stage(), take_head, None, settled)
        except (DBAPIError, CatalogUnavailable) as again:
            raise CommitUnknown(
                "the disk did not confirm a commit and still refuses; check the disk, then read the commit back",
                catalog=self.url.database,
                cause=error.orig,
            ) from again
        if found is not None:
            return found
        unknown = CommitUnknown if settled is None else CatalogUnavailable
        raise unknown(
            "the disk refused the commit, so nothing was committed; check the disk and try again",
            catalog=self.url.database,
            cause=error.orig,
        ) from error

    def _require_open(self) -> None:
        if self._is_closed:
            raise LakeClosed("the lake is closed; connect again", catalog=self.url.render_as_string())

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        self._require_open()
        with self._used(), self._translating(), self._present() as opened:
            try:
                yield opened
            finally:
                if self._is_closed and not opened.invalidated:
                    opened.detach()  # its pool was discarded meanwhile

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Raise an error of the driver, from a prepared statement, as SQLAlchemy raises those of its own."""
        try:
            yield
        except UnicodeEncodeError as error:
            raise InvalidArgument(
                "a text holds half of a character (a surrogate), which no catalog can store; remove it"
            ) from error
        except UnicodeDecodeError as error:  # the driver reads texts, and SQLite's own messages, as UTF-8
            raise damaged(self.url, error) from error
        except self._driver_error as error:
            dialect = self.engine.dialect
            raise DBAPIError.instance(None, None, error, self._driver_error, dialect=dialect) from error

    @contextmanager
    def _giving_up_broken(self, connection: Connection, stage: _Stage | None = None) -> Iterator[None]:
        """Remove a connection from the pool that is broken, or whose commit failed.

        A transaction whose COMMIT was sent with failed statements stays open, and nothing would end it.
        """
        try:
            yield
        except (self._driver_error, DBAPIError) as error:
            driver = connection.connection.driver_connection if not connection.invalidated else None
            was_committing = stage is not None and stage.committing
            if driver is not None and (was_committing or getattr(driver, "closed", False)):
                connection.invalidate(error)
            raise

    def read(self, question: Callable[[Connection], T], *, wait_seconds: float | None = None) -> T:
        """Query one state of the catalog in a read-only transaction; retry on a new connection if one was lost.

        Raises `CatalogUnavailable`, `CatalogHeld` when another program holds
        the database for ``wait_seconds`` (`WAIT_SECONDS` if not given).
        """
        held: Connection | None = getattr(self._snapshot, "connection", None)
        if held is not None:
            return question(held)
        tries = Tries(wait_seconds)
        while True:
            try:
                with self._connected() as opened:
                    connection = opened if self.is_sqlite else opened.execution_options(**_SNAPSHOT)
                    with self._giving_up_broken(connection), connection.begin():
                        return question(connection)
            except UNREADABLE as error:
                self._refuse_damaged(error)
                raise
            except DBAPIError as error:
                reaction = reaction_of(error)
                if not tries.again(reaction):
                    raise translated(error, self.url, reaction) from error

    def snapshot(self, work: Callable[[], T]) -> T:
        """Run ``work`` such that every `read` of this thread in it sees one state. It may be run again, as in `read`.

        It must write nothing: without a write-ahead log, SQLite writes only when nobody reads.
        """

        def question(connection: Connection) -> T:
            self._snapshot.connection, self._snapshot.found = connection, {}
            try:
                return work()
            finally:
                self._snapshot.connection = self._snapshot.found = None

        return self.read(question)

    def once(self, key: Hashable, look: Callable[[], T]) -> T:
        """What ``look`` finds; inside of `snapshot` each key is looked for once, since nothing changes there."""
        found: dict[Hashable, T] | None = getattr(self._snapshot, "found", None)
        if found is None:
            return look()
        if key not in found:
            found[key] = look()
        return found[key]

    def vacuum(self) -> None:
        """Write a SQLite file anew without what was deleted, and empty its log. Waits for whoever holds it.

        Raises `InvalidArgument` for a server's database, `CatalogHeld`.
        """
        if not self.is_sqlite:
            raise InvalidArgument(
                "only a SQLite file is written anew; ask who runs the server for VACUUM FULL", catalog=self.url.database
            )
        tries = Tries()
        while True:
            try:
                with self._connected() as opened, self._giving_up_broken(opened):
                    cursor = opened.connection.cursor()
                    cursor.execute("VACUUM")
                    cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    is_read, *_ = cursor.fetchone() or (1,)
                    cursor.close()
                    if is_read:  # so what was deleted is still in the file
                        raise CatalogHeld(
                            "others read the catalog, so its file could not be written anew; vacuum again later",
                            catalog=self.url.database,
                        )
                    return
            except DBAPIError as error:
                reaction = reaction_of(error)
                if not tries.again(reaction):
                    raise translated(error, self.url, reaction) from error

    def _refuse_damaged(self, error: Exception) -> None:
        """Raise `CatalogUnavailable` if an error comes from damaged values in the catalog."""
        if not isinstance(error, LakehouseError):
            self.check_values(error)

    def check_values(self, error: Exception | None = None) -> None:
        """Raise `CatalogUnavailable` if some value is not one that a release writes. Cost: a pass over the catalog."""
        with self._connected() as connection, connection.begin():
            found = find_damage(connection)
        if found is not None:
            raise damaged(self.url, found) from error

    def now_us(self, connection: Connection) -> int:
        """The catalog's clock in microseconds."""
        return read_clock(connection, writes="lakehouse_begin" in connection.get_execution_options())


class _Stage:
    """How far a transaction got, for the handler of its error."""

    def __init__(self) -> None:
        self.committing = False


class _NoQueue:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_SNAPSHOT: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
_LINE = Prepared(lambda _: select(func.pg_advisory_xact_lock(literal_column("776941"))))
_TAKE_HEAD = models.lake.update().values(id=1)


def stand_in_line(connection: Connection) -> None:
    """Queue for the head before taking it. This is only for fairness: the head's row is what excludes.

    PostgreSQL gives a contended row to whichever waiter wakes first, but an advisory lock to the first in the queue.
    """
    if connection.dialect.name != "sqlite":
        _LINE.run(connection, {})


def take_head(connection: Connection) -> None:
    """Hold the head until the transaction ends, so that what is read next cannot change."""
    stand_in_line(connection)
    connection.execute(_TAKE_HEAD)


def _flush_first(connection: Any) -> None:
    """Make sure that a server acknowledges a commit, and shows it to others, only after its log is on the disk."""
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.commit()


def _begin_sqlite(connection: Connection) -> None:
    # Directly on the driver: SQLAlchemy takes longer than SQLite's whole work here, while others wait.
    begin = connection.get_execution_options().get("lakehouse_begin", "BEGIN")
    connection.connection.cursor().execute(begin)


__all__ = ["Database", "sqlite", "stand_in_line", "take_head"]
