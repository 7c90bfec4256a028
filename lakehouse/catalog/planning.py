"""What each kind of operation adds and drops, worked out under the head from what is live then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from sqlalchemy import Connection

from lakehouse.catalog import locks
from lakehouse.catalog.models import chunk
from lakehouse.catalog.rows import Entry
from lakehouse.catalog.state import ChunkState, StateReader, distinct_entries, within
from lakehouse.core.chunk import chunk_from_us
from lakehouse.core.clean import overshadows
from lakehouse.core.interval import Interval, to_us
from lakehouse.core.operation import Contribution, Kind, Priority
from lakehouse.core.replace import MOST_CHUNKS, plan_replace
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.version import ADD, DROP, diff
from lakehouse.errors import InternalError, InvalidInput, LockLost

_ENTRIES_BITS = 20
"""An operation makes fewer than 2^20 segments and tombstones; the bits above are its number."""


@dataclass(slots=True)
class Planned:
    """``new`` entries to store, and ``changes`` by chunk start and entry: 1 for ADD, -1 for DROP."""

    new: list[Entry] = field(default_factory=list)
    changes: dict[tuple[int, int], tuple[int, Entry]] = field(default_factory=dict)

    def change(self, spec: TableSpec, action: int, entries: Iterable[Entry]) -> None:
        """Add or drop entries in every chunk that they touch."""
        for entry in entries:
            for start_us in chunk_starts(spec, entry.interval):
                self.changes[start_us, entry.id] = (action, entry)


def chunk_starts(spec: TableSpec, interval: Interval) -> list[int]:
    """Starts of the chunks that an interval touches, in microseconds."""
    first = spec.grain.chunk(interval.start)
    if interval.end <= first.end:
        return [to_us(first.start)]
    starts = [to_us(one.start) for one in islice(spec.grain.chunks(interval), MOST_CHUNKS + 1)]
    if len(starts) > MOST_CHUNKS:
        raise InvalidInput(
            "the rows of one segment touch too many time chunks; use a coarser grain, or the property ragged=false",
            interval=interval,
            most=MOST_CHUNKS,
        )
    return starts


def planned(
    connection: Connection,
    states: StateReader,
    contribution: Contribution,
    *,
    version: int,
    first_row_id: int,
    now_us: int,
) -> Planned:
    """The delta of one operation at ``version``, of which it is a part."""
    begun = contribution.begun
    spec = begun.table
    plan = Planned()
    if begun.kind is Kind.RESTORE:
        _plan_restore(connection, states, contribution, plan, version=version, now_us=now_us)
        return plan
    ordinal = version if begun.ordinal is None else begun.ordinal
    if begun.kind is Kind.COMPACTION:
        ordinal = begun.base_version
    segments = _segments(contribution, ordinal, first_row_id)
    tombstones: list[Tombstone] = []
    match begun.kind:
        case Kind.APPEND:
            pass
        case Kind.REPLACE:
            assert begun.interval is not None
            live = _live(states.read(connection, spec.id, version, within(spec.grain, begun.interval)))
            replaced = plan_replace(*live, interval=begun.interval, keys=begun.keys, ordinal=ordinal, grain=spec.grain)
            plan.change(spec, DROP, replaced.drop_segments)
            plan.change(spec, DROP, replaced.drop_tombstones if spec.write_order == "commit" else ())
            parts = replaced.tombstones
            if spec.write_order == "start":
                parts = tuple((part, begun.keys) for part in spec.grain.split(begun.interval))
            tombstones = [
                Tombstone(
                    id=entry_id(begun.number, len(segments) + n),
                    start=part.start,
                    end=part.end,
                    ordinal=ordinal,
                    keys=keys,
                )
                for n, (part, keys) in enumerate(parts)
            ]
        case Kind.COMPACTION:
            _plan_compaction(connection, states, contribution, plan, segments, version=version)
        case _:
            raise InternalError("no such operation on rows", kind=begun.kind)
    plan.new = [*segments, *tombstones]
    plan.change(spec, ADD, plan.new)
    return plan


def entry_id(number: int, index: int) -> int:
    """Id of an operation's nth segment or tombstone: unique without asking, and in order of operations."""
    if index >= 1 << _ENTRIES_BITS:
        raise InvalidInput(
            "one operation made too many segments; use a coarser grain, more target_rows or smaller intervals",
            most=1 << _ENTRIES_BITS,
        )
    return number << _ENTRIES_BITS | index


def _segments(contribution: Contribution, ordinal: int, first_row_id: int) -> list[Segment]:
    made: list[Segment] = []
    for index, one in enumerate(contribution.segments):
        made.append(
            Segment(
                id=entry_id(contribution.begun.number, index),
                start=one.start,
                end=one.end,
                ordinal=ordinal,
                rows=one.rows,
                bytes=one.bytes,
                path=one.path,
                first_row_id=0 if one.has_row_ids else first_row_id,
                has_row_ids=one.has_row_ids,
                min=one.min,
                max=one.max,
                nulls=one.nulls,
            )
        )
        first_row_id += 0 if one.has_row_ids else one.rows
    return made


def _live(states: Mapping[int, ChunkState]) -> tuple[list[Segment], list[Tombstone]]:
    entries = distinct_entries(states.values()).values()
    return (
        [entry for entry in entries if isinstance(entry, Segment)],
        [entry for entry in entries if isinstance(entry, Tombstone)],
    )


def _plan_compaction(
    connection: Connection,
    states: StateReader,
    contribution: Contribution,
    plan: Planned,
    outputs: list[Segment],
    *,
    version: int,
) -> None:
    """DROP the inputs, and the interval tombstones that overshadow nothing once the outputs stand in their place."""
    begun = contribution.begun
    spec = begun.table
    assert begun.interval is not None
    locked = spec.grain.align(begun.interval)
    segments, tombstones = _live(states.read(connection, spec.id, version, within(spec.grain, locked)))
    inputs = [one for one in segments if one.id in contribution.inputs]
    if len(inputs) != len(contribution.inputs):
        raise LockLost(
            "a segment that the compaction read is live no more; nothing was committed, run it again",
            operation=begun.id,
        )
    plan.change(spec, DROP, inputs)
    if spec.write_order == "commit":
        kept = [one for one in segments if one.id not in contribution.inputs]
        inside = [one for one in tombstones if one.kind == "interval" and locked.contains(one.interval)]
        needed = overshadows(inside, [*kept, *outputs])
        plan.change(spec, DROP, [one for one, is_needed in zip(inside, needed, strict=True) if not is_needed])


def _plan_restore(
    connection: Connection,
    states: StateReader,
    contribution: Contribution,
    plan: Planned,
    *,
    version: int,
    now_us: int,
) -> None:
    """DROP what is live and was not at the target version, ADD what was and is not, in chunks changed since."""
    spec = contribution.begun.table
    assert contribution.target is not None
    changed = chunk.c.version > contribution.target
    now = states.read(connection, spec.id, version, changed)
    then = states.read(connection, spec.id, contribution.target, changed)
    for start_us, state in now.items():
        before = then[start_us].entries if start_us in then else {}
        change = diff(list(before), list(state.entries))
        plan.changes.update({(start_us, entry): (DROP, state.entries[entry]) for entry in change.added.tolist()})
        plan.changes.update({(start_us, entry): (ADD, before[entry]) for entry in change.dropped.tolist()})
    for run in _runs(spec, {start_us for start_us, _ in plan.changes}):
        locks.make_way(connection, spec, run, None, priority=Priority.USER, now_us=now_us)


def _runs(spec: TableSpec, starts: set[int]) -> list[Interval]:
    """The fewest intervals that cover just these chunks."""
    runs: list[Interval] = []
    for start_us in sorted(starts):
        one = chunk_from_us(spec.grain, start_us)
        if runs and runs[-1].end == one.start:
            runs[-1] = Interval(runs[-1].start, one.end)
        else:
            runs.append(one)
    return runs
