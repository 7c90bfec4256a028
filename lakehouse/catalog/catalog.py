"""The catalog as the rest of the library sees it: core values in, core values out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection

from lakehouse.catalog import (
    activity,
    commit,
    expiry,
    exporting,
    frames,
    locks,
    log,
    operations,
    overview,
    pins,
    plancounts,
    tables,
)
from lakehouse.catalog.checking import Checks
from lakehouse.catalog.collection import Collection
from lakehouse.catalog.database import Database, take_head
from lakehouse.catalog.history import read_history, read_origins, versions_touching
from lakehouse.catalog.horizon import check_readable, keep_horizon
from lakehouse.catalog.listing import list_changes, list_chunks
from lakehouse.catalog.migration import ensure_migrated
from lakehouse.catalog.operations import new_id
from lakehouse.catalog.planning import changed_entries, entries_between
from lakehouse.catalog.sets import FilesNeeded, ReadFile, Sets, no_files
from lakehouse.catalog.state import BinState, StateReader, extent_of, live_in, touching
from lakehouse.catalog.summaries import Summaries
from lakehouse.catalog.tasks import TaskQueue
from lakehouse.catalog.waiting import Waiting
from lakehouse.core.activity import Activity
from lakehouse.core.commit import (
    ChainLength,
    ChainLink,
    Chunk,
    ChunkLock,
    Commit,
    Diff,
    EntryDiff,
    KeyFrame,
    Origin,
    TableSummary,
    Touch,
)
from lakehouse.core.conflict import Cell
from lakehouse.core.expire import Expired, Wish
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.keys import KeyScope
from lakehouse.core.listing import Listing
from lakehouse.core.operation import Begun, Contribution, Kind, Priority
from lakehouse.core.segments import Segments
from lakehouse.core.sets import MatchSet
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.errors import InvalidInput
from lakehouse.faults import reach

T = TypeVar("T")


class Catalog:
    """A SQL catalog: tables, versions, locks and operations of one lake.

    Thread-safe. Opens (and on first use migrates) the database at ``url``. ``lease_seconds`` is how long an operation
    keeps its locks when its process stops renewing them, ``read_file`` reads what tombstones keep in the warehouse.
    """

    def __init__(self, url: str, *, lease_seconds: float = 60.0, read_file: ReadFile = no_files) -> None:
        self.lease_seconds = lease_seconds
        self._database = Database(url)
        ensure_migrated(self._database)
        self._states = StateReader()
        self._sets = Sets(read_file)
        self._frames = frames.FrameWriter(self._database, self._states)
        self._waiting = Waiting(self._database)
        self.summaries = Summaries(self._database)

    @property
    def url(self) -> str:
        """The database's address, without its password."""
        return self._database.url.render_as_string(hide_password=True)

    @property
    def address(self) -> str:
        """The database's address as it was given, password and all: for other processes, not for people."""
        return self._database.url.render_as_string(hide_password=False)

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def _read(self, question: Callable[[Connection], T]) -> T:
        return self._database.read(question)

    # Tables

    def table(self, name: str) -> tuple[TableSpec, int]:
        """A table's definition and the version that created it. Raises `TableNotFound`."""
        return self._read(lambda connection: tables.get_table(connection, name))

    def table_names(self) -> list[str]:
        """Names of the tables, sorted."""
        return self._read(tables.table_names)

    def overview(self, days: int = 14) -> Listing[TableSummary]:
        """Every table at a glance. Cost: one pass over the live segments, in the database."""
        return self._read(lambda c: overview.read_overview(c, now_us=self._database.now_us(c), days=days))

    def create_table(self, spec: TableSpec) -> tuple[TableSpec, int]:
        """Create a table and return its definition with its id. Raises `AlreadyExists`."""
        return self._database.run(lambda connection: tables.create_table(connection, spec))

    def rename_table(self, old: str, new: str) -> None:
        """Rename a table."""
        self._database.run(
            lambda connection: tables.rename_table(connection, old, new),
            settled=lambda connection: True if tables.find_table(connection, new) else None,
        )

    def set_properties(self, name: str, change: tables.Change) -> TableSpec:
        """Give a table other properties."""
        return self._database.run(lambda connection: tables.set_properties(connection, name, change))

    def drop_table(self, name: str) -> None:
        """Drop a table."""
        self._database.run(
            lambda connection: tables.drop_table(connection, name),
            settled=lambda connection: None if tables.find_table(connection, name) else True,
        )

    # Versions

    def head(self) -> int:
        """The newest version."""
        return self._read(log.read_head)

    def commits(
        self,
        table: TableId | None = None,
        limit: int | None = None,
        *,
        before: int | None = None,
        operation: str | None = None,
        touching: tuple[TableSpec, Interval] | None = None,
    ) -> Listing[Commit]:
        """The log, newest first: older than a version, of a kind, or of what changed an interval of a table."""
        touched = None if touching is None else versions_touching(*touching)
        return self._read(
            lambda connection: log.read_commits(
                connection, table=table, limit=limit, before=before, operation=operation, touching=touched
            )
        )

    def history(self, spec: TableSpec, interval: Interval, limit: int | None = None) -> Listing[Touch]:
        """What versions did to an interval, newest first."""
        return self._read(lambda connection: read_history(connection, spec, interval, limit))

    def newest_version(self, table: TableId, created: int) -> int:
        """A table's newest version."""
        return self._read(lambda connection: log.newest_version(connection, table, created))

    def table_version(self, spec: TableSpec, created: int, as_of: Any) -> int:
        """A table's newest version at or before what ``as_of`` means. Raises `VersionNotFound`."""
        return self.point(spec, created, as_of)[0]

    def point(self, spec: TableSpec, created: int, as_of: Any) -> tuple[int, int]:
        """A table's newest version at or before what ``as_of`` means, and the version that a reader of it has to pin.

        Raises `VersionNotFound`.
        """
        return self._read(lambda connection: log.resolve_on_table(connection, spec, created, as_of))

    def tag(self, name: str, as_of: Any) -> None:
        """Name a version."""

        def work(connection: Connection) -> None:
            keep_horizon(connection)
            version = log.resolve_version(connection, as_of)
            log.add_tag(connection, name, version, self._database.now_us(connection))

        self._database.run(work)

    def untag(self, name: str) -> None:
        """Forget a tag."""
        self._database.run(lambda connection: log.remove_tag(connection, name))

    def tags(self) -> dict[str, int]:
        """Versions by tag."""
        return self._read(log.read_tags)

    def export(self, write: exporting.WritePart) -> exporting.Snapshot:
        """Write every part of an export, all from one state of the catalog; called again from the start if need be."""
        return self._read(lambda connection: exporting.export(connection, write))

    # State

    def states(self, spec: TableSpec, version: int, interval: Interval | None = None) -> dict[int, BinState]:
        """What is live at a version, by bin, in the bins that may hold what touches an interval (None: all).

        Raises `VersionNotFound` if the version has been forgotten.
        """
        ranges = touching(spec, interval)

        def question(connection: Connection) -> dict[int, BinState]:
            check_readable(connection, spec, version)
            return self._states.read(connection, spec, version, ranges)

        return self._read(question)

    def live(self, spec: TableSpec, version: int, interval: Interval | None = None) -> tuple[Segments, list[Tombstone]]:
        """Live segments and tombstones, each once, by id, that touch the chunks that an interval touches.

        Cost: the bins that hold those chunks and, of each, what changed since this process last saw it.
        """
        segments, held = live_in(self.states(spec, version, interval).values())
        tombstones = [held[entry] for entry in sorted(held)]
        if interval is None:
            return segments, tombstones
        aligned = spec.grain.align(interval)
        return segments.within(aligned), [one for one in tombstones if aligned.overlaps(one.interval)]

    def sets(self, tombstones: Iterable[Tombstone]) -> dict[int, MatchSet]:
        """What row and key tombstones match, by their id."""
        listed = list(tombstones)
        files = self._sets.load(listed)
        inline = [one for one in listed if one.id not in files]
        return files | self._read(lambda connection: self._sets.read(connection, inline)) if inline else files

    def chunks(self, spec: TableSpec, version: int) -> Listing[Chunk]:
        """Every chunk with something live, by time. The version is that of its bins, the larger ones included."""
        return list_chunks(spec.grain, self.states(spec, version).values())

    def extent(self, spec: TableSpec) -> Interval | None:
        """From the first to the last chunk that ever held something, or further; None if none ever did."""
        return self._read(lambda connection: extent_of(connection, spec))

    def key_frames(self, spec: TableSpec) -> Listing[KeyFrame]:
        """Every key frame of a table."""
        return self._read(lambda connection: frames.read_key_frames(connection, spec))

    def chain(self, spec: TableSpec, version: int, interval: Interval | None) -> Listing[ChainLink]:
        """The key frames and deltas that make a version's state in the chunks of an interval, by bin."""
        ranges = touching(spec, interval)

        def question(connection: Connection) -> Listing[ChainLink]:
            check_readable(connection, spec, version)
            return frames.read_chain(connection, spec, ranges, version)

        return self._read(question)

    def chain_lengths(self, spec: TableSpec, interval: Interval | None, limit: int) -> Listing[ChainLength]:
        """How long the chains in an interval's chunks are (None: all), those first that were changed last."""
        return self._read(
            lambda connection: frames.read_chain_lengths(connection, spec, touching(spec, interval), limit)
        )

    def film(self, spec: TableSpec, interval: Interval, limit: int) -> Listing[ChainLink]:
        """Every key frame and delta of the bins that hold what may overlap an interval, of each the newest few."""
        return self._read(lambda connection: frames.read_film(connection, spec, touching(spec, interval), limit))

    def replayed(self, spec: TableSpec, version: int, interval: Interval | None = None) -> dict[int, BinState]:
        """The same as `states`, made anew from key frames and deltas with nothing remembered: to measure that."""
        ranges = touching(spec, interval)
        return self._read(lambda connection: StateReader().read(connection, spec, version, ranges))

    def diff(self, spec: TableSpec, a: int, b: int) -> Diff:
        """ADD and DROP by chunk between two versions, in either order. Cost: the bins changed since the older."""
        return Diff(a, b, list_changes(spec.grain, changed_entries(*self._before_and_after(spec, a, b))))

    def entry_diff(self, spec: TableSpec, a: int, b: int, interval: Interval | None = None) -> EntryDiff:
        """The same in columns, of what may touch an interval (None: all)."""
        return entries_between(*self._before_and_after(spec, a, b, interval))

    def _before_and_after(
        self, spec: TableSpec, a: int, b: int, interval: Interval | None = None
    ) -> tuple[dict[int, BinState], dict[int, BinState]]:
        def question(connection: Connection) -> tuple[dict[int, BinState], dict[int, BinState]]:
            older, ranges = min(a, b), touching(spec, interval)
            for version in (a, b):
                check_readable(connection, spec, version)
            return (
                self._states.read(connection, spec, a, ranges, since=older),
                self._states.read(connection, spec, b, ranges, since=older),
            )

        return self._read(question)

    def origins(self, spec: TableSpec, ids: Iterable[int]) -> dict[int, Origin]:
        """Which versions added and dropped some segments and tombstones, by id. Cost: a seek each."""
        return self._read(lambda connection: read_origins(connection, spec, ids))

    # Forgetting

    def pin(self, pin_id: str, spec: TableSpec, version: int, least: int) -> None:
        """Hold versions from ``least`` on for ``lease_seconds``. Raises `VersionNotFound` if ``version`` is gone."""

        def work(connection: Connection) -> None:
            keep_horizon(connection)
            now_us, lease_us = self._database.now_us(connection), int(self.lease_seconds * 1_000_000)
            pins.place(connection, pin_id, spec, version, least=least, now_us=now_us, lease_us=lease_us)

        self._database.run(work, durable=False)

    def renew_pin(self, pin_id: str, least: int) -> bool:
        """Keep a pin for another ``lease_seconds``, from ``least`` on; False if it ran out."""

        def work(connection: Connection) -> bool:
            keep_horizon(connection)  # an expiry takes the pin for living or for dead, and so does this
            now_us, lease_us = self._database.now_us(connection), int(self.lease_seconds * 1_000_000)
            return pins.renew(connection, pin_id, least, now_us, lease_us)

        return self._database.run(work, durable=False)

    def unpin(self, pin_id: str) -> None:
        """Let go of what a pin holds."""
        self._database.run(lambda connection: pins.remove(connection, pin_id), durable=False)

    def expire(self, wish: Wish, *, dry_run: bool = False) -> Expired:
        """Forget what a wish lets go and nobody holds."""
        return expiry.expire(self._database, wish, dry_run=dry_run)

    def collection(self, grace_seconds: float) -> Collection:
        """What may be deleted from storage after a grace."""
        return Collection(self._database, grace_seconds)

    def checks(self) -> Checks:
        """Whether the catalog agrees with itself, and what it knows of files."""
        return Checks(self._database)

    # The table service

    def tasks(self) -> TaskQueue:
        """The queue of the table service's tasks."""
        return TaskQueue(self._database, self.lease_seconds)

    def count_plans(self, counts: Mapping[tuple[TableId, int], int]) -> None:
        """Add to how often bins were planned."""
        self._database.run(
            lambda connection: plancounts.add(connection, counts, self._database.now_us(connection)), durable=False
        )

    def plan_rates(self, spec: TableSpec) -> plancounts.Rates:
        """How often each time of a table is planned."""
        return self._read(lambda connection: plancounts.read_rates(connection, spec, self._database.now_us(connection)))

    def now(self) -> datetime:
        """The catalog's clock."""
        return from_us(self._read(self._database.now_us))

    def versions_at(self, ages: Iterable[float]) -> dict[float, int]:
        """The newest version that is at least so many seconds old, by age; 0 where none is."""

        def question(connection: Connection) -> dict[float, int]:
            now_us = self._database.now_us(connection)
            return {age: log.version_at(connection, now_us - int(age * 1_000_000)) or 0 for age in ages}

        return self._read(question)

    # Operations

    def locks(self, spec: TableSpec) -> Listing[ChunkLock]:
        """Every lock on a table."""
        return self._read(lambda connection: locks.read_locks(connection, spec))

    def activity(self) -> Activity:
        """Running operations, the locks of all tables, and who waits for them."""
        return self._read(lambda connection: activity.read_activity(connection, self._database.now_us(connection)))

    def begin(
        self,
        spec: TableSpec,
        kind: Kind,
        *,
        draws: bool = False,
        interval: Interval | None = None,
        keys: KeyScope | None = None,
        priority: Priority = Priority.USER,
        wait_seconds: float = 0.0,
    ) -> Begun:
        """Register an operation; with an interval, wait for its chunks' locks. Raises `LockTimeout`."""
        operation_id = new_id()
        lease_us = int(self.lease_seconds * 1_000_000)
        wanted = None if interval is None else locks.Wanted(spec, Cell.around(interval, spec.grain, keys), priority)

        def attempt(place: int | None) -> Begun:
            def work(connection: Connection) -> Begun:
                if kind is Kind.APPEND and not draws:
                    return operations.register(connection, spec, kind, operation_id=operation_id, lease_us=lease_us)
                take_head(connection)
                return operations.begin(
                    connection,
                    spec,
                    kind,
                    operation_id=operation_id,
                    now_us=self._database.now_us(connection),
                    lease_us=lease_us,
                    draws=draws,
                    interval=interval,
                    wanted=None if wanted is None else replace(wanted, place=place),
                )

            return self._begin(work)

        if wanted is None:
            begun = attempt(None)
        else:
            begun = self._waiting.in_turn(attempt, wanted, operation_id, kind, wait_seconds)
        reach("begin.registered")
        return begun

    def _begin(self, work: Callable[[Connection], Begun]) -> Begun:
        begun: list[Begun] = []

        def attempt(connection: Connection) -> Begun:
            begun[:] = [work(connection)]
            return begun[0]

        def settled(connection: Connection) -> Begun | None:
            found = operations.is_registered(connection, begun[0].id) if begun else False
            return begun[0] if found else None

        return self._database.run(attempt, settled=settled, durable=False)

    def wait_until_free(self, spec: TableSpec, interval: Interval, keys: KeyScope | None, wait_seconds: float) -> None:
        """Wait until no user's operation holds chunks of an interval. Raises `LockTimeout`."""
        wanted = locks.Wanted(spec, Cell.around(interval, spec.grain, keys), Priority.USER)

        def look() -> None:
            self._read(lambda connection: locks.check_free(connection, wanted, self._database.now_us(connection)))

        self._waiting.until_free(look, spec, wait_seconds)

    def renew(self, begun: Iterable[Begun]) -> None:
        """Push the leases of running operations out by ``lease_seconds``."""
        numbers = [one.number for one in begun]
        lease_us = int(self.lease_seconds * 1_000_000)

        def work(connection: Connection) -> None:
            operations.renew(connection, numbers, self._database.now_us(connection) + lease_us)

        self._database.run(work, durable=False)

    def abort(self, begun: Begun) -> bool:
        """End an operation without a commit; False if it was committed, else nobody can ever see its files."""
        reach("abort.before")
        ended = self._database.run(lambda connection: operations.abort(connection, begun), durable=False)
        self._waiting.notify()
        return ended

    def release(self, operation_id: str, *, if_running: bool = False) -> None:
        """End a running operation, whoever's it is. Raises `InvalidInput` if no such one runs."""
        ended = self._database.run(lambda connection: operations.release_by_id(connection, operation_id))
        if not ended and not if_running:
            raise InvalidInput("no such operation runs; see the locks for those that do", operation=operation_id)
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

        Operations whose ``txn`` was committed before are left out and ended; if that is all of them, the first commit
        is returned and nothing changes. A lost answer is resolved by operation id. Raises `LockLost`, `TableNotFound`,
        `CommitUnknown`, or `LockTimeout` where a restore waited too long for a replace.
        """
        reach("commit.before")
        database = self._database
        given = dict(properties) if properties else None

        def work(connection: Connection) -> commit.Recorded:
            return commit.record(connection, self._states, self._sets, contributions, message=message, properties=given)

        def settled(connection: Connection) -> commit.Recorded | None:
            versions = [commit.committed_version(connection, one) for one in contributions]
            if None in versions:
                return None
            return commit.Recorded(commit.told(connection, max(filter(None, versions)), contributions))

        def attempt() -> commit.Recorded:
            while True:
                try:
                    return database.run(
                        work, last=lambda connection, recorded: recorded.write(connection), settled=settled
                    )
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
        """The commit that was there before; the operations that would have repeated it end."""
        first = self._read(lambda connection: commit.told(connection, version, contributions))
        begun = [one.begun for one in contributions]
        self._database.run(lambda connection: [operations.abort(connection, one) for one in begun])
        self._waiting.notify()
        return first

    def committed(self, table: TableId, mark: tuple[str, int]) -> bool:
        """Whether a ``txn`` was committed on a table."""
        return self._read(lambda connection: commit.marked_version(connection, table, mark) is not None)
