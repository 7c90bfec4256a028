"""The one transaction that makes an operation visible.

Its first statement takes the head, so that number order is commit order is visibility order; every check comes after.
Its cost depends on what is added and dropped and, for a replace, on what is live in the chunks that it covers; never on
the size of the table or its history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects import postgresql, sqlite

from lakehouse.catalog import locks, operations
from lakehouse.catalog.database import Database
from lakehouse.catalog.encoding import encode_map
from lakehouse.catalog.log import read_commits
from lakehouse.catalog.models import (
    chunk,
    commit_log,
    commit_table,
    delta,
    lake,
    lake_table,
    operation,
    segment,
    tombstone,
    txn,
)
from lakehouse.catalog.planning import planned
from lakehouse.catalog.rows import Entry, segment_values, tombstone_values
from lakehouse.catalog.state import StateReader
from lakehouse.core.commit import Commit
from lakehouse.core.operation import Contribution, Kind
from lakehouse.core.replace import MOST_CHUNKS
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.version import ADD, DROP, frame_due
from lakehouse.errors import InternalError, InvalidInput, LockLost, TableNotFound
from lakehouse.faults import reach


@dataclass(slots=True)
class TableDelta:
    """What one commit changes in one table, by chunk start."""

    spec: TableSpec
    operation: str
    added: list[tuple[Entry, int]] = field(default_factory=list)
    """New entries with the number of the operation that made them."""
    changes: dict[tuple[int, int], tuple[int, Entry]] = field(default_factory=dict)
    """By chunk start and entry id: 1 or -1, and the entry."""
    counts_rows: bool = True

    def count(self, action: int, of: type) -> list[Entry]:
        """The distinct entries of a kind that were added (1) or dropped (-1)."""
        held = {entry.id: entry for act, entry in self.changes.values() if act == action and isinstance(entry, of)}
        return list(held.values())


@dataclass(frozen=True, slots=True)
class Recorded:
    """A commit that is about to stand, the chunks whose key frame is due, and the entries that it added."""

    commit: Commit
    due: dict[TableId, list[int]] = field(default_factory=dict)
    added: list[Entry] = field(default_factory=list)


class AlreadyCommitted(Exception):
    """Everything asked for was committed before, in ``version``; the transaction changed nothing."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


def record(
    connection: Connection,
    database: Database,
    states: StateReader,
    contributions: Sequence[Contribution],
    *,
    message: str | None,
    properties: dict[str, str] | None,
) -> Recorded:
    """Check and record a commit of one or more operations inside a transaction.

    Raises `AlreadyCommitted`, `LockLost`, `TableNotFound` or `locks.ChunkHeld`; the transaction then rolls back.
    """
    version = next_version(connection)
    reach("commit.head")
    now_us = database.now_us(connection)
    fresh = _not_committed(connection, contributions)
    for repeated in contributions:
        if repeated not in fresh:
            operations.abort(connection, repeated.begun)
    record_version(connection, version, _kind(fresh), now_us, message=message, properties=properties)
    deltas: dict[TableId, TableDelta] = {}
    for contribution in fresh:
        _check_running(connection, contribution)
        spec = contribution.begun.table
        first_row_id = _reserve_row_ids(connection, contribution)
        change = deltas.setdefault(spec.id, TableDelta(spec, contribution.begun.kind.value))
        if change.operation != contribution.begun.kind.value:
            change.operation = Kind.TRANSACTION.value
        change.counts_rows = contribution.begun.kind is not Kind.COMPACTION
        plan = planned(connection, states, contribution, version=version, first_row_id=first_row_id, now_us=now_us)
        change.added.extend((entry, contribution.begun.number) for entry in plan.new)
        change.changes.update(plan.changes)
        _end(connection, contribution, version)
    due = {}
    for table, change in deltas.items():
        due[table] = _record_table(connection, database, change, version)
        reach("commit.table")
    reach("commit.recorded")
    added = [entry for change in deltas.values() for entry, _ in change.added]
    return Recorded(told(connection, version, contributions), due, added)


def told(connection: Connection, version: int, contributions: Sequence[Contribution]) -> Commit:
    """A version as its caller sees it: of the one table that was written, or of all."""
    tables = {one.begun.table.id for one in contributions}
    found = read_commits(connection, table=tables.pop() if len(tables) == 1 else None, version=version)
    if not found:
        raise InternalError("a version that was committed is not in the log", version=version)
    return found[0]


def next_version(connection: Connection) -> int:
    """Take the head and the next number as its version."""
    following = lake.c.counter + 1
    return int(
        connection.execute(
            update(lake).values(counter=following, head=following).returning(lake.c.counter)
        ).scalar_one()
    )


def record_version(
    connection: Connection,
    version: int,
    kind: Kind,
    now_us: int,
    *,
    message: str | None = None,
    properties: dict[str, str] | None = None,
) -> None:
    """Record a version, stamped later than every version before it."""
    previous_us: int = connection.execute(select(lake.c.clock_us)).scalar_one()
    committed_us = max(now_us, previous_us + 1)
    connection.execute(
        commit_log.insert().values(
            version=version,
            operation=kind.value,
            committed_us=committed_us,
            message=message,
            properties=encode_map(properties),
        )
    )
    connection.execute(update(lake).values(clock_us=committed_us))


def _kind(contributions: Sequence[Contribution]) -> Kind:
    kinds = {contribution.begun.kind for contribution in contributions}
    tables = {contribution.begun.table.id for contribution in contributions}
    return kinds.pop() if len(kinds) == len(tables) == 1 else Kind.TRANSACTION


def _not_committed(connection: Connection, contributions: Sequence[Contribution]) -> list[Contribution]:
    """Leave out what its ``txn`` or operation id shows as committed; raise `AlreadyCommitted` if that is everything."""
    versions = {one.begun.number: committed_version(connection, one) for one in contributions}
    fresh = [one for one in contributions if versions[one.begun.number] is None]
    if not fresh:
        raise AlreadyCommitted(max(version for version in versions.values() if version is not None))
    return fresh


def committed_version(connection: Connection, contribution: Contribution) -> int | None:
    """The version in which an operation, or an earlier one with its ``txn``, was committed."""
    done: int | None = connection.execute(
        select(operation.c.version).where(operation.c.number == contribution.begun.number)
    ).scalar()
    if done is not None or contribution.txn is None:
        return done
    return marked_version(connection, contribution.begun.table.id, contribution.txn)


def marked_version(connection: Connection, table: TableId, mark: tuple[str, int]) -> int | None:
    """The version that carries a caller's ``(app, sequence)`` on a table."""
    app, sequence = mark
    found: int | None = connection.execute(
        select(txn.c.version).where(txn.c.table_id == table, txn.c.app == app, txn.c.sequence == sequence)
    ).scalar()
    return found


def _check_running(connection: Connection, contribution: Contribution) -> None:
    begun = contribution.begun
    state = connection.execute(select(operation.c.state).where(operation.c.number == begun.number)).scalar()
    if state != "running":
        raise LockLost("the operation was ended before its commit; begin it again", operation=begun.id, state=state)
    if begun.locks and locks.count_held(connection, begun.number) != begun.locks:
        raise LockLost(
            "the operation's chunks were taken by another one; nothing was committed, begin it again",
            operation=begun.id,
            kind=begun.kind.value,
            interval=begun.interval,
        )


def _reserve_row_ids(connection: Connection, contribution: Contribution) -> int:
    """The first row id of an operation's new rows; also the proof that its table still exists."""
    rows = sum(one.rows for one in contribution.segments if not one.has_row_ids)
    spec = contribution.begun.table
    after = connection.execute(
        update(lake_table)
        .where(lake_table.c.id == spec.id, lake_table.c.dropped_version.is_(None))
        .values(next_row_id=lake_table.c.next_row_id + rows)
        .returning(lake_table.c.next_row_id)
    ).scalar()
    if after is None:
        raise TableNotFound("the table was dropped while the operation ran; nothing was committed", table=spec.name)
    return int(after) - rows


def _end(connection: Connection, contribution: Contribution, version: int) -> None:
    begun = contribution.begun
    connection.execute(
        update(operation).where(operation.c.number == begun.number).values(state="committed", version=version)
    )
    if begun.locks:
        locks.release(connection, begun.number)
    if contribution.txn is not None:
        app, sequence = contribution.txn
        connection.execute(txn.insert().values(table_id=begun.table.id, app=app, sequence=sequence, version=version))


def _record_table(connection: Connection, database: Database, change: TableDelta, version: int) -> list[int]:
    table = change.spec.id
    segments = [segment_values(entry, table, number) for entry, number in change.added if isinstance(entry, Segment)]
    tombstones = [
        tombstone_values(entry, table, number) for entry, number in change.added if not isinstance(entry, Segment)
    ]
    if segments:
        connection.execute(segment.insert(), segments)
    if tombstones:
        connection.execute(tombstone.insert(), tombstones)
    if change.changes:
        connection.execute(
            delta.insert(),
            [
                {
                    "table_id": table,
                    "chunk_us": start,
                    "version": version,
                    "entry": entry,
                    "action": action,
                    "is_tombstone": not isinstance(held, Segment),
                }
                for (start, entry), (action, held) in change.changes.items()
            ],
        )
    _record_counts(connection, change, version)
    return _touch_chunks(connection, database, table, {start for start, _ in change.changes}, version)


def _record_counts(connection: Connection, change: TableDelta, version: int) -> None:
    added, dropped = change.count(ADD, Segment), change.count(DROP, Segment)
    everything: defaultdict[int, set[int]] = defaultdict(set)
    for (_, entry), (action, _) in change.changes.items():
        everything[action].add(entry)
    connection.execute(
        commit_table.insert().values(
            version=version,
            table_id=change.spec.id,
            operation=change.operation,
            segments_added=len(added),
            segments_dropped=len(dropped),
            tombstones_added=len(everything[ADD]) - len(added),
            tombstones_dropped=len(everything[DROP]) - len(dropped),
            rows_added=sum(one.rows for one in added) if change.counts_rows else 0,
            rows_deleted=sum(one.rows for one in dropped) if change.counts_rows else 0,
        )
    )


def _touch_chunks(
    connection: Connection, database: Database, table: TableId, starts: Iterable[int], version: int
) -> list[int]:
    """Record a new version of chunks; return those whose key frame is due."""
    rows = [
        {"table_id": table, "start_us": start, "version": version, "frame_entries": None, "chain": 1}
        for start in sorted(starts)
    ]
    if not rows:
        return []
    if len(rows) > MOST_CHUNKS:
        raise InvalidInput(
            "one commit touches too many time chunks; use a coarser grain or smaller intervals",
            chunks=len(rows),
            most=MOST_CHUNKS,
        )
    upsert = sqlite.insert(chunk) if database.is_sqlite else postgresql.insert(chunk)
    upsert = upsert.on_conflict_do_update(
        index_elements=[chunk.c.table_id, chunk.c.start_us], set_={"version": version, "chain": chunk.c.chain + 1}
    )
    found = connection.execute(upsert.returning(chunk.c.start_us, chunk.c.chain, chunk.c.frame_entries), rows)
    return [row.start_us for row in found if frame_due(row.chain, row.frame_entries)]
