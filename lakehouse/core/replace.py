"""Replace: what an operation that takes an interval over drops, and what it has to hide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.prune import holding
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.tombstone import Tombstone
from lakehouse.errors import TooManyChunks

MOST_CHUNKS = 100_000
"""Chunks that one segment, one commit or one tombstone's replace may touch."""


@dataclass(frozen=True, slots=True)
class ReplacePlan:
    """What a replace does beside adding its data: drops, and the intervals and keys of its new tombstones."""

    drop_segments: tuple[Segment, ...] = ()
    drop_tombstones: tuple[Tombstone, ...] = ()
    tombstones: tuple[tuple[Interval, KeyScope | None], ...] = ()


def plan_replace(
    segments: Iterable[Segment],
    tombstones: Iterable[Tombstone],
    *,
    interval: Interval,
    keys: KeyScope | None = None,
    ordinal: int,
    grain: Grain,
) -> ReplacePlan:
    """Take over an interval at ``ordinal``: afterwards no row of an older segment is visible there (of those keys).

    ``segments`` and ``tombstones`` are those live now; what does not overlap the interval is ignored. Without keys,
    older segments wholly inside are dropped, and each chunk in which another older one lies gets a tombstone for its
    part of the interval; older interval tombstones wholly inside are then dropped, since all that they hid is dropped
    or hidden anew. With keys nothing is dropped, and no tombstone is made on account of a segment that by its
    statistics holds none of the keys. Costs a step a segment, a tombstone, and a chunk that gets a tombstone.

    >>> segment = Segment(id=1, start="2013-01-05", end="2013-01-07", ordinal=3)
    >>> plan = plan_replace([segment], [], interval=Interval.of("2013-01-06"), ordinal=4, grain=Grain.DAY)
    >>> plan.drop_segments, [str(part) for part, keys in plan.tombstones]
    ((), ['2013-01-06/2013-01-07'])
    >>> plan_replace([segment], [], interval=Interval.of("2013-01"), ordinal=4, grain=Grain.DAY).tombstones
    ()
    """
    touching = Segments.of(segments).within(interval)
    older = touching.where(touching.ordinals < ordinal)
    if keys is not None:
        meant = list(older.where(holding(keys, older)))
        return ReplacePlan(tombstones=tuple((part, keys) for part in _parts(meant, interval, grain)))
    inside = tuple(one for one in older if interval.contains(one.interval))
    ragged = [one for one in older if not interval.contains(one.interval)]
    return ReplacePlan(
        drop_segments=inside,
        drop_tombstones=tuple(
            one
            for one in tombstones
            if one.kind == "interval" and one.ordinal < ordinal and interval.contains(one.interval)
        ),
        tombstones=tuple((part, None) for part in _parts(ragged, interval, grain)),
    )


def check_replaceable(interval: Interval, grain: Grain) -> None:
    """Refuse an interval that touches too many chunks to leave a tombstone in each.

    Only tables in write order ``start`` need one in each: an older append may still come to any of them.
    """
    if sum(1 for _ in islice(grain.chunks(interval), MOST_CHUNKS + 1)) > MOST_CHUNKS:
        raise TooManyChunks(
            "the interval touches too many time chunks for a table in write order start; replace shorter ones",
            interval=interval,
            most=MOST_CHUNKS,
        )


def _parts(segments: list[Segment], interval: Interval, grain: Grain) -> Iterator[Interval]:
    """The parts of an interval, cut at chunk boundaries, that lie in chunks where a segment overlaps it; in order."""
    done = interval.start
    for segment in sorted(segments, key=lambda one: one.start):
        start, end = max(segment.start, done), min(segment.end, interval.end)
        if start >= end:
            continue
        for chunk in grain.chunks(Interval(start, end)):
            part = chunk.intersect(interval)
            assert part is not None, "a segment overlaps the interval in each of its chunks"
            yield part
            done = part.end
