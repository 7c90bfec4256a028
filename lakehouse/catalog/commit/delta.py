"""What each kind of operation adds and drops, computed under the head from what is live then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import Connection

from lakehouse.catalog.commit.concurrent import least_in_flight
from lakehouse.catalog.commit.erasure import plan_erasure
from lakehouse.catalog.commit.plan import CommitContext, OperationPlan
from lakehouse.catalog.commit.row_changes import plan_resolve, plan_rows, plan_scope, rows_updated_meanwhile
from lakehouse.catalog.locks import locks
from lakehouse.catalog.state.bins import unchanged_since
from lakehouse.catalog.state.diff import changes_between
from lakehouse.catalog.versions.definitions import read_definitions
from lakehouse.catalog.versions.horizon import check_readable
from lakehouse.core.clean import idle, plan_clean
from lakehouse.core.conflict import Cell
from lakehouse.core.contribution import (
    AlterContribution,
    AppendContribution,
    CleanContribution,
    CompactionContribution,
    Contribution,
    EraseContribution,
    KeyChangeContribution,
    RepeatContribution,
    ReplaceContribution,
    ResolveContribution,
    RestoreContribution,
    RowChangeContribution,
    ScopeDeleteContribution,
)
from lakehouse.core.interval import Interval, hull
from lakehouse.core.keys import renamed_scope
from lakehouse.core.operation import ENTRY_BITS, Begun, NewTombstone, NothingToDo, Priority
from lakehouse.core.ordinal import ordinal_of
from lakehouse.core.replace import plan_replace
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.version import ADD, DROP
from lakehouse.errors import InternalError, LockLost, TooManyChunks


def plan_operation(context: CommitContext, *, first_row_id: int, now_us: int) -> OperationPlan:
    """The changes of one operation at ``context.version``.

    Raises `WriteConflict`, `LockLost`, `LookAgain`, `NothingToDo` or `locks.ChunkHeld` if it must not be committed.
    """
    contribution, version = context.contribution, context.version
    begun = contribution.begun
    plan = OperationPlan(begun)
    match contribution:
        case EraseContribution():
            plan_erasure(context, contribution, plan)
            return plan
        case RestoreContribution():
            _plan_restore(context, contribution, plan, now_us)
            return plan
        case AlterContribution():
            plan.definition = begun.table
            return plan
    ordinal = ordinal_of(begun, version)
    segments = new_segments(contribution, ordinal=ordinal, first_row_id=first_row_id)
    tombstones, sets = _plan_drops(context, plan, segments, ordinal)
    first = len(segments) + len(tombstones)
    plan.new = [
        *segments,
        *(replace(one, id=entry_id(begun.number, len(segments) + n)) for n, one in enumerate(tombstones)),
    ]
    for n, (made, at) in enumerate(sets):
        tombstone = _with_set(made, entry_id(begun.number, first + n), at)
        plan.new.append(tombstone)
        if made.content:
            plan.sets[tombstone.id] = made.content
    plan.change(ADD, plan.new)
    if contribution.if_useful and not plan.changes:
        raise NothingToDo
    return plan


def _plan_drops(
    context: CommitContext, plan: OperationPlan, segments: list[Segment], ordinal: int
) -> tuple[list[Tombstone], list[tuple[NewTombstone, int]]]:
    """DROP what an operation removes; its interval tombstones, and those with a set and an ordinal."""
    contribution = context.contribution
    tombstones: list[Tombstone] = []
    sets: list[tuple[NewTombstone, int]] = []
    match contribution:
        case AppendContribution():
            pass
        case ScopeDeleteContribution():
            tombstones, emptied = plan_scope(context, contribution, plan)
            plan.change(DROP, emptied)
        case RowChangeContribution():
            sets, emptied = plan_rows(context, contribution, plan)
            plan.change(DROP, emptied)
        case KeyChangeContribution():
            sets = [(one, context.version) for one in contribution.tombstones]
        case ResolveContribution():
            sets, resolved = plan_resolve(context, contribution)
            plan.change(DROP, resolved)
        case ReplaceContribution(properties=properties):
            tombstones = _plan_replace(context, plan, ordinal)
            plan.properties = None if properties is None else replace(context.spec, properties=properties)
            rows = rows_updated_meanwhile(context)
            sets = [] if rows is None else [(rows, context.version)]
        case CompactionContribution():
            _plan_compaction(context, plan, contribution.inputs, segments)
        case CleanContribution():
            _plan_compaction(context, plan, None, segments)
        case RepeatContribution():
            raise LockLost(
                "the commit of its txn has expired since it began; begin it again", operation=contribution.begun.id
            )
        case _:
            raise InternalError("no such operation on rows", kind=contribution.begun.kind)
    return tombstones, sets


def _plan_replace(context: CommitContext, plan: OperationPlan, ordinal: int) -> list[Tombstone]:
    """DROP what a replace covers completely; the interval tombstones over the rest."""
    begun = context.contribution.begun
    spec = begun.table
    segments, tombstones = context.live(begun.locked)
    replaced = plan_replace(
        segments, tombstones, interval=begun.locked, keys=begun.keys, ordinal=ordinal, grain=spec.grain
    )
    plan.change(DROP, replaced.drop_segments)
    plan.change(DROP, _nobody_needs(context.connection, begun, replaced.drop_tombstones))
    parts = replaced.tombstones
    if spec.write_order == "start":
        parts = tuple((part, begun.keys) for part in spec.grain.split(begun.locked))
    # As the tombstones of `Operation.tombstone`, a new one names columns as the catalog does.
    stored = spec.stored_names
    named = ((part, renamed_scope(keys, stored)) for part, keys in parts)
    return [Tombstone(id=0, start=part.start, end=part.end, ordinal=ordinal, keys=keys) for part, keys in named]


def _with_set(made: NewTombstone, entry: int, ordinal: int) -> Tombstone:
    return Tombstone(
        id=entry,
        kind=made.kind,
        start=made.interval.start,
        end=made.interval.end,
        ordinal=ordinal,
        rows=made.rows,
        path=made.path,
        bytes=made.bytes,
        checksum=made.checksum,
        min=made.min,
        max=made.max,
        buckets=made.buckets,
    )


def entry_id(number: int, index: int) -> int:
    """Id of an operation's nth segment or tombstone: unique without coordination, and in order of operations."""
    if index >= 1 << ENTRY_BITS:
        raise TooManyChunks(
            "one operation made too many segments; use a coarser grain, more target_rows or smaller intervals",
            most=1 << ENTRY_BITS,
        )
    return number << ENTRY_BITS | index


def new_segments(contribution: Contribution, *, ordinal: int, first_row_id: int) -> list[Segment]:
    """The segments that a contribution adds, with ids, and with row ids from ``first_row_id`` on."""
    made: list[Segment] = []
    for index, one in enumerate(contribution.segments):
        made.append(one.added(entry_id(contribution.begun.number, index), ordinal=ordinal, first_row_id=first_row_id))
        first_row_id += 0 if one.has_row_ids else one.rows
    return made


def _plan_compaction(
    context: CommitContext, plan: OperationPlan, inputs: frozenset[int] | None, outputs: list[Segment]
) -> None:
    """DROP the inputs, and the tombstones that hide nothing once the outputs replace them.

    Without inputs, overshadowed segments are dropped.

    Inputs may have been dropped by a delete meanwhile, whose tombstone hides their rows in the outputs too. No other
    operation can have dropped them, since the chunks are locked. Raises `LockLost` if rows were erased from one,
    because the outputs still hold them.
    """
    begun = context.contribution.begun
    spec = begun.table
    if inputs and len(unchanged_since(context.connection, inputs, begun.base_version)) < len(inputs):
        raise LockLost("rows were erased from what the operation read; begin it again", operation=begun.id)
    locked = spec.grain.align(begun.locked)
    segments, tombstones = context.live(locked)
    if inputs is None:
        inputs = frozenset(one.id for one in plan_clean(segments, tombstones)[0] if locked.contains(one.interval))
    is_input = np.isin(segments.ids, list(inputs))
    plan.change(DROP, segments.where(is_input))
    inside = _nobody_needs(context.connection, begun, [one for one in tombstones if locked.contains(one.interval)])
    plan.change(DROP, idle(inside, [*segments.where(~is_input), *outputs]) if inside else ())


def _nobody_needs(connection: Connection, begun: Begun, tombstones: Sequence[Tombstone]) -> Sequence[Tombstone]:
    """Those of some tombstones in locked chunks that no running operation needs.

    In write order ``start`` a running append has its number already. In write order ``commit`` nothing with a smaller
    number can still come into these chunks, since they are locked.
    """
    if begun.table.write_order == "commit" or not tombstones:
        return tombstones
    least = least_in_flight(connection, begun.table, but=begun.number)
    return [one for one in tombstones if one.ordinal <= least]


def _plan_restore(context: CommitContext, contribution: RestoreContribution, plan: OperationPlan, now_us: int) -> None:
    """DROP what is live now but was not at the target version, ADD what was but is not, in chunks changed since."""
    connection, spec = context.connection, context.spec
    check_readable(connection, spec, contribution.target)
    now = context.states.read(connection, spec, context.version, since=contribution.target)
    then = context.states.read(connection, spec, contribution.target, since=contribution.target)
    touched: list[Interval] = []
    for number in sorted(now.keys() | then.keys()):
        for action, entry in changes_between(now.get(number), then.get(number)):
            plan.changes[number, entry.id] = (action, entry)
            touched.append(spec.grain.align(entry.interval))
    span = hull(touched)
    if span is not None:
        plan.taken = span, None
    plan.definition = _restored_definition(connection, spec, contribution.then)
    for run in _runs(touched):
        plan.gives_way += locks.giving_way(connection, locks.Wanted(spec, Cell(run), Priority.USER), now_us)


def _restored_definition(connection: Connection, spec: TableSpec, then: TableSpec) -> TableSpec | None:
    """The definition with the columns that it had, if it has others."""
    from lakehouse.schema import restored  # noqa: PLC0415 - late

    if then.schema.equals(spec.schema, check_metadata=True) and _laid_out(then) == _laid_out(spec):
        return None
    since = (one for _, one in read_definitions(connection, spec) if one.schema_number > then.schema_number)
    return restored(spec, then, list(since))


def _laid_out(spec: TableSpec) -> tuple[Any, ...]:
    return spec.columns, spec.time, spec.grain, spec.primary_key, spec.cluster_by


def _runs(intervals: Iterable[Interval]) -> list[Interval]:
    """The fewest intervals that cover the same."""
    runs: list[Interval] = []
    for one in sorted(intervals, key=lambda interval: interval.start):
        if runs and one.start <= runs[-1].end:
            runs[-1] = Interval(runs[-1].start, max(runs[-1].end, one.end))
        else:
            runs.append(one)
    return runs
