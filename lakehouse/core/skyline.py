"""The greatest ordinal over time of many intervals, and its least and greatest value over a window; vectorised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lakehouse.core.interval import to_us

IntArray = npt.NDArray[np.int64]
Combine = Callable[[IntArray, IntArray], IntArray]

BARE = int(np.iinfo(np.int64).min)
"""Height where no interval lies: below every ordinal."""


class Ordered(Protocol):
    """What has an interval and a place in the write order: a segment or a tombstone."""

    @property
    def start(self) -> datetime: ...  # noqa: D102
    @property
    def end(self) -> datetime: ...  # noqa: D102
    @property
    def ordinal(self) -> int: ...  # noqa: D102


def bounds(entries: Sequence[Ordered]) -> tuple[IntArray, IntArray, IntArray]:
    """Starts, ends (microseconds since 1970) and ordinals as arrays."""
    return (
        np.array([to_us(one.start) for one in entries], dtype=np.int64),
        np.array([to_us(one.end) for one in entries], dtype=np.int64),
        np.array([one.ordinal for one in entries], dtype=np.int64),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Skyline:
    """Heights over time: ``heights[i]`` holds before ``edges[i]``, the last one from ``edges[-1]`` on.

    The first and last heights are `BARE`. Times are microseconds since 1970.

    >>> skyline = Skyline.of(starts=[0, 5], ends=[10, 8], ordinals=[3, 7])
    >>> skyline.edges.tolist(), skyline.heights[1:-1].tolist()
    ([0, 5, 8, 10], [3, 7, 3])
    >>> skyline.least([2, 2], [9, 11]).tolist() == [3, BARE], skyline.greatest([0, 2], [5, 9]).tolist()
    (True, [3, 7])
    """

    edges: IntArray
    heights: IntArray

    @classmethod
    def of(cls, starts: npt.ArrayLike, ends: npt.ArrayLike, ordinals: npt.ArrayLike) -> Skyline:
        """The greatest ordinal at every time. Takes O(n log n) for n intervals.

        Each interval is laid down as two runs of 2**k pieces that cover it, and runs are then halved from the longest
        to the shortest: the build of a sparse table read backwards.
        """
        start, end, ordinal = _int64(starts), _int64(ends), _int64(ordinals)
        assert bool((start < end).all()), "an interval holds at least one instant"
        edges = distinct(np.concatenate([start, end]))
        first = np.searchsorted(edges, start, side="right")
        length = np.searchsorted(edges, end, side="left") - first + 1
        level = _log2(length)
        heights = np.full(len(edges) + 1, BARE, dtype=np.int64)
        for k in range(int(level.max(initial=0)), -1, -1):
            run = 1 << k
            if k < level.max(initial=0):
                shifted = np.full_like(heights, BARE)
                shifted[run:] = heights[:-run]
                heights = np.maximum(heights, shifted)
            here = level == k
            np.maximum.at(heights, first[here], ordinal[here])
            np.maximum.at(heights, (first + length - run)[here], ordinal[here])
        return cls(edges, heights)

    def least(self, starts: npt.ArrayLike, ends: npt.ArrayLike) -> IntArray:
        """Least height over each window ``[start, end)``; `BARE` where some of it is bare."""
        return self._over(_int64(starts), _int64(ends), np.minimum)

    def greatest(self, starts: npt.ArrayLike, ends: npt.ArrayLike) -> IntArray:
        """Greatest height over each window ``[start, end)``; `BARE` where all of it is bare."""
        return self._over(_int64(starts), _int64(ends), np.maximum)

    def at(self, times: npt.ArrayLike) -> IntArray:
        """Height at each time."""
        found: IntArray = self.heights[np.searchsorted(self.edges, _int64(times), side="right")]
        return found

    def _over(self, start: IntArray, end: IntArray, combine: Combine) -> IntArray:
        """Combine the heights under each window by a sparse table of which one level at a time is kept."""
        assert bool((start < end).all()), "a window holds at least one instant"
        first = np.searchsorted(self.edges, start, side="right")
        length = np.searchsorted(self.edges, end, side="left") - first + 1
        level = _log2(length)
        found = np.empty(len(start), dtype=np.int64)
        table = self.heights
        for k in range(int(level.max(initial=0)) + 1):
            if k:
                table = combine(table[: -(1 << k >> 1)], table[1 << k >> 1 :])
            here = np.flatnonzero(level == k)
            low = first[here]
            found[here] = combine(table[low], table[low + length[here] - (1 << k)])
        return found


def distinct(values: IntArray) -> IntArray:
    """The values in order, each once; many times faster than `numpy.unique`, which hashes before it sorts.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    found: IntArray = ordered[is_first]
    return found


def _int64(values: npt.ArrayLike) -> IntArray:
    return np.asarray(values, dtype=np.int64)


def _log2(values: IntArray) -> IntArray:
    """Whole part of the binary logarithm of integers in 1 .. 2**53."""
    return np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
