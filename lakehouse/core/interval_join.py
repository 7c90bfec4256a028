"""Which tombstones lie over which segments: all pairs that overlap, found together; vectorised."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lakehouse.core.skyline import BARE, IntArray

Bounds = tuple[IntArray, IntArray, IntArray]
"""Starts, ends and ordinals, as `lakehouse.core.skyline.bounds` gives them."""

_BLOCK = 8192
_NEVER = int(np.iinfo(np.int64).max)


def masking_pairs(segments: Bounds, tombstones: Bounds) -> Iterator[tuple[IntArray, IntArray]]:
    """Places of all pairs of a segment and a tombstone that overlaps it and has a greater ordinal, in blocks.

    Each block holds all pairs of some consecutive segments, sorted by segment, then by the tombstone's start. A block
    of segments goes down one binary tree over the tombstones in order of start, level by level; a node knows the
    least start, greatest end and greatest ordinal below it, and a segment enters only where it may find something.
    Takes O(m log m) once and about O(log m) a pair.

    >>> segments = np.array([0, 10]), np.array([5, 15]), np.array([1, 4])
    >>> tombstones = np.array([4, 4, 0]), np.array([6, 11, 20]), np.array([2, 3, 5])
    >>> [[found.tolist() for found in block] for block in masking_pairs(segments, tombstones)]
    [[[0, 0, 0, 1], [2, 0, 1, 2]]]
    """
    starts, ends, ordinals = segments
    order = np.argsort(tombstones[0], kind="stable")
    if not len(order):
        return
    levels = _levels(tombstones[0][order], tombstones[1][order], tombstones[2][order])
    for first in range(0, len(starts), _BLOCK):
        segment = np.arange(first, min(first + _BLOCK, len(starts)), dtype=np.int64)
        node = np.zeros(len(segment), dtype=np.int64)
        for least_start, greatest_end, greatest_ordinal in levels:
            if len(least_start) > 1:
                segment = np.repeat(segment, 2)
                node = np.repeat(node * 2, 2)
                node[1::2] += 1
            found = least_start[node] < ends[segment]
            found &= greatest_end[node] > starts[segment]
            found &= greatest_ordinal[node] > ordinals[segment]
            segment, node = segment[found], node[found]
        yield segment, order[node]


def _levels(starts: IntArray, ends: IntArray, ordinals: IntArray) -> list[Bounds]:
    """Least start, greatest end and greatest ordinal of each node of a full binary tree, from the root to the leaves.

    Leaves beyond the last tombstone overlap nothing.
    """
    leaves = 1 << (len(starts) - 1).bit_length()
    level = (_pad(starts, leaves, _NEVER), _pad(ends, leaves, BARE), _pad(ordinals, leaves, BARE))
    levels = [level]
    while len(level[0]) > 1:
        start, end, ordinal = level
        level = (
            np.minimum(start[0::2], start[1::2]),
            np.maximum(end[0::2], end[1::2]),
            np.maximum(ordinal[0::2], ordinal[1::2]),
        )
        levels.append(level)
    return levels[::-1]


def _pad(values: IntArray, length: int, filler: int) -> IntArray:
    return np.concatenate([values, np.full(length - len(values), filler, dtype=np.int64)])
