"""Clean-up: which segments can no longer be seen, and which tombstones hide nothing."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lakehouse.core.segment import Segment
from lakehouse.core.skyline import BARE, Skyline, bounds
from lakehouse.core.tombstone import Tombstone


def plan_clean(
    segments: Iterable[Segment], tombstones: Iterable[Tombstone]
) -> tuple[tuple[Segment, ...], tuple[Tombstone, ...]]:
    """Segments and tombstones to drop, in the order given: no row that is visible now is lost or comes back.

    The segments are those that are overshadowed. The tombstones are those of intervals, with keys or without, that no
    remaining segment of a smaller ordinal overlaps; whether an operation in flight can still need one, the caller
    knows. Takes O((n + m) log(n + m)).

    >>> old = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1)
    >>> cover = Tombstone(id=2, start="2013-01-05", end="2013-01-06", ordinal=2)
    >>> [[one.id for one in dropped] for dropped in plan_clean([old], [cover])]
    [[1], [2]]
    """
    listed = list(segments)
    intervals = [one for one in tombstones if one.kind == "interval"]
    starts, ends, ordinals = bounds(listed)
    hidden = Skyline.of(*bounds([one for one in intervals if one.hides_interval])).least(starts, ends) > ordinals
    idle = ~overshadows(intervals, [one for one, is_hidden in zip(listed, hidden, strict=True) if not is_hidden])
    return (
        tuple(listed[place] for place in np.flatnonzero(hidden).tolist()),
        tuple(intervals[place] for place in np.flatnonzero(idle).tolist()),
    )


def overshadows(tombstones: list[Tombstone], segments: list[Segment]) -> npt.NDArray[np.bool_]:
    """For each tombstone, whether a segment of a smaller ordinal overlaps it.

    >>> segment = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=3)
    >>> cover = [Tombstone(id=ordinal, start="2013-01-05", ordinal=ordinal) for ordinal in (3, 4)]
    >>> overshadows(cover, [segment]).tolist()
    [False, True]
    """
    starts, ends, ordinals = bounds(segments)
    # Upside down, the skyline is the least ordinal of the segments over each instant.
    oldest = Skyline.of(starts, ends, -ordinals)
    starts, ends, ordinals = bounds(tombstones)
    depth = oldest.greatest(starts, ends)
    found: npt.NDArray[np.bool_] = (depth != BARE) & (-depth < ordinals)
    return found
