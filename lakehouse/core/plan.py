"""Which files a read opens and which tombstones mask them, decided before any file is opened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse.core.interval import Interval
from lakehouse.core.predicate import Predicate
from lakehouse.core.segment import Segment
from lakehouse.core.tombstone import Tombstone


@dataclass(frozen=True, slots=True)
class ReadGroup:
    """Segments that the same tombstones mask. Engines read a group as one scan with one mask."""

    segments: tuple[Segment, ...]
    tombstones: tuple[Tombstone, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What to read. ``interval`` limits the rows' time (None: no limit); groups are disjoint and cover ``segments``."""

    version: int
    interval: Interval | None
    groups: tuple[ReadGroup, ...]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Every segment to open."""
        return tuple(segment for group in self.groups for segment in group.segments)


def plan_read(
    segments: Iterable[Segment],
    tombstones: Iterable[Tombstone],
    *,
    version: int,
    interval: Interval | None = None,
    predicate: Predicate | None = None,
) -> ReadPlan:
    """Prune segments by interval, tombstones and predicate and group the rest by what masks them.

    A segment is left out if its interval misses ``interval``, if unkeyed interval tombstones cover all of its interval
    (within ``interval``), or if no row can pass ``predicate``. A segment is masked only by tombstones with a greater
    ordinal that overlap it. Segments of equal tombstone sets share a group, unmasked ones first; beyond
    `MAX_GROUPS` groups, segments with the same rank among the tombstones' ordinals are merged, which adds tombstones
    that match none of their rows but keeps a plan small.
    """
    raise NotImplementedError
