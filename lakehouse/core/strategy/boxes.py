"""Segments as boxes in time and cluster keys, by their least and greatest values, and how deep they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.segment_columns import HIGH, LOW
from lakehouse.core.segments import Segments
from lakehouse.core.strategy.draft import FloatArray, IntArray, numbers_of

_BITS = 62


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """For each dimension, time being the first, the ranks of each segment's least and greatest value, both included."""

    sides: tuple[tuple[IntArray, IntArray], ...]

    @classmethod
    def of(cls, segments: Segments, columns: Sequence[str]) -> Boxes:
        """The boxes of segments in time and the columns whose bounds are known.

        A bound that a segment does not have is taken to be beyond all others. Cost: a sort of the bounds of each.
        """
        starts, ends, _ = segments.bounds
        sides = [_ranks(pa.array(starts), pa.array(ends - 1))]
        for name in columns:
            low, high = segments.statistics(LOW + name), segments.statistics(HIGH + name)
            if low is not None and high is not None:
                try:
                    sides.append(_ranks(low, high))
                except pa.ArrowNotImplementedError:  # a type that has no order bounds nothing
                    continue
        return cls(tuple(sides))

    def take(self, places: IntArray) -> Boxes:
        """Those at some places, in that order."""
        return Boxes(tuple((low[places], high[places]) for low, high in self.sides))

    def depth(self, begins: IntArray) -> FloatArray:
        """For each box of a run of boxes, how many of the run lie over a place in it, itself included.

        An estimate: their number, times the share of them that meets it in each dimension. It is exact where they
        differ in one dimension only, where they tile a grid, and where all are alike.

        >>> side = np.array([0, 0, 5, 5]), np.array([4, 4, 9, 9])
        >>> Boxes((side,)).depth(np.array([0])).tolist()
        [2.0, 2.0, 2.0, 2.0]
        """
        length = len(self.sides[0][0])
        runs = numbers_of(begins, length)
        count = np.diff(np.append(begins, length)).astype(np.float64)[runs]
        share = np.ones(length)
        for low, high in self.sides:
            share *= _met(runs, begins, low, high) / count
        return np.maximum(share * count, 1.0)

    def middles(self, dimensions: int) -> npt.NDArray[np.int64]:
        """Numbers that order boxes by the Z-order of their middles in the first few dimensions.

        >>> side = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
        >>> other = np.array([0, 1, 0, 1]), np.array([0, 1, 0, 1])
        >>> np.argsort(Boxes((side, other)).middles(2)).tolist()
        [0, 1, 2, 3]
        """
        sums = [low + high for low, high in self.sides[:dimensions]]
        bits = _BITS // len(sums)
        found = np.zeros(len(sums[0]), dtype=np.int64)
        levels = [max(int(one.max(initial=0)).bit_length(), 1) for one in sums]
        for bit in range(min(bits, max(levels))):
            for one, level in zip(sums, levels, strict=True):
                # Sides are as long as their dimension has values: the first bit of each cuts it in half.
                shift = level - 1 - bit
                found = found << 1 | ((one >> shift & 1) if shift >= 0 else 0)
        return found


def _ranks(low: pa.Array, high: pa.Array) -> tuple[IntArray, IntArray]:
    """Bounds as numbers from 1 on, 0 for no lower bound and a number above all others for no upper one."""
    both = pa.chunked_array([low, high]).combine_chunks()
    encoded = both.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.zeros(len(order) + 1, dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    codes = rank[encoded.indices.fill_null(len(order)).to_numpy()]
    least, greatest = codes[: len(low)], codes[len(low) :]
    greatest[greatest == 0] = len(order) + 1
    return least, greatest


def _met(runs: IntArray, begins: IntArray, low: IntArray, high: IntArray) -> IntArray:
    """For each side how many of its run it meets, itself included."""
    width = int(max(low.max(initial=0), high.max(initial=0))) + 1
    lows, highs = runs * width + low, runs * width + high
    started = np.searchsorted(np.sort(lows), highs, side="right")
    ended = np.searchsorted(np.sort(highs), lows, side="left")
    found: IntArray = started - ended
    return found


def met_in_time(starts: IntArray, ends: IntArray) -> IntArray:
    """For each interval how many it overlaps, itself included.

    >>> met_in_time(np.array([0, 4, 9]), np.array([5, 8, 12])).tolist()
    [2, 2, 1]
    """
    started = np.searchsorted(np.sort(starts), ends, side="left")
    ended = np.searchsorted(np.sort(ends), starts, side="right")
    found: IntArray = started - ended
    return found
