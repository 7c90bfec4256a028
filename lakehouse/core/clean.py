"""Clean-up: which segments can no longer be seen, and which tombstones hide nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from lakehouse.core.row_masks import reached
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import BARE, Skyline, bounds
from lakehouse.core.spec import ROW_ID
from lakehouse.core.tombstone import Tombstone

_BLOCK = 64
"""Tombstones that are compared with all segments together."""


def plan_clean(
    segments: Iterable[Segment], tombstones: Iterable[Tombstone]
) -> tuple[tuple[Segment, ...], tuple[Tombstone, ...]]:
    """Segments and tombstones to drop, in the order given: no row that is visible now is lost or comes back.

    The segments are those that are overshadowed. The tombstones are those that `idle` finds over the others; whether an
    operation in flight can still need one, the caller knows. Takes O((n + m) log(n + m)), and O(n) for each tombstone
    of keys.

    >>> old = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1)
    >>> cover = Tombstone(id=2, start="2013-01-05", end="2013-01-06", ordinal=2)
    >>> [[one.id for one in dropped] for dropped in plan_clean([old], [cover])]
    [[1], [2]]
    """
    listed, covers = Segments.of(segments), list(tombstones)
    intervals = [one for one in covers if one.kind == "interval"]
    starts, ends, ordinals = listed.bounds
    hidden = Skyline.of(*bounds([one for one in intervals if one.hides_interval])).least(starts, ends) > ordinals
    return tuple(listed.take(np.flatnonzero(hidden))), idle(covers, listed.where(~hidden))


def idle(tombstones: Iterable[Tombstone], segments: Iterable[Segment]) -> tuple[Tombstone, ...]:
    """Tombstones that hide no row of any of these segments, as far as bounds tell.

    >>> segment = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=3, rows=10, first_row_id=100)
    >>> bounds_of = [{"_row_id": row_id} for row_id in (99, 100)]
    >>> gone = [Tombstone(id=one["_row_id"], kind="row", ordinal=4, min=one, max=one) for one in bounds_of]
    >>> [one.id for one in idle(gone, [segment])]
    [99]
    """
    listed, left = list(tombstones), Segments.of(segments)
    intervals = [one for one in listed if one.kind == "interval"]
    needed = {one.id for one, is_needed in zip(intervals, overshadows(intervals, left), strict=True) if is_needed}
    rows = [one for one in listed if one.kind == "row"]
    needed |= {one.id for one, is_needed in zip(rows, _reached_by_id(rows, left), strict=True) if is_needed}
    needed |= {one.id for one in listed if one.kind == "key" and any(True for _ in reached(left, [one]))}
    return tuple(one for one in listed if one.id not in needed)


def _reached_by_id(tombstones: list[Tombstone], segments: Segments) -> npt.NDArray[np.bool_]:
    """For each row tombstone, whether a segment of a smaller ordinal overlaps it and its row ids."""
    found = np.zeros(len(tombstones), dtype=np.bool_)
    if not tombstones or not len(segments):
        return found
    starts, ends, ordinals = bounds(tombstones)
    least = np.array([one.min.get(ROW_ID, 0) for one in tombstones], dtype=np.int64)
    greatest = np.array([one.max.get(ROW_ID, np.iinfo(np.int64).max) for one in tombstones], dtype=np.int64)
    first, last, older = segments.bounds
    low, high = segments.row_ids
    for place in range(0, len(tombstones), _BLOCK):
        part = slice(place, place + _BLOCK)
        meets = (first < ends[part, None]) & (last > starts[part, None]) & (older < ordinals[part, None])
        meets &= (low <= greatest[part, None]) & (high >= least[part, None])
        found[part] = meets.any(axis=1)
    return found


def overshadows(tombstones: list[Tombstone], segments: Sequence[Segment]) -> npt.NDArray[np.bool_]:
    """For each tombstone, whether a segment of a smaller ordinal overlaps it.

    >>> segment = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=3)
    >>> cover = [Tombstone(id=ordinal, start="2013-01-05", ordinal=ordinal) for ordinal in (3, 4)]
    >>> overshadows(cover, [segment]).tolist()
    [False, True]
    """
    if not tombstones:
        return np.zeros(0, dtype=np.bool_)
    starts, ends, ordinals = Segments.of(segments).bounds
    # Upside down, the skyline is the least ordinal of the segments over each instant.
    oldest = Skyline.of(starts, ends, -ordinals)
    starts, ends, ordinals = bounds(tombstones)
    depth = oldest.greatest(starts, ends)
    found: npt.NDArray[np.bool_] = (depth != BARE) & (-depth < ordinals)
    return found
