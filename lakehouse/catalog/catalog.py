"""The catalog as the rest of the library sees it: core values in, core values out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import Connection, func, select

from lakehouse.catalog import commit, frames, locks, log, operations, tables
from lakehouse.catalog.database import Database, take_head
from lakehouse.catalog.migration import ensure_migrated
from lakehouse.catalog.models import chunk
from lakehouse.catalog.state import ChunkState, StateReader, distinct_entries, within
from lakehouse.core.chunk import chunk_from_us
from lakehouse.core.commit import Chunk, ChunkDiff, ChunkLock, Commit, Diff, KeyFrame
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.keys import KeyScope
from lakehouse.core.listing import Listing
from lakehouse.core.operation import Begun, Contribution, Kind, Priority
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.version import diff
from lakehouse.errors import LockTimeout, VersionNotFound
from lakehouse.faults import reach

T = TypeVar("T")
_LONGEST_WAIT_SECONDS = 0.1


class Catalog:
    """A SQL catalog: tables, versions, locks and operations of one lake.

    Thread-safe. Opens (and on first use migrates) the database at ``url``. ``lease_seconds`` is how long an operation
    keeps its locks when its process stops renewing them.
    """

    def __init__(self, url: str, *, lease_seconds: float = 60.0) -> None:
        self.lease_seconds = lease_seconds
        self._database = Database(url)
        ensure_migrated(self._database)
        self._states = StateReader()
        self._frames = frames.FrameWriter(self._database, self._states)
        self._released = threading.Condition()

    @property
    def url(self) -> str:
        """The database's address, without its password."""
        return self._database.url.render_as_string(hide_password=True)

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

    def create_table(self, spec: TableSpec) -> tuple[TableSpec, int]:
        """Create a table and return its definition with its id. Raises `AlreadyExists`."""
        database = self._database
        return database.run(lambda connection: tables.create_table(connection, database, spec, spec.folder))

    def rename_table(self, old: str, new: str) -> None:
        """Rename a table."""
        database = self._database
        database.run(
            lambda connection: tables.rename_table(connection, database, old, new),
            settled=lambda connection: True if tables.find_table(connection, new) else None,
        )

    def drop_table(self, name: str) -> None:
        """Drop a table."""
        database = self._database
        database.run(
            lambda connection: tables.drop_table(connection, database, name),
            settled=lambda connection: None if tables.find_table(connection, name) else True,
        )

    # Versions

    def head(self) -> int:
        """The newest version."""
        return self._read(log.read_head)

    def commits(self, table: TableId | None = None, limit: int | None = None) -> Listing[Commit]:
        """The log, newest first."""
        return self._read(lambda connection: log.read_commits(connection, table=table, limit=limit))

    def newest_version(self, table: TableId, created: int) -> int:
        """A table's newest version."""
        return self._read(lambda connection: log.newest_version(connection, table, created))

    def table_version(self, spec: TableSpec, created: int, as_of: Any) -> int:
        """A table's newest version at or before what ``as_of`` means. Raises `VersionNotFound`."""

        def question(connection: Connection) -> int:
            resolved = log.resolve_version(connection, as_of)
            if resolved < created:
                raise VersionNotFound(
                    "the table did not exist at that version", table=spec.name, version=resolved, created=created
                )
            return log.newest_version(connection, spec.id, created, resolved)

        return self._read(question)

    def tag(self, name: str, as_of: Any) -> None:
        """Name a version."""

        def work(connection: Connection) -> None:
            version = log.resolve_version(connection, as_of)
            log.add_tag(connection, name, version, self._database.now_us(connection))

        self._database.run(work)

    def untag(self, name: str) -> None:
        """Forget a tag."""
        self._database.run(lambda connection: log.remove_tag(connection, name))

    def tags(self) -> dict[str, int]:
        """Versions by tag."""
        return self._read(log.read_tags)

    # State

    def states(self, spec: TableSpec, version: int, interval: Interval | None = None) -> dict[int, ChunkState]:
        """What is live at a version, by chunk start, in the chunks that an interval touches (None: all)."""
        where = None if interval is None else within(spec.grain, interval)
        return self._read(lambda connection: self._states.read(connection, spec.id, version, where))

    def live(
        self, spec: TableSpec, version: int, interval: Interval | None = None
    ) -> tuple[list[Segment], list[Tombstone]]:
        """Live segments and tombstones, each once, by id, in the chunks that an interval touches."""
        entries = distinct_entries(self.states(spec, version, interval).values())
        held = [entries[entry] for entry in sorted(entries)]
        return (
            [entry for entry in held if isinstance(entry, Segment)],
            [entry for entry in held if isinstance(entry, Tombstone)],
        )

    def chunks(self, spec: TableSpec, version: int) -> Listing[Chunk]:
        """Every chunk with something live, by time."""
        found = Listing[Chunk]()
        for start_us, state in self.states(spec, version).items():
            one = chunk_from_us(spec.grain, start_us)
            segments = state.segments
            if state.entries:
                found.append(
                    Chunk(
                        start=one.start,
                        end=one.end,
                        version=state.version,
                        segments=len(segments),
                        rows=sum(segment.rows for segment in segments),
                        bytes=sum(segment.bytes for segment in segments),
                        tombstones=len(state.entries) - len(segments),
                    )
                )
        return found

    def extent(self, spec: TableSpec) -> Interval | None:
        """From the first to the last chunk that ever held something; None for a table that never did."""
        query = select(func.min(chunk.c.start_us), func.max(chunk.c.start_us)).where(chunk.c.table_id == spec.id)
        first, last = self._read(lambda connection: connection.execute(query).one())
        if first is None:
            return None
        return Interval(chunk_from_us(spec.grain, first).start, chunk_from_us(spec.grain, last).end)

    def key_frames(self, spec: TableSpec) -> Listing[KeyFrame]:
        """Every key frame of a table."""
        return self._read(lambda connection: frames.read_key_frames(connection, spec))

    def diff(self, spec: TableSpec, a: int, b: int) -> Diff:
        """ADD and DROP by chunk between two versions, in either order. Cost: the chunks changed since the older."""

        def question(connection: Connection) -> tuple[dict[int, ChunkState], dict[int, ChunkState]]:
            changed = chunk.c.version > min(a, b)
            return (
                self._states.read(connection, spec.id, a, changed),
                self._states.read(connection, spec.id, b, changed),
            )

        before, after = self._read(question)
        chunks: dict[Interval, ChunkDiff] = {}
        for start_us in sorted(before.keys() | after.keys()):
            then = before[start_us].entries if start_us in before else {}
            now = after[start_us].entries if start_us in after else {}
            change = diff(list(then), list(now))
            added = [now[entry] for entry in change.added.tolist()]
            dropped = [then[entry] for entry in change.dropped.tolist()]
            if added or dropped:
                chunks[chunk_from_us(spec.grain, start_us)] = ChunkDiff(
                    added_segments=tuple(one for one in added if isinstance(one, Segment)),
                    dropped_segments=tuple(one for one in dropped if isinstance(one, Segment)),
                    added_tombstones=tuple(one for one in added if isinstance(one, Tombstone)),
                    dropped_tombstones=tuple(one for one in dropped if isinstance(one, Tombstone)),
                )
        return Diff(a, b, chunks)

    # Operations

    def locks(self, spec: TableSpec) -> Listing[ChunkLock]:
        """Every lock on a table."""
        return self._read(lambda connection: locks.read_locks(connection, spec))

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
        operation_id = uuid4().hex
        lease_us = int(self.lease_seconds * 1_000_000)

        def work(connection: Connection) -> Begun:
            if interval is not None:
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
                keys=keys,
                priority=priority,
            )

        begun = self._waiting(lambda: self._begin(work), spec, wait_seconds)
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

        return self._database.run(attempt, settled=settled)

    def renew(self, begun: Iterable[Begun]) -> None:
        """Push the leases of running operations out by ``lease_seconds``."""
        numbers = [one.number for one in begun]
        lease_us = int(self.lease_seconds * 1_000_000)

        def work(connection: Connection) -> None:
            operations.renew(connection, numbers, self._database.now_us(connection) + lease_us)

        self._database.run(work)

    def abort(self, begun: Begun) -> bool:
        """End an operation without a commit; False if it had ended already."""
        reach("abort.before")
        ended = self._database.run(lambda connection: operations.abort(connection, begun))
        self._notify()
        return ended

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
            return commit.record(connection, database, self._states, contributions, message=message, properties=given)

        def settled(connection: Connection) -> commit.Recorded | None:
            versions = [commit.committed_version(connection, one) for one in contributions]
            if None in versions:
                return None
            return commit.Recorded(commit.told(connection, max(filter(None, versions)), contributions))

        def attempt() -> commit.Recorded:
            return database.run(work, settled=settled)

        try:
            recorded = self._waiting(attempt, contributions[0].begun.table, wait_seconds)
        except commit.AlreadyCommitted as already:
            return self._repeated(already.version, contributions)
        reach("commit.after")
        self._states.remember(recorded.added)
        self._notify()
        for table, starts in recorded.due.items():
            self._frames.write_due(table, starts, recorded.commit.version)
        return recorded.commit

    def _repeated(self, version: int, contributions: Sequence[Contribution]) -> Commit:
        """The commit that was there before; the operations that would have repeated it end."""
        first = self._read(lambda connection: commit.told(connection, version, contributions))
        begun = [one.begun for one in contributions]
        self._database.run(lambda connection: [operations.abort(connection, one) for one in begun])
        self._notify()
        return first

    def committed(self, table: TableId, mark: tuple[str, int]) -> bool:
        """Whether a ``txn`` was committed on a table."""
        return self._read(lambda connection: commit.marked_version(connection, table, mark) is not None)

    def _waiting(self, attempt: Callable[[], T], spec: TableSpec, wait_seconds: float) -> T:
        """Try until no lock is in the way: a release here wakes the wait, one elsewhere is seen by asking again."""
        deadline = time.monotonic() + wait_seconds
        pause_seconds = 0.005
        while True:
            try:
                return attempt()
            except locks.ChunkHeld as held:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise _timeout(spec, held.holder, wait_seconds) from held
            with self._released:
                self._released.wait(min(pause_seconds, left))
            pause_seconds = min(pause_seconds * 2, _LONGEST_WAIT_SECONDS)

    def _notify(self) -> None:
        with self._released:
            self._released.notify_all()


def _timeout(spec: TableSpec, holder: locks.Holder, wait_seconds: float) -> LockTimeout:
    return LockTimeout(
        f"{holder.kind} {holder.operation} holds the chunks; wait longer (wait_seconds) or try later",
        table=spec.name,
        operation=holder.operation,
        kind_held=holder.kind,
        interval=holder.interval,
        keys=holder.keys,
        expires_at=from_us(holder.expires_us).isoformat(),
        waited_seconds=wait_seconds,
    )
