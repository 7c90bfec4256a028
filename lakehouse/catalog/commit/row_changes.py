"""What a delete, update, merge, upsert or resolve adds, drops and conflicts with, computed under the head."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from lakehouse.catalog.commit.concurrent import (
    Change,
    RunningReplace,
    changes_since,
    compactions,
    least_in_flight,
    removals_since,
    running_replaces,
    written_interval,
)
from lakehouse.catalog.commit.plan import CommitContext, OperationPlan
from lakehouse.catalog.state.bins import live_in, touching
from lakehouse.catalog.store.models import updated_rows
from lakehouse.core.contribution import (
    MergeContribution,
    ResolveContribution,
    RowChangeContribution,
    ScopeDeleteContribution,
)
from lakehouse.core.hits import EVERYTHING, Hits, Removal, lost
from lakehouse.core.interval import Interval, from_us, hull
from lakehouse.core.keys import renamed_scope, scopes_overlap
from lakehouse.core.operation import ENTRY_BITS, Kind, NewTombstone
from lakehouse.core.prune import holding
from lakehouse.core.segments import Segments
from lakehouse.core.sets import MatchSet, decode_set, encode_set, named_keys, row_id_bounds
from lakehouse.core.spec import ROW_ID
from lakehouse.core.tombstone import Tombstone
from lakehouse.errors import WriteConflict

_UPDATES = (Kind.UPDATE, Kind.MERGE)
_TAKE_OVER = (Kind.REPLACE, Kind.DELETE)
"""Kinds that leave an interval tombstone (a delete, if it covers a whole interval): later rows there come after it."""
NOTE = 0
"""Ordinal of a tombstone that hides nothing."""


def plan_rows(
    context: CommitContext, contribution: RowChangeContribution, plan: OperationPlan
) -> tuple[list[tuple[NewTombstone, int]], Segments]:
    """Tombstones with their ordinals, and segments dropped whole, of a row-level change.

    Raises `WriteConflict` if a row to update was removed or updated by another operation since it was read, or if it
    would move out of what a running replace covers.
    """
    version, hits = context.version, contribution.hits
    keys = contribution.keys if isinstance(contribution, MergeContribution) else None
    # The keys of a merge are noted for conflicts with others; the note does not hide concurrent appends.
    ordinal = version if keys is None else NOTE
    tombstones = [(one, ordinal) for one in contribution.tombstones if one.kind == "key"]
    if not len(hits.rows) and hits.inserted is None:
        return tombstones, Segments.of([])
    removals = list(removals_since(context.connection, context.spec, contribution.begun.base_version))
    _refuse_overtaken(context, contribution, removals)
    if keys is not None and len(keys):
        _refuse_keys(context, keys)
    if not len(hits.rows):
        return tombstones, Segments.of([])
    changes = changes_since(context.connection, context.spec, hits.interval, contribution.begun.base_version)
    if contribution.begun.kind is Kind.DELETE:
        interval = _followed(context, contribution, changes)
    else:
        _refuse_lost(context, contribution, [one for _, one in removals], changes)
        plan.updated_rows = _brought_into_replaces(context, contribution)
        interval = hits.interval
    tombstones.append((row_tombstone(contribution, interval), version))
    return tombstones, _emptied(context, contribution, interval)


def _refuse_overtaken(
    context: CommitContext, contribution: RowChangeContribution, removals: list[tuple[Kind, Removal]]
) -> None:
    """Refuse a row change that comes both before and after another operation in every serial order.

    It comes before a restore, replace or delete that it did not see, and before a replace that hides the rows it moves
    there. It comes after a replace if it saw newer writes in its scope, or moves rows there that will not be hidden.
    """
    begun, read, hits = contribution.begun, contribution.read, contribution.hits
    unseen = [(one, None) for kind, one in removals if kind in _TAKE_OVER]
    for kind, one in removals:
        if kind is Kind.RESTORE and one.interval.overlaps(read):
            raise _conflict(contribution, "the chunks were restored to another version")
        if kind is Kind.ERASE and one.interval.overlaps(read):
            raise _conflict(contribution, "rows were erased")
        if kind in _TAKE_OVER and hits.covered_after(one.interval, one.keys):
            raise _conflict(contribution, "rows would come into what was replaced or deleted")
    running = running_replaces(context.connection, context.spec, Interval(None, None))
    base = begun.base_version
    for removal, replace_id in [*unseen, *((one.removal, one) for one in running)]:
        held: dict[str, Any] = {} if replace_id is None else {"replace": replace_id.id, "held": removal.interval}
        if hits.inserts_into(removal.interval, removal.keys):
            raise _conflict(contribution, "rows would come into what another operation replaces", **held)
        if removal.ordinal > base:
            continue
        is_met = removal.interval.overlaps(read) or hits.covered_after(removal.interval, removal.keys)
        if is_met and _saw_newer(context, removal, base):
            raise _conflict(contribution, "rows were there that are newer than a replace that was not", **held)


def running_overtaken(context: CommitContext, read: Interval, version: int) -> RunningReplace | None:
    """A running replace in the interval that an operation read, if newer writes were there at a version."""
    for one in running_replaces(context.connection, context.spec, read):
        if one.removal.ordinal <= version and _saw_newer(context, one.removal, version):
            return one
    return None


def _saw_newer(context: CommitContext, removal: Removal, version: int) -> bool:
    """Whether something newer than a replace was in its scope at the version that was read.

    Rows, or a tombstone that hides rows it writes: a delete of the same keys, or one by primary key.
    """
    found = context.states.read(context.connection, context.spec, version, touching(context.spec, removal.interval))
    segments, tombstones = live_in(found.values())
    for one in tombstones.values():
        may_hide = one.kind == "key" or (one.kind == "interval" and scopes_overlap(one.keys, removal.keys))
        if one.ordinal > removal.ordinal and may_hide and removal.interval.overlaps(one.interval):
            return True
    newer = segments.within(removal.interval)
    newer = newer.where(newer.ordinals > removal.ordinal)
    return bool(holding(removal.keys, newer).any())


def row_tombstone(contribution: RowChangeContribution, interval: Interval) -> NewTombstone:
    """The tombstone of an operation's hits, made before its commit, with its final interval."""
    made = next(one for one in contribution.tombstones if one.kind == "row")
    return replace(made, interval=interval)


def _followed(context: CommitContext, contribution: RowChangeContribution, changes: list[Change]) -> Interval:
    """The current interval of rows that a delete found; an update may have moved some of them meanwhile."""
    hits = contribution.hits
    interval, seen = hits.interval, set[int]()
    while True:
        moved = [one for one in changes if one.kind in _UPDATES and one.operation not in seen]
        sets = context.sets.under_head(context.connection, _meeting(hits, [one.tombstone for one in moved]))
        reached = interval
        for one in moved:
            row_ids = sets.get(one.tombstone.id)
            if isinstance(row_ids, BitMap64) and row_ids & hits.row_ids:
                if one.kind is Kind.MERGE:  # without these rows the merge would have inserted them
                    raise _conflict(contribution, "rows were updated by a merge", row_ids & hits.row_ids)
                seen.add(one.operation)
                written = written_interval(context.connection, one.operation)
                if written is not None:
                    reached = Interval(min(reached.start, written.start), max(reached.end, written.end))
        if reached == interval:
            return interval
        interval = reached
        changes = changes_since(context.connection, context.spec, interval, contribution.begun.base_version)


def _meeting(hits: Hits, tombstones: Iterable[Tombstone]) -> list[Tombstone]:
    """Tombstones that may match a hit, by bounds."""
    least, greatest = hits.row_ids.min(), hits.row_ids.max()
    return [
        one
        for one in tombstones
        if one.interval.overlaps(hits.interval)
        and (one.kind == "key" or (one.min.get(ROW_ID, least) <= greatest and one.max.get(ROW_ID, greatest) >= least))
    ]


def _refuse_lost(
    context: CommitContext, contribution: RowChangeContribution, removals: list[Removal], changes: list[Change]
) -> None:
    hits = contribution.hits
    sets = context.sets.under_head(context.connection, _meeting(hits, [one.tombstone for one in changes]))
    row_ids = [one for one in sets.values() if isinstance(one, BitMap64)]
    keys = [named_keys(one, context.spec) for one in sets.values() if not isinstance(one, BitMap64)]
    gone = lost(hits, removals, row_ids, keys)
    if gone:
        raise _conflict(contribution, "rows were removed or updated by another operation", gone)


def _refuse_keys(context: CommitContext, inserted: pa.Table) -> None:
    """Refuse a merge whose inserted keys were added by others meanwhile."""
    begun = context.contribution.begun
    changes = changes_since(context.connection, context.spec, Interval(None, None), begun.base_version)
    tombstones = [one.tombstone for one in changes if one.tombstone.kind == "key"]
    for held in context.sets.under_head(context.connection, tombstones).values():
        keys = named_keys(held, context.spec)
        twice = inserted.join(keys, inserted.column_names, join_type="left semi")
        if len(twice):
            raise WriteConflict(
                "a key was added by another operation since this one began; run it again",
                table=begun.table.name,
                operation=begun.id,
                rows=len(twice),
                example=twice.slice(0, 1).to_pylist()[0],
            )


def _brought_into_replaces(context: CommitContext, contribution: RowChangeContribution) -> list[tuple[int, BitMap64]]:
    """Rows updated in what a running replace covers, by the replace's number; refuse a move out of that."""
    hits = contribution.hits
    after = hits.interval_after
    if after is None:
        return []
    brought = []
    whole = Interval(min(hits.interval.start, after.start), max(hits.interval.end, after.end))
    for one in running_replaces(context.connection, context.spec, whole):
        interval, keys, _ = one.removal
        moved = hits.moved_out(interval, keys)
        if moved:
            raise _conflict(
                contribution, "rows would leave what a running replace covers", moved, replace=one.id, held=interval
            )
        covered = hits.covered_after(interval, keys)
        if covered:
            brought.append((one.number, covered))
    return brought


def _conflict(
    contribution: RowChangeContribution, what: str, row_ids: BitMap64 | None = None, **facts: Any
) -> WriteConflict:
    begun, hits = contribution.begun, contribution.hits
    rows = hits.rows
    if row_ids:
        rows = rows.filter(pc.is_in(rows.column(ROW_ID), pa.array([row_ids.min()], pa.int64())))
    return WriteConflict(
        f"{what} since this operation read them; run it again",
        table=begun.table.name,
        operation=begun.id,
        rows=len(hits.rows) if row_ids is None else len(row_ids),
        example=rows.slice(0, 1).to_pylist()[0] if len(rows) else None,
        **facts,
    )


def _emptied(context: CommitContext, contribution: RowChangeContribution, interval: Interval) -> Segments:
    """Live segments of which every row was found.

    The tombstone stays, because a compaction may hold copies of the rows.
    """
    emptied = contribution.emptied
    if not emptied:
        return Segments.of([])
    segments, _ = context.live(interval)
    return segments.where(np.isin(segments.ids, list(emptied)))


def plan_scope(
    context: CommitContext, contribution: ScopeDeleteContribution, plan: OperationPlan
) -> tuple[list[Tombstone], Segments]:
    """An interval tombstone over a delete's scope, and the segments that lie wholly under it.

    It covers all or none of what may still come with a smaller ordinal, the rows of a running replace. It reads and
    locks nothing, and hides what was committed before. The tombstone stays if a segment was there, because a compaction
    may hold copies of its rows. Cost: the chunks of the interval.
    """
    interval, keys = contribution.interval, contribution.keys
    plan.taken = interval, keys
    older = context.live(interval)[0].within(interval)
    starts, ends, _ = older.bounds
    span = Interval(from_us(int(starts.min())), from_us(int(ends.max()))) if len(older) else None
    inside = older.where((starts >= interval.start_us) & (ends <= interval.end_us) & (keys is None))
    running = [one.removal.interval for one in running_replaces(context.connection, context.spec, interval)]
    reach = interval if context.spec.write_order == "start" else hull([*running, *([] if span is None else [span])])
    covered = None if reach is None else interval.intersect(reach)
    if covered is None:
        return [], inside
    named = renamed_scope(keys, context.spec.stored_names)
    return [Tombstone(id=0, start=covered.start, end=covered.end, ordinal=context.version, keys=named)], inside


def rows_updated_meanwhile(context: CommitContext) -> NewTombstone | None:
    """A tombstone of the rows that were updated in the scope of a replace while it ran."""
    begun = context.contribution.begun
    query = updated_rows.select().where(updated_rows.c.operation == begun.number)
    rows = context.connection.execute(query).all()
    if not rows:
        return None
    row_ids = BitMap64()
    for row in rows:
        noted: MatchSet = decode_set("row", bytes(row.row_ids))
        assert isinstance(noted, BitMap64)
        row_ids |= noted
    low, high, _ = row_id_bounds(row_ids)
    return NewTombstone("row", begun.locked, len(row_ids), content=encode_set(row_ids), min=low, max=high)


def plan_resolve(
    context: CommitContext, contribution: ResolveContribution
) -> tuple[list[tuple[NewTombstone, int]], list[Tombstone]]:
    """Row tombstones that replace key tombstones, at their ordinals.

    A key tombstone stays if rows that it has to hide may have been added since the resolve read, or may still be added:
    by a running operation with a smaller ordinal, or by a restore.
    """
    begun = contribution.begun
    if any(kind is Kind.RESTORE for kind, _ in removals_since(context.connection, context.spec, begun.base_version)):
        return [], []
    segments, tombstones = context.live(None)
    live = {one.id for one in tombstones}
    least = min(least_in_flight(context.connection, context.spec), _least_come(context, contribution.inputs, segments))
    done = [one for one in contribution.resolved if one.id in live and one.ordinal <= least]
    ids = {one.id for one in done}
    made = [
        (one, one.replaces.ordinal)
        for one in contribution.tombstones
        if one.replaces is not None and one.replaces.id in ids
    ]
    return made, done


def _least_come(context: CommitContext, inputs: frozenset[int], segments: Segments) -> int:
    """The least ordinal of the segments added since a resolve read, compactions of what it read excepted."""
    come = segments.where(~np.isin(segments.ids, list(inputs)))
    compacting = compactions(context.connection, {one >> ENTRY_BITS for one in come.ids.tolist()})
    mine = come.where(~np.isin(come.ids >> ENTRY_BITS, list(compacting)))
    return int(mine.ordinals.min()) if len(mine) else EVERYTHING
