"""What can be dropped without a rewrite: segments that cannot be seen, tombstones that hide nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lakehouse.core.clean import plan_clean
from lakehouse.core.interval import Interval
from lakehouse.core.segment import Segment
from lakehouse.core.strategy.state import TableState
from lakehouse.core.task import Candidate, Gain, TaskKind
from lakehouse.core.tombstone import Tombstone

_MOST_ENTRIES = 2_000
"""Entries that one task drops: its commit holds the head for as long as that takes."""


def clean(state: TableState) -> Iterator[Candidate]:
    """CLEAN candidates, by time: each drops some neighbours. Cost: as `plan_clean`."""
    hidden, idle = plan_clean(state.segments, state.tombstones)
    entries: list[Segment | Tombstone] = sorted([*hidden, *idle], key=lambda one: (one.start, one.end))
    for first in range(0, len(entries), _MOST_ENTRIES):
        yield _candidate(state, entries[first : first + _MOST_ENTRIES])


def _candidate(state: TableState, entries: Sequence[Segment | Tombstone]) -> Candidate:
    segments = [one.id for one in entries if isinstance(one, Segment)]
    tombstones = [one.id for one in entries if isinstance(one, Tombstone)]
    span = Interval(min(one.start for one in entries), max(one.end for one in entries))
    return Candidate(
        kind=TaskKind.CLEAN,
        strategy="clean",
        cause=f"{len(segments)} segments cannot be seen, {len(tombstones)} tombstones hide nothing",
        interval=state.spec.grain.align(span),
        segments=np.sort(np.array(segments, dtype=np.int64)),
        tombstones=np.sort(np.array(tombstones, dtype=np.int64)),
        gain=Gain(entries=len(entries)),
    )
