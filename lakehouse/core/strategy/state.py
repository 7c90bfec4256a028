"""What a strategy is given, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from lakehouse.core.policy import Policy, Threshold
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec
from lakehouse.core.task import Candidate
from lakehouse.core.tombstone import Tombstone


@dataclass(frozen=True, slots=True, eq=False)
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
    found: dict[str, Any] = field(default_factory=dict, repr=False)
    """What one strategy found out about all segments, kept for the others."""

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
