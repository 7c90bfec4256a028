"""Which segments of a table are worth rewriting into fewer, and together with which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import MIN_TIME
from lakehouse.core.plan import plan_read
from lakehouse.core.segment import Segment
from lakehouse.core.tombstone import Tombstone


@dataclass(frozen=True, slots=True)
class Merge:
    """Segments to rewrite together, and the tombstones that may mask their rows."""

    segments: tuple[Segment, ...]
    tombstones: tuple[Tombstone, ...]


def plan_merges(
    segments: Sequence[Segment],
    tombstones: Sequence[Tombstone],
    *,
    grain: Grain,
    target_rows: int,
    ragged: bool = False,
) -> list[Merge]:
    """Group segments by the chunks that they share and pick the groups that a rewrite improves.

    Segments that touch a common chunk, directly or over others, form a group: so every group is rewritten from whole
    chunks. A group is worth it if fewer segments could hold its rows, if tombstones mask some of them, or if a segment
    spans chunks in a table whose segments should not.

    >>> small = [Segment(id=n, start="2013-01-05", end="2013-01-06", ordinal=n, rows=10) for n in (1, 2)]
    >>> [len(merge.segments) for merge in plan_merges(small, [], grain=Grain.DAY, target_rows=1000)]
    [2]
    >>> plan_merges(small[:1], [], grain=Grain.DAY, target_rows=1000)
    []
    """
    merges = []
    for group in _groups(segments, grain):
        start, end = grain.floor(group[0].start), max(one.end for one in group)
        near = tuple(one for one in tombstones if one.start < end and one.end > start)
        if _is_worth_it(group, near, grain=grain, target_rows=target_rows, ragged=ragged):
            merges.append(Merge(tuple(group), near))
    return merges


def _groups(segments: Sequence[Segment], grain: Grain) -> list[list[Segment]]:
    groups: list[list[Segment]] = []
    reach = MIN_TIME
    for segment in sorted(segments, key=lambda one: (one.start, one.id)):
        if not groups or grain.floor(segment.start) >= reach:
            groups.append([])
        groups[-1].append(segment)
        reach = max(reach, grain.align(segment.interval).end)
    return groups


def _is_worth_it(
    group: Sequence[Segment], tombstones: Sequence[Tombstone], *, grain: Grain, target_rows: int, ragged: bool
) -> bool:
    rows = sum(one.rows for one in group)
    if len(group) > max(1, -(-rows // target_rows)):
        return True
    if not ragged and any(grain.align(one.interval).end > grain.after(grain.floor(one.start)) for one in group):
        return True
    plan = plan_read(group, tombstones, version=0)
    return len(plan.segments) < len(group) or any(part.tombstones for part in plan.groups)
