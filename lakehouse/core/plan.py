"""Which files a read opens and which tombstones mask them, decided before any file is opened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lakehouse.core.group import MAX_GROUPS, ReadGroup, group_by_mask
from lakehouse.core.interval import Interval
from lakehouse.core.predicate import Predicate
from lakehouse.core.prune import matching
from lakehouse.core.row_masks import reached
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import Skyline, bounds
from lakehouse.core.tombstone import Tombstone

__all__ = ["MAX_GROUPS", "ReadGroup", "ReadPlan", "plan_read"]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What to read. ``interval`` limits the rows' time (None: no limit); groups are disjoint and cover ``segments``."""

    version: int
    interval: Interval | None
    groups: tuple[ReadGroup, ...]
    erasure: int | None = None
    """The lake's newest erasure when it was made, whose files it names; None where nobody asked."""

    @property
    def segments(self) -> Segments:
        """Every segment to open."""
        return Segments.joined([Segments.of(group.segments) for group in self.groups])


def plan_read(
    segments: Iterable[Segment],
    tombstones: Iterable[Tombstone],
    *,
    version: int,
    interval: Interval | None = None,
    predicate: Predicate | None = None,
    max_groups: int = MAX_GROUPS,
) -> ReadPlan:
    """Prune segments by interval, tombstones and predicate and group the rest by what masks them.

    A segment is left out if its interval misses ``interval``, if unkeyed interval tombstones cover all of its interval
    (within ``interval``), or if no row can pass ``predicate``. A segment is masked only by tombstones with a greater
    ordinal that overlap it and whose keys it may hold. Segments of equal tombstone sets share a group, unmasked ones
    first. Beyond ``max_groups`` groups, it merges groups whose tombstones cannot wrongly hide each other's rows: a
    segment may then carry tombstones that match none of its rows, but the plan stays small. Row and key tombstones add
    at most one group of each kind: a group has every one that may reach one of its segments, and each hides rows of
    smaller ordinals.

    >>> friday = Segment(id=1, start="2013-01-04", end="2013-01-05", ordinal=1)
    >>> weekend = Segment(id=2, start="2013-01-05", end="2013-01-07", ordinal=2)
    >>> dropped = Tombstone(id=3, start="2013-01-06", end="2013-01-09", ordinal=3)
    >>> plan = plan_read([friday, weekend], [dropped], version=3)
    >>> [([one.id for one in group.segments], [one.id for one in group.tombstones]) for group in plan.groups]
    [([1], []), ([2], [3])]
    """
    listed = Segments.of(segments)
    if interval is not None:
        listed = listed.within(interval)
    if predicate is not None:
        listed = listed.where(matching(predicate, listed))
    masks = sorted(
        (one for one in tombstones if interval is None or (one.start < interval.end and interval.start < one.end)),
        key=lambda one: (one.ordinal, one.id),
    )
    starts, ends, ordinals = listed.bounds
    if interval is not None:
        starts, ends = np.maximum(starts, interval.start_us), np.minimum(ends, interval.end_us)
    covers = [one for one in masks if one.hides_interval]
    if covers:
        seen = Skyline.of(*bounds(covers)).least(starts, ends) <= ordinals
        listed, starts, ends, ordinals = listed.where(seen), starts[seen], ends[seen], ordinals[seen]
    intervals = [one for one in masks if one.kind == "interval"]
    sets = [one for one in masks if one.kind != "interval"]
    if not sets:
        return ReadPlan(version, interval, group_by_mask(listed, (starts, ends, ordinals), intervals, max_groups))
    deep = np.zeros(len(listed), dtype=np.bool_)
    bundles: list[Tombstone] = []
    for mask, bundle in reached(listed, sets):
        deep |= mask
        bundles.extend(bundle)
    groups: list[ReadGroup] = []
    for chosen, over in ((~deep, ()), (deep, tuple(sorted(bundles, key=lambda one: (one.ordinal, one.id))))):
        part = (starts[chosen], ends[chosen], ordinals[chosen])
        found = group_by_mask(listed.where(chosen), part, intervals, max_groups)
        groups.extend(ReadGroup(group.segments, (*group.tombstones, *over)) for group in found)
    return ReadPlan(version, interval, tuple(groups))
