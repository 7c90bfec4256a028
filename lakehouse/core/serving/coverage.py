"""Coverage: which intervals of each table an answer took from a node's cache, which from the warehouse.

Every segment that a query's plan opens is in one of the two, or, of a ``best_effort`` answer alone, missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.prune import Mask
from lakehouse.core.segments import Segments


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of one table: disjoint intervals, by time, that an answer's segments cover, by where they were read.

    An interval can be in two of them, since segments overlap. ``missing`` is empty unless ``best_effort`` was asked
    for.
    """

    table: str
    version: int
    cache: tuple[Interval, ...] = ()
    warehouse: tuple[Interval, ...] = ()
    missing: tuple[Interval, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    def to_json(self) -> dict[str, Any]:
        """The form in which an answer carries it."""
        return {
            "table": self.table,
            "version": self.version,
            **{name: [str(one) for one in getattr(self, name)] for name in ("cache", "warehouse", "missing")},
        }

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> Coverage:
        """The inverse of `to_json`.

        >>> one = Coverage("flights", 7, cache=(Interval.of("2013-01-05"),))
        >>> Coverage.from_json(one.to_json()) == one
        True
        """
        cache, warehouse, missing = (tuple(map(Interval.of, held[name])) for name in ("cache", "warehouse", "missing"))
        return cls(held["table"], held["version"], cache, warehouse, missing)


def coverage_of(
    table: str, version: int, segments: Segments, cached: Mask, missing: Mask | None = None, grain: Grain | None = None
) -> Coverage:
    """The certificate of a plan's segments, of which some were in the cache, and some could not be read.

    With a ``grain`` in whole time chunks, so that segments of neighbouring days make one interval.

    >>> from lakehouse.core.segment import Segment
    >>> days = [Segment(day, f"2013-01-0{day}", f"2013-01-0{day + 1}", 1) for day in (1, 2, 4)]
    >>> found = coverage_of("t", 3, Segments.of(days), np.array([True, True, False]))
    >>> [str(one) for one in found.cache], [str(one) for one in found.warehouse]
    (['2013-01-01/2013-01-03'], ['2013-01-04/2013-01-05'])
    """
    gone = np.zeros(len(segments), dtype=np.bool_) if missing is None else missing
    chosen = (cached & ~gone, ~cached & ~gone, gone)
    parts = [_joined(segments, one) for one in chosen]
    if grain is not None:
        parts = [_union(map(grain.align, one)) for one in parts]
    return Coverage(table, version, *parts)


def _joined(segments: Segments, chosen: Mask) -> tuple[Interval, ...]:
    """Intervals of some segments, those that touch as one."""
    starts, ends = segments.bounds[0][chosen], segments.bounds[1][chosen]
    if not len(starts):
        return ()
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    begins = np.flatnonzero(np.concatenate([[True], starts[1:] > reach[:-1]]))
    last = np.concatenate([begins[1:] - 1, [len(starts) - 1]])
    return tuple(
        Interval(from_us(int(start)), from_us(int(end))) for start, end in zip(starts[begins], reach[last], strict=True)
    )


def merged(parts: Iterable[Coverage]) -> tuple[Coverage, ...]:
    """One certificate for each table, where a statement reads one several times."""
    found: dict[str, Coverage] = {}
    for one in parts:
        held = found.get(one.table)
        found[one.table] = one if held is None else _both(held, one)
    return tuple(found[name] for name in sorted(found))


def _both(one: Coverage, other: Coverage) -> Coverage:
    joined = {name: _union([*getattr(one, name), *getattr(other, name)]) for name in ("cache", "warehouse", "missing")}
    return Coverage(one.table, one.version, **joined)


def _union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    found: list[Interval] = []
    for one in sorted(intervals):
        if found and one.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, one.end))
        else:
            found.append(one)
    return tuple(found)
