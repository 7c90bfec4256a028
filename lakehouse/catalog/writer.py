"""Writes to a catalog: tables and tags; operations: begin, locks, leases, commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from lakehouse import interrupts
from lakehouse.catalog.commit import tables
from lakehouse.catalog.locks import locks, operations
from lakehouse.catalog.locks.locks import Wanted
from lakehouse.catalog.locks.operations import new_id
from lakehouse.catalog.locks.preregistered import PreregisteredAppends
from lakehouse.catalog.locks.waiting import Waiting
from lakehouse.catalog.reader import CatalogReader
from lakehouse.catalog.state import key_frames
from lakehouse.catalog.state.tombstone_sets import FilesNeeded, ReadFile
from lakehouse.catalog.store.database import Database, take_head
from lakehouse.catalog.store.reaction import Refused
from lakehouse.catalog.versions import log
from lakehouse.catalog.versions.horizon import gone, keep_horizon
from lakehouse.core.activity import Activity
from lakehouse.core.commit import Commit
from lakehouse.core.conflict import Cell
from lakehouse.core.contribution import Contribution
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.listing import Listing
from lakehouse.core.lock import ChunkLock
from lakehouse.core.operation import Begun, Kind, Priority
from lakehouse.core.ordinal import draws_number
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.view import View
from lakehouse.errors import UnknownOperation
from lakehouse.faults import reach

if TYPE_CHECKING:
    from lakehouse.catalog.commit import commit
    from lakehouse.catalog.commit.one_trip_append import OneTripAppend

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class CatalogWriter(CatalogReader):
    """Changes of tables and tags, and operations from begin to end."""

    def __init__(self, database: Database, read_file: ReadFile, *, lease_seconds: float) -> None:
        super().__init__(database, read_file)
        self.lease_seconds = lease_seconds
        self._frames = key_frames.FrameWriter(database, self._states)
        self._reserve = PreregisteredAppends(database, lease_seconds)
        self._waiting = Waiting(database)

    @property
    def waiting(self) -> Waiting:
        """Where this process waits for what it commits, and for the locks that it releases."""
        return self._waiting

    def _run(self, work: Callable[Concatenate[Connection, P], T], *given: P.args, **named: P.kwargs) -> T:
        """Call a function with a connection and the given arguments in one writing transaction."""
        return self._database.run(lambda connection: work(connection, *given, **named))

    # Tables, views and tags

    def create_table(self, spec: TableSpec) -> tuple[TableSpec, int]:
        """Create a table and return its definition with its id. Raises `AlreadyExists`."""
        with interrupts.committing():
            return self._run(tables.create_table, spec)

    def rename_table(self, old: str, new: str) -> None:
        """Rename a table."""
        with interrupts.committing():
            self._database.run(
                lambda connection: tables.rename_table(connection, old, new),
                settled=lambda connection: True if tables.find_table(connection, new) else None,
            )

    def set_properties(self, name: str, change: tables.Change) -> tuple[TableSpec, Commit]:
        """Change a table's properties; its new definition, and the commit."""

        def work(connection: Connection) -> tuple[TableSpec, Commit]:
            spec, version = tables.set_properties(connection, name, change)
            return spec, log.read_commits(connection, version=version)[0]

        with interrupts.committing():
            return self._database.run(work)

    def drop_table(self, name: str) -> None:
        """Drop a table."""
        with interrupts.committing():
            self._database.run(
                lambda connection: tables.drop_table(connection, name),
                settled=lambda connection: None if tables.find_table(connection, name) else True,
            )

    def replace_table(self, old: str, new: str) -> None:
        """Drop a table and give its name to another one, as one version. Raises `TableNotFound`."""
        with interrupts.committing():
            self._database.run(
                lambda connection: tables.replace_table(connection, old, new),
                settled=lambda connection: None if tables.find_table(connection, new) else True,
            )

    def drop_forsaken(self, grace_seconds: float) -> None:
        """Drop what was to replace tables where nobody fills it any more and it is older than a grace."""

        def work(connection: Connection) -> None:
            tables.drop_forsaken(connection, self._database.now_us(connection) - int(grace_seconds * 1_000_000))

        with interrupts.committing():
            self._database.run(work)

    def create_view(self, view: View, *, replaces: bool) -> None:
        """Store a view; with ``replaces``, in the place of one of its name. Raises `AlreadyExists`."""
        from lakehouse.catalog.commit import views  # noqa: PLC0415 - late

        with interrupts.committing():
            self._database.run(
                lambda connection: views.create_view(connection, view, replaces=replaces),
                settled=lambda connection: 0 if views.has_view(connection, view) else None,
            )
        reach("commit.after")

    def drop_view(self, name: str) -> None:
        """Drop a view. Raises `ViewNotFound`."""
        from lakehouse.catalog.commit import views  # noqa: PLC0415 - late

        with interrupts.committing():
            self._database.run(
                lambda connection: views.drop_view(connection, name),
                settled=lambda connection: None if views.find_view(connection, name) else True,
            )
        reach("commit.after")

    def tag(self, name: str, as_of: Any) -> None:
        """Name a version."""

        def work(connection: Connection) -> None:
            keep_horizon(connection)
            version = log.resolve_version(connection, as_of)
            log.add_tag(connection, name, version, self._database.now_us(connection))

        with interrupts.committing():
            self._database.run(work)

    def untag(self, name: str) -> None:
        """Remove a tag."""
        with interrupts.committing():
            self._run(log.remove_tag, name)

    # Operations

    def locks(self, spec: TableSpec) -> Listing[ChunkLock]:
        """Every lock on a table."""
        return self._read(locks.read_locks, spec)

    def activity(self) -> Activity:
        """Running operations, the locks of all tables, and who waits for them."""
        from lakehouse.catalog.inspect import activity  # noqa: PLC0415 - late

        return self._read(lambda connection: activity.read_activity(connection, self._database.now_us(connection)))

    def living_operations(self) -> frozenset[str]:
        """Ids of operations that may still write and commit, those that are preregistered too."""
        from lakehouse.catalog.inspect import activity  # noqa: PLC0415 - late

        return self._read(lambda connection: activity.read_living(connection, self._database.now_us(connection)))

    def begin(
        self,
        spec: TableSpec,
        kind: Kind,
        *,
        interval: Interval | None = None,
        keys: KeyScope | None = None,
        priority: Priority = Priority.USER,
        wait_seconds: float = 0.0,
        ahead: bool = False,
    ) -> Begun:
        """Register an operation; with an interval, wait for its chunks' locks. Raises `LockTimeout`.

        An append with ``ahead`` may use a preregistered operation, which is not shown as running at once.
        """
        with self._knowing(spec):
            if kind is Kind.APPEND and not draws_number(kind, spec.write_order):
                begun = self._reserve.take(spec) if ahead else self._reserve.register(spec)[0]
            else:
                wanted = None if interval is None else Wanted(spec, Cell.around(interval, spec.grain, keys), priority)
                begun = self._begin_under_head(spec, kind, interval, wanted, wait_seconds)
        reach("begin.registered")
        return begun

    @contextmanager
    def _knowing(self, spec: TableSpec) -> Iterator[None]:
        """Raise `TableNotFound` if the catalog refuses an operation because its table is gone."""
        try:
            yield
        except Refused as error:
            if self._read(tables.is_forgotten, spec.id):
                raise gone(spec) from error
            raise

    def _begin_under_head(
        self,
        spec: TableSpec,
        kind: Kind,
        interval: Interval | None,
        wanted: Wanted | None,
        wait_seconds: float,
    ) -> Begun:
        operation_id = new_id()

        def attempt(place: int | None) -> Begun:
            def work(connection: Connection) -> Begun:
                take_head(connection)
                return operations.begin(
                    connection,
                    spec,
                    kind,
                    operation_id=operation_id,
                    now_us=self._database.now_us(connection),
                    lease_us=int(self.lease_seconds * 1_000_000),
                    interval=interval,
                    wanted=None if wanted is None else replace(wanted, place=place),
                )

            return self._begin(work)

        if wanted is None:
            return attempt(None)
        return self._waiting.in_turn(attempt, wanted, operation_id, kind, wait_seconds)

    def _begin(self, work: Callable[[Connection], Begun]) -> Begun:
        begun: list[Begun] = []

        def attempt(connection: Connection) -> Begun:
            begun[:] = [work(connection)]
            return begun[0]

        def settled(connection: Connection) -> Begun | None:
            found = operations.is_registered(connection, begun[0].id) if begun else False
            return begun[0] if found else None

        return self._database.run(attempt, settled=settled)

    def wait_until_free(self, spec: TableSpec, interval: Interval, keys: KeyScope | None, wait_seconds: float) -> None:
        """Wait until no user's operation holds chunks of an interval. Raises `LockTimeout`."""
        wanted = Wanted(spec, Cell.around(interval, spec.grain, keys), Priority.USER)

        def look() -> None:
            self._read(lambda connection: locks.check_free(connection, wanted, self._database.now_us(connection)))

        self._waiting.until_free(look, spec, wait_seconds)

    def renew(self, begun: Iterable[Begun]) -> None:
        """Renew the leases of running operations by ``lease_seconds``."""
        numbers = [one.number for one in begun]
        lease_us = int(self.lease_seconds * 1_000_000)

        def work(connection: Connection) -> None:
            operations.renew(connection, numbers, self._database.now_us(connection) + lease_us)

        self._database.run(work)

    def abort(self, begun: Begun) -> bool:
        """End an operation without a commit; False if it was committed, else its files can never become visible."""
        reach("abort.before")
        ended = self._run(operations.abort, begun)
        self._waiting.notify()
        return ended

    def release(self, operation_id: str, *, if_running: bool = False) -> None:
        """End any running operation. Raises `InvalidInput` if no such operation runs."""
        ended = self._run(operations.release_by_id, operation_id)
        if not ended and not if_running:
            raise UnknownOperation("no such operation runs; see the locks for those that do", operation=operation_id)
        self._waiting.notify()

    def commit(
        self,
        contributions: Sequence[Contribution],
        *,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
        wait_seconds: float = 0.0,
    ) -> Commit:
        """Make operations visible as one version, and return it.

        Operations whose ``txn`` was committed before are left out and ended; if that is true of all, the first commit
        is returned and nothing changes. A lost answer is resolved by operation id. Raises `LockLost`, `TableNotFound`,
        `CommitUnknown`, or `LockTimeout` if a restore waited too long for a replace.
        """
        from lakehouse.catalog.commit import commit  # noqa: PLC0415 - late
        from lakehouse.catalog.commit.one_trip_append import OneTripAppend, fits_one_trip  # noqa: PLC0415 - late

        reach("commit.before")
        database = self._database
        given = dict(properties) if properties else None

        def work(connection: Connection) -> commit.Recorded:
            return commit.record(connection, self._states, self._sets, contributions, message=message, properties=given)

        def settled(connection: Connection) -> commit.Recorded | None:
            versions = [commit.committed_version(connection, one) for one in contributions]
            if None in versions:
                return None
            return commit.Recorded(commit.logged(connection, max(filter(None, versions)), contributions))

        @interrupts.committing()
        def attempt() -> commit.Recorded:
            if not database.is_sqlite and fits_one_trip(contributions):
                one_trip = OneTripAppend(contributions[0], message=message, properties=given)
                try:
                    return (
                        database.run(lambda _: None, last=lambda at, _: _write(at, one_trip), settled=settled)
                        or one_trip.recorded()
                    )
                except Refused as refused:
                    logger.debug("an append could not be committed in one trip: %s", refused)
            while True:
                try:
                    return database.run(work, last=_write, settled=settled)
                except FilesNeeded as needed:
                    self._sets.load(needed.tombstones)

        try:
            recorded = self._waiting.until_free(attempt, contributions[0].begun.table, wait_seconds)
        except commit.AlreadyCommitted as already:
            return self._repeated(already.version, contributions)
        reach("commit.after")
        self._waiting.notify()
        for spec, bins in recorded.due():
            self._frames.write_due(spec, bins, recorded.commit.version)
        return recorded.commit

    def _repeated(self, version: int, contributions: Sequence[Contribution]) -> Commit:
        """The earlier commit; operations that would have repeated it are ended."""
        from lakehouse.catalog.commit import commit  # noqa: PLC0415 - late

        first = self._read(commit.logged, version, contributions)
        begun = [one.begun for one in contributions]
        self._database.run(lambda connection: [operations.abort(connection, one) for one in begun])
        self._waiting.notify()
        return first

    def committed(self, table: TableId, mark: tuple[str, int]) -> bool:
        """Whether a ``txn`` was committed on a table."""
        from lakehouse.catalog.commit import commit  # noqa: PLC0415 - late

        return self._read(lambda connection: commit.marked_version(connection, table, mark) is not None)


def _write(connection: Connection, recorded: commit.Recorded | OneTripAppend) -> None:
    """Write what a commit records."""
    recorded.write(connection)
    interrupts.check()  # last chance: COMMIT comes next
