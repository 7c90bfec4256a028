"""Which segments row and key tombstones may reach into, by bounds alone.

They match single rows, so that no bound tells that they hide a segment; a table that has none pays nothing, and one
that has pays only for the segments that they may reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from lakehouse.core.bucket import Buckets
from lakehouse.core.predicate import And, Compare, Predicate
from lakehouse.core.prune import matching
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import bounds
from lakehouse.core.spec import ROW_ID
from lakehouse.core.tombstone import Tombstone

Mask = npt.NDArray[np.bool_]
_MOST_BUNDLES = 48
"""Tombstones are looked at together, by common bounds, where there are more."""


def reached(segments: Segments, tombstones: Iterable[Tombstone]) -> Iterator[tuple[Mask, Sequence[Tombstone]]]:
    """Bundles of row and key tombstones, each with the segments that one of them may reach; none that reach none.

    A tombstone reaches a segment of a smaller ordinal whose interval it overlaps and of whose row ids, or values of its
    primary key, the bounds meet. Cost: a few passes over the segments for each bundle, of which there are few.

    >>> from lakehouse.core.segment import Segment
    >>> old = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1, rows=10, first_row_id=100)
    >>> gone = Tombstone(id=2, kind="row", ordinal=2, min={"_row_id": 109}, max={"_row_id": 120})
    >>> [(mask.tolist(), len(bundle)) for mask, bundle in reached(Segments.of([old]), [gone])]
    [([True], 1)]
    """
    for kind in ("row", "key"):
        listed = sorted((one for one in tombstones if one.kind == kind), key=lambda one: (one.ordinal, one.id))
        size = -(-len(listed) // _MOST_BUNDLES)
        for first in range(0, len(listed), max(1, size)):
            bundle = listed[first : first + size]
            mask = _reach(segments, bundle)
            if mask.any():
                yield mask, bundle


def _reach(segments: Segments, bundle: Sequence[Tombstone]) -> Mask:
    starts, ends, ordinals = segments.bounds
    first, last, newest = bounds(bundle)
    mask: Mask = (starts < last.max()) & (ends > first.min()) & (ordinals < newest.max())
    if bundle[0].kind == "row":
        least, greatest = segments.row_ids
        mask &= (greatest >= min(one.min.get(ROW_ID, 0) for one in bundle)) & (
            least <= max(one.max.get(ROW_ID, np.iinfo(np.int64).max) for one in bundle)
        )
        return mask
    inside = _inside(bundle)
    if inside is not None:
        mask &= matching(inside, segments)
    if len(bundle) == 1 and bundle[0].buckets:
        for place in np.flatnonzero(mask).tolist():
            mask[place] = _share_buckets(bundle[0], segments[place].buckets)
    return mask


def _inside(bundle: Sequence[Tombstone]) -> Predicate | None:
    """That a row's key columns lie between the least and greatest of the bundle's."""
    parts: list[Predicate] = []
    for name in bundle[0].min:
        if all(name in one.min and name in one.max for one in bundle):
            parts.append(Compare(name, ">=", min(one.min[name] for one in bundle)))
            parts.append(Compare(name, "<=", max(one.max[name] for one in bundle)))
    return And(tuple(parts)) if parts else None


def _share_buckets(tombstone: Tombstone, held: Buckets) -> bool:
    for name, wanted in tombstone.buckets.items():
        there = held.get(name, b"")
        if len(there) == len(wanted) and not int.from_bytes(there, "little") & int.from_bytes(wanted, "little"):
            return False
    return True
