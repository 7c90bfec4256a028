"""The one transaction that makes an operation visible.

Its first statement takes the head, so numbers, commits and visibility have one order; every check comes after. Its cost
depends on what is added and dropped and, for a replace, on what is live in the chunks that it covers; never on the size
of the table or its history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from lakehouse.catalog.commit.altered import as_altered
from lakehouse.catalog.commit.delta import plan_operation
from lakehouse.catalog.commit.execute import TableDelta, apply, write_table
from lakehouse.catalog.commit.plan import CommitContext, OperationPlan
from lakehouse.catalog.locks import locks
from lakehouse.catalog.state.bins import StateReader
from lakehouse.catalog.state.tombstone_sets import Sets
from lakehouse.catalog.store import statements
from lakehouse.catalog.store.clock import host_clocks
from lakehouse.catalog.store.database import stand_in_line
from lakehouse.catalog.store.encoding import decode_map, encode_map
from lakehouse.catalog.store.models import commit_log, lake, operation, txn
from lakehouse.catalog.store.prepared import pipelined
from lakehouse.catalog.versions.log import read_commits
from lakehouse.core.commit import Commit
from lakehouse.core.contribution import CleanContribution, CompactionContribution, Contribution
from lakehouse.core.interval import from_us, to_us
from lakehouse.core.operation import Kind, together
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.version import frame_due
from lakehouse.errors import LockLost, TableNotFound
from lakehouse.faults import reach


@dataclass(slots=True)
class Recorded:
    """A checked commit: `write` it last, in the same transaction; then `due` says which key frames it made due."""

    commit: Commit
    fresh: Sequence[Contribution] = ()
    deltas: Mapping[TableId, TableDelta] = field(default_factory=dict)
    touched: dict[TableId, list[Any]] = field(default_factory=dict)
    """Cursors over the state of the bins, by table."""

    def write(self, connection: Connection) -> None:
        """Write everything without waiting: the answers come with that to COMMIT."""
        commit = self.commit
        record_version(
            connection,
            commit.version,
            Kind(commit.operation),
            to_us(commit.committed_at),
            message=commit.message,
            properties=commit.properties,
        )
        statements.INSERT_MARK.run_many(connection, [_mark(one, commit.version) for one in self.fresh if one.txn])
        for table, change in self.deltas.items():
            self.touched[table] = write_table(connection, change, commit.version)
            reach("commit.table")
        reach("commit.recorded")

    def due(self) -> Iterator[tuple[TableSpec, list[int]]]:
        """Bins whose key frame is due, by table; call it after the commit."""
        for table, cursors in self.touched.items():
            found = [cursor.fetchone() for cursor in cursors]
            bins = [number for number, chain, framed in found if frame_due(chain, is_framed=framed is not None)]
            if bins:
                yield self.deltas[table].spec, bins


class AlreadyCommitted(Exception):
    """All operations were committed before, in ``version``; the transaction changed nothing."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


def record(
    connection: Connection,
    states: StateReader,
    sets: Sets,
    contributions: Sequence[Contribution],
    *,
    message: str | None,
    properties: dict[str, str] | None,
) -> Recorded:
    """Take a version for operations, check them and plan their changes, inside a transaction.

    Raises `AlreadyCommitted`, `LockLost`, `TableNotFound` or `locks.ChunkHeld`; the transaction then rolls back.
    """
    with pipelined(connection):
        stand_in_line(connection)
        head = statements.TAKE_VERSION.run(connection, host_clocks())
        ends = [end_operation(connection, one) for one in contributions]
        version, committed_us = head.fetchone()
        answers = [_Answer(*(None if one is None else one.fetchone() for one in cursors)) for cursors in ends]
    reach("commit.head")
    deltas: dict[TableId, TableDelta] = {}
    plans: list[OperationPlan] = []
    fresh = _not_committed(connection, contributions, answers)
    for contribution, next_row_id in fresh:
        begun = contribution.begun
        spec = begun.table
        if begun.locks and locks.count_held(connection, begun.number) != begun.locks:
            raise _lost(contribution)
        change = deltas.setdefault(spec.id, TableDelta(spec, begun.kind.value))
        change.operation = together(Kind(change.operation), begun.kind).value
        change.counts_rows = not isinstance(contribution, CompactionContribution | CleanContribution)
        first_row_id = next_row_id - _new_rows(contribution)
        context = CommitContext(connection, states, sets, contribution, version)
        plan = plan_operation(context, first_row_id=first_row_id, now_us=committed_us)
        plans.append(plan)
        change.include(plan)
        lost = contribution.rows_deleted
        change.rows_deleted += lost or 0
        change.is_exact &= lost is not None
    for plan in plans:
        apply(connection, plan, version, committed_us)
    kind = _kind([contribution for contribution, _ in fresh])
    committed = [contribution for contribution, _ in fresh]
    commit = as_logged(committed, deltas, version, kind, committed_us, message, properties)
    return Recorded(commit, committed, deltas)


def as_logged(
    contributions: Sequence[Contribution],
    deltas: Mapping[TableId, TableDelta],
    version: int,
    kind: Kind,
    committed_us: int,
    message: str | None,
    properties: dict[str, str] | None,
) -> Commit:
    """The commit as the log will show it."""
    counted = [change.counts() for change in deltas.values()]
    total = {name: sum(counts[name] for counts in counted) for name in counted[0]}
    return Commit(
        version=version,
        operation=kind.value,
        committed_at=from_us(committed_us),
        tables=tuple(sorted(change.spec.name for change in deltas.values())),
        added=total["segments_added"],
        dropped=total["segments_dropped"],
        rows_added=total["rows_added"],
        rows_deleted=total["rows_deleted"],
        tombstones_added=total["tombstones_added"],
        tombstones_dropped=total["tombstones_dropped"],
        bytes_added=total["bytes_added"],
        is_exact=all(change.is_exact for change in deltas.values()),
        message=message,
        properties=dict(properties or {}),
        txn=next((one.txn for one in contributions if one.txn is not None), None),
    )


def logged(connection: Connection, version: int, contributions: Sequence[Contribution]) -> Commit:
    """A version as its caller sees it: of the one table that was written, or of all."""
    tables = {one.begun.table.id for one in contributions}
    found = read_commits(connection, table=tables.pop() if len(tables) == 1 else None, version=version)
    return found[0] if found else _forgotten(connection, version, contributions)


def _forgotten(connection: Connection, version: int, contributions: Sequence[Contribution]) -> Commit:
    """What is still known of a commit that has expired: it stands, and is not repeated."""
    row = connection.execute(select(commit_log).where(commit_log.c.version == version)).first()
    committed_us = connection.execute(select(lake.c.clock_us)).scalar_one() if row is None else row.committed_us
    return Commit(
        version=version,
        operation=_kind(contributions).value if row is None else row.operation,
        committed_at=from_us(committed_us),
        tables=tuple(sorted({one.begun.table.name for one in contributions})),
        message=None if row is None else row.message,
        properties={} if row is None else decode_map(row.properties),
        txn=next((one.txn for one in contributions if one.txn is not None), None),
    )


def next_version(connection: Connection) -> tuple[int, int]:
    """Take the head and the next number as its version; return it and its time, which is later than all before."""
    stand_in_line(connection)
    version, committed_us = statements.TAKE_VERSION.run(connection, host_clocks()).fetchone()
    return version, committed_us


def record_version(
    connection: Connection,
    version: int,
    kind: Kind,
    committed_us: int,
    *,
    message: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Record a version in the log."""
    statements.INSERT_VERSION.run(
        connection,
        {
            "version": version,
            "operation": kind.value,
            "committed_us": committed_us,
            "message": message,
            "properties": encode_map(properties),
        },
    )


def _kind(contributions: Sequence[Contribution]) -> Kind:
    kinds = {contribution.begun.kind for contribution in contributions}
    tables = {contribution.begun.table.id for contribution in contributions}
    return kinds.pop() if len(kinds) == len(tables) == 1 else Kind.TRANSACTION


class _Answer(NamedTuple):
    """Query of the rows that decide whether a contribution may be committed; None where there is none."""

    ended: tuple[int] | None
    """Its operation was running, and is committed now."""
    table: tuple[int, int] | None
    """The next row id and the schema number of its table, if that exists."""
    marked: tuple[int] | None
    """Its ``txn`` was committed in this version."""


def end_operation(connection: Connection, contribution: Contribution) -> list[Any]:
    """End its operation and reserve its row ids; cursors over an `_Answer`."""
    begun = contribution.begun
    mark = contribution.txn and dict(zip(("app", "sequence"), contribution.txn, strict=True))
    return [
        statements.END.run(connection, {"ended": begun.number, "ended_kind": begun.kind.value}),
        statements.RESERVE.run(connection, {"table": begun.table.id, "rows": _new_rows(contribution)}),
        statements.MARK.run(connection, {"table": begun.table.id, **mark}) if mark else None,
    ]


def _new_rows(contribution: Contribution) -> int:
    return sum(one.rows for one in contribution.segments if not one.has_row_ids)


def _not_committed(
    connection: Connection, contributions: Sequence[Contribution], answers: Sequence[_Answer]
) -> list[tuple[Contribution, int]]:
    """The contributions to commit, with their tables' next row ids; refuses those that cannot be committed.

    Those whose ``txn`` or id was committed already are left out and ended; raises `AlreadyCommitted` if nothing is
    left, or if one of these guards the others.
    """
    fresh, done = [], []
    for one, answer in zip(contributions, answers, strict=True):
        if answer.ended is None:
            version = committed_version(connection, one)
            if version is None:
                raise LockLost("the operation was ended before its commit; begin it again", operation=one.begun.id)
            done.append(version)
        elif answer.marked is not None and one.guards:
            raise AlreadyCommitted(answer.marked[0])
        elif answer.marked is not None:
            statements.TAKE_BACK.run(connection, {"repeated": one.begun.number})
            locks.release(connection, one.begun.number)
            done.append(answer.marked[0])
        elif answer.table is None:
            raise TableNotFound(
                "the table was dropped while the operation ran; nothing was committed", table=one.begun.table.name
            )
        else:
            fresh.append((one, *answer.table))
    if not fresh:
        raise AlreadyCommitted(max(done))
    to_commit = as_altered(connection, [(one, number) for one, _, number in fresh])
    return [(one, next_row_id) for one, (_, next_row_id, _) in zip(to_commit, fresh, strict=True)]


def committed_version(connection: Connection, contribution: Contribution) -> int | None:
    """The version in which an operation, or an earlier one with its ``txn``, was committed."""
    done: int | None = connection.execute(
        select(operation.c.version).where(operation.c.number == contribution.begun.number)
    ).scalar()
    if done is not None or contribution.txn is None:
        return done
    return marked_version(connection, contribution.begun.table.id, contribution.txn)


def marked_version(connection: Connection, table: TableId, mark: tuple[str, int]) -> int | None:
    """The version with a caller's ``(app, sequence)`` on a table."""
    app, sequence = mark
    found: int | None = connection.execute(
        select(txn.c.version).where(txn.c.table_id == table, txn.c.app == app, txn.c.sequence == sequence)
    ).scalar()
    return found


def _mark(contribution: Contribution, version: int) -> dict[str, Any]:
    """The row that keeps its ``txn`` from being committed again."""
    assert contribution.txn is not None
    app, sequence = contribution.txn
    return {"table_id": contribution.begun.table.id, "app": app, "sequence": sequence, "version": version}


def _lost(contribution: Contribution) -> LockLost:
    begun = contribution.begun
    return LockLost(
        "the operation's chunks were taken by another one; nothing was committed, begin it again",
        operation=begun.id,
        kind=begun.kind.value,
        interval=begun.interval,
    )
