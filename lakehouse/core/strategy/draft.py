"""Sets of segments in columns: strategies look at a million together and make values of the best few only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lakehouse.core.interval import Interval
from lakehouse.core.strategy.state import TableState
from lakehouse.core.task import MASK_MS_PER_ROW, OPEN_MS, READ_MS_PER_BYTE, Candidate, Gain, TaskKind

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

MOST = 1_000
"""Candidates that one strategy proposes at a time, the best first: the others are found again by the next plan."""


@dataclass(frozen=True, slots=True, eq=False)
class Drafts:
    """Sets of a table's segments one after the other: ``places`` of segments, and where in them each set begins.

    ``files``, ``bytes`` and ``masked_rows`` are what a scan of each set saves, as in `Gain`.
    """

    places: IntArray
    begins: IntArray
    files: npt.NDArray[Any]
    bytes: npt.NDArray[Any]
    masked_rows: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.begins)


def propose(state: TableState, strategy: str, drafts: Drafts, cause: Callable[[int], str]) -> list[Candidate]:
    """The `MOST` best sets as candidates of a compaction, the best first; ``cause`` says why, by a set's number.

    Cost: a few passes over the segments of the sets, and a step for each candidate.
    """
    if not len(drafts):
        return []
    segments, places, begins = state.segments, drafts.places, drafts.begins
    starts, ends, _ = segments.bounds
    first, last = np.minimum.reduceat(starts[places], begins), np.maximum.reduceat(ends[places], begins)
    size, rows = total(segments.numbers("bytes")[places], begins), total(segments.numbers("rows")[places], begins)
    scans = state.scans_of(first, last)
    saved_ms = drafts.files * OPEN_MS + drafts.bytes * READ_MS_PER_BYTE + drafts.masked_rows * MASK_MS_PER_ROW
    score = saved_ms * scans / np.maximum(size, 100_000)
    best = np.argsort(-score, kind="stable")[:MOST]
    ids = segments.ids
    ends_at = np.append(begins[1:], len(places))
    return [
        Candidate(
            TaskKind.COMPACT,
            strategy,
            cause(number),
            Interval(int(first[number]), int(last[number])),
            np.sort(ids[places[begins[number] : ends_at[number]]]),
            bytes=int(size[number]),
            rows=int(rows[number]),
            gain=Gain(int(drafts.files[number]), int(drafts.bytes[number]), int(drafts.masked_rows[number])),
            scans=float(scans[number]),
        )
        for number in best.tolist()
    ]


def total(values: npt.NDArray[Any], begins: IntArray) -> npt.NDArray[Any]:
    """Sum of each run of values, by where the runs begin.

    >>> total(np.array([1, 2, 3]), np.array([0, 2])).tolist()
    [3, 3]
    """
    found: npt.NDArray[Any] = np.add.reduceat(values, begins) if len(begins) else values[:0]
    return found


def begins_of(sorted_keys: IntArray) -> IntArray:
    """Where each run of equal keys begins.

    >>> begins_of(np.array([4, 4, 7])).tolist()
    [0, 2]
    """
    if not len(sorted_keys):
        return np.empty(0, dtype=np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.flatnonzero(np.diff(sorted_keys)) + 1])


def numbers_of(begins: IntArray, length: int) -> IntArray:
    """For each element the number of its run.

    >>> numbers_of(np.array([0, 2]), 3).tolist()
    [0, 0, 1]
    """
    if not len(begins):
        return np.empty(0, dtype=np.int64)
    return np.repeat(np.arange(len(begins)), np.diff(np.append(begins, length)))


def within(values: npt.NDArray[Any], begins: IntArray) -> npt.NDArray[Any]:
    """Running sum inside each run, the element included.

    >>> within(np.array([1, 2, 3]), np.array([0, 2])).tolist()
    [1, 3, 3]
    """
    running = np.cumsum(values)
    before = running[begins] - values[begins]
    found: npt.NDArray[Any] = running - np.repeat(before, np.diff(np.append(begins, len(values))))
    return found


def pieces(size: IntArray, begins: IntArray, most_bytes: int) -> IntArray:
    """Cut runs of elements that are smaller than half of ``most_bytes`` into runs of at most that; where those begin.

    >>> pieces(np.array([30, 30, 30, 30, 30]), np.array([0]), 100).tolist()
    [0, 3]
    >>> pieces(np.array([30, 30, 30]), np.array([0]), 100).tolist()
    [0]
    """
    if not len(size):
        return begins
    # With a step that leaves room for the largest, what begins within one step is never too much together.
    step = np.maximum(most_bytes - np.maximum.reduceat(size, begins) + 1, 1)
    step = np.where(total(size, begins) <= most_bytes, most_bytes + 1, step)
    runs = numbers_of(begins, len(size))
    number = (within(size, begins) - size) // step[runs]
    is_first = np.ones(len(size), dtype=np.bool_)
    is_first[1:] = (np.diff(number) != 0) | (np.diff(runs) != 0)
    return np.flatnonzero(is_first)


def by_group(keys: IntArray, then: IntArray) -> IntArray:
    """The order by group, in it by another number.

    >>> by_group(np.array([7, 3, 7]), np.array([5, 9, 1])).tolist()
    [1, 2, 0]
    """
    least = int(keys.min(initial=0))
    if int(keys.max(initial=0)) - least < 1 << 30 and int(then.min(initial=0)) >= 0:
        # One sort of one number is several times faster than one of two.
        return np.argsort((keys - least) << 32 | np.minimum(then, (1 << 32) - 1), kind="stable")
    return np.lexsort((then, keys))


def merged_by_group(state: TableState, places: IntArray, keys: IntArray) -> tuple[IntArray, IntArray]:
    """Places sorted by group in sets that one task can read, a group's at most; what is too large for that goes alone.

    Returns them in another order, and where each set begins.
    """
    size = state.segments.numbers("bytes")
    large = size[places] * 2 >= state.policy.task_bytes
    small = places[~large]
    begins = pieces(size[small], begins_of(keys[small]), state.policy.task_bytes)
    alone = places[large]
    return np.concatenate([small, alone]), np.concatenate([begins, len(small) + np.arange(len(alone))])
