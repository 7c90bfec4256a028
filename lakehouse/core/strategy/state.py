"""What a strategy is given, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lakehouse.core.interval import Interval
from lakehouse.core.policy import Policy, Threshold
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec
from lakehouse.core.strategy.hidden import Hidden, IntArray, Mask
from lakehouse.core.task import Candidate
from lakehouse.core.tombstone import Tombstone

_HOUR_US = 3_600_000_000
_LEVEL_BITS = 3
_LEVELS = 16


@dataclass(frozen=True, eq=False)
class TableState:
    """A table at one version, without what other tasks are working on.

    ``settled`` maps an age in seconds to the greatest ordinal that is at least that old: what was written later is
    younger. ``scans`` says how often plans look at a time, in plans a day: microseconds since 1970, ascending, at which
    a rate begins, and the rates.
    """

    spec: TableSpec
    policy: Policy
    version: int
    now: datetime
    segments: Segments
    tombstones: tuple[Tombstone, ...] = ()
    settled: Mapping[float, int] = field(default_factory=dict)
    scans: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] = field(
        default_factory=lambda: (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))
    )

    @cached_property
    def hidden(self) -> Hidden:
        """How many rows of each segment tombstones hide, estimated."""
        return Hidden.of(self.segments, self.tombstones)

    @cached_property
    def by_id(self) -> tuple[IntArray, IntArray]:
        """The segments' ids, ascending, and the place of each."""
        ids = self.segments.ids
        is_sorted = bool((ids[1:] > ids[:-1]).all())
        order = np.arange(len(ids)) if is_sorted else np.argsort(ids, kind="stable")
        return ids[order], order

    @cached_property
    def compaction_groups(self) -> tuple[IntArray, Mask]:
        """The group of each segment, and whether it lies in one: segments of one group can be rewritten together.

        A group is a time chunk. In a ragged table, where segments may span chunks, segments of like width share one, so
        that a narrow segment does not become a part of a wide one.
        """
        starts, ends, _ = self.segments.bounds
        grain = self.spec.grain
        first = grain.floor_us(starts)
        if not self.spec.ragged:
            return first // _HOUR_US, grain.floor_us(ends - 1) == first
        chunk = grain.chunk(Interval(0, 1).start)
        unit = chunk.end_us - chunk.start_us
        spanned = (ends - 1) // unit - starts // unit + 1
        level = np.zeros(len(starts), dtype=np.int64)
        for number in range(1, _LEVELS):
            level[spanned > 1 << _LEVEL_BITS * (number - 1)] = number
        width = unit * (np.int64(1) << np.minimum(_LEVEL_BITS * level, 20))
        return (starts // width) * _LEVELS + level, np.ones(len(starts), dtype=np.bool_)

    def limits(self, threshold: Threshold, ordinals: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """A threshold's limit for things whose newest ordinal is given.

        >>> import pyarrow as pa
        >>> from lakehouse.core.chunk import Grain
        >>> spec = TableSpec(1, "t", "t", pa.schema([]), "ts", Grain.DAY)
        >>> state = TableState(spec, Policy(), 9, datetime(2013, 1, 5), Segments.of([]), settled={3600.0: 5})
        >>> state.limits(Threshold.of("8, 2 after 1h"), np.array([4, 5, 6])).tolist()
        [2.0, 2.0, 8.0]
        """
        limits = np.full(len(ordinals), threshold.steps[0][1])
        for age, limit in threshold.steps[1:]:
            limits[ordinals <= self.settled.get(age, -1)] = limit
        return limits

    def scans_of(self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Plans a day that look at each of some intervals, at their busiest; 1 where nothing was counted.

        >>> import pyarrow as pa
        >>> from lakehouse.core.chunk import Grain
        >>> spec = TableSpec(1, "t", "t", pa.schema([]), "ts", Grain.DAY)
        >>> rates = np.array([0, 10, 20]), np.array([5.0, 40.0, 0.0])
        >>> state = TableState(spec, Policy(), 9, datetime(2013, 1, 5), Segments.of([]), scans=rates)
        >>> state.scans_of(np.array([0, 0, 30, -9]), np.array([10, 15, 40, 0])).tolist()
        [5.0, 40.0, 1.0, 1.0]
        """
        times, rates = self.scans
        found = np.ones(len(starts))
        if len(times):
            first = np.searchsorted(times, starts, side="right")
            last = np.maximum(np.searchsorted(times, ends, side="left"), first) + 1
            pairs = np.column_stack([first, last]).ravel()
            before = np.concatenate([[0.0], rates, [0.0]])  # nothing is known of what lies before the first time
            found = np.maximum(found, np.maximum.reduceat(before, pairs)[::2])
        return found


Strategy = Callable[[TableState], Iterable[Candidate]]
"""A plain function, registered as an entry point of the group ``lakehouse.strategies``."""
