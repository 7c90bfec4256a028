"""Whole: every group of segments of an interval that a compaction improves. What `Table.compact` does when asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lakehouse.core.plan import plan_read
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec
from lakehouse.core.strategy.draft import begins_of
from lakehouse.core.tombstone import Tombstone


@dataclass(frozen=True, slots=True)
class CompactionGroup:
    """Segments to compact together, and the tombstones that may mask their rows."""

    segments: Segments
    tombstones: tuple[Tombstone, ...]


def whole(
    spec: TableSpec, segments: Segments, tombstones: Sequence[Tombstone], *, every: bool = False
) -> Iterator[CompactionGroup]:
    """Group segments by the chunks that they share, in order of time, and give the groups that a compaction improves.

    With ``every``, all groups.

    Segments that touch a common chunk, directly or over others, form a group, so that every group is written anew from
    whole chunks. Unlike the other strategies' groups (`TableState.compaction_groups`) it takes in what spans chunks:
    whoever asks for a compaction wants all of it. A group is worth it if fewer segments could hold its rows, if
    tombstones mask some of them, or if a segment spans chunks in a table whose segments should not. Cost: one sort of
    the segments, and a read plan of each group.

    >>> import pyarrow as pa
    >>> from lakehouse.core.chunk import Grain
    >>> from lakehouse.core.segment import Segment
    >>> spec = TableSpec(1, "t", "t", pa.schema([]), "ts", Grain.DAY)
    >>> small = [Segment(id=n, start="2013-01-05", end="2013-01-06", ordinal=n, rows=10) for n in (1, 2)]
    >>> [[one.id for one in group.segments] for group in whole(spec, Segments.of(small), [])]
    [[1, 2]]
    >>> list(whole(spec, Segments.of(small[:1]), []))
    []
    """
    if not len(segments):
        return
    starts, ends, _ = segments.bounds
    order = np.lexsort((segments.ids, starts))
    first = spec.grain.floor_us(starts[order])
    last = spec.grain.floor_us(ends[order] - 1)
    reach = np.maximum.accumulate(last)
    joined = np.cumsum(np.concatenate([[0], first[1:] > reach[:-1]]))
    is_astray = (last > first) & (not spec.ragged)
    for places in np.split(np.arange(len(order)), begins_of(joined)[1:]):
        group = segments.take(order[places])
        start_us, end_us = int(first[places[0]]), int(ends[order[places]].max())
        near = tuple(one for one in tombstones if one.interval.start_us < end_us and one.interval.end_us > start_us)
        if every or is_astray[places].any() or _is_worth_it(group, near, spec.target_rows):
            yield CompactionGroup(group, near)


def _is_worth_it(group: Segments, tombstones: Sequence[Tombstone], target_rows: int) -> bool:
    if len(group) > max(1, -(-group.rows // target_rows)):
        return True
    plan = plan_read(group, tombstones, version=0)
    return len(plan.segments) < len(group) or any(part.tombstones for part in plan.groups)
