"""INDEX and STATS: segments that lack summaries which their table's policy requests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lakehouse.core.interval import Interval, from_us
from lakehouse.core.segments import Segments
from lakehouse.core.strategy import TableState
from lakehouse.core.task import Candidate, Gain, Ids, TaskKind
from lakehouse.operations.summarize import missing_indexes, missing_statistics
from lakehouse.session.session import Session

_MOST_SEGMENTS = 256
"""The most segments of one task."""


def summaries(session: Session, state: TableState, compacted: Ids) -> Iterator[Candidate]:
    """Candidates for segments that are not about to be compacted. A table that requests none costs nothing."""
    left = state.segments.where(~np.isin(state.segments.ids, compacted)) if len(compacted) else state.segments
    if state.policy.index:
        missing = missing_indexes(session, state.spec, left)
        what = f"an index of {', '.join(state.policy.index)}"
        yield from _candidates(TaskKind.INDEX, what, left.where(np.isin(left.ids, missing)), state)
    if state.policy.statistics:
        missing = missing_statistics(session, state.spec, left)
        yield from _candidates(TaskKind.STATS, "sketches", left.where(np.isin(left.ids, missing)), state)


def _candidates(kind: TaskKind, what: str, segments: Segments, state: TableState) -> Iterator[Candidate]:
    """In order of time, each within what one task may read; a larger segment goes alone."""
    order = np.lexsort((segments.ids, segments.bounds[0]))
    segments = segments.take(order)
    sizes = segments.numbers("bytes")
    first = 0
    while first < len(segments):
        within = int(np.searchsorted(np.cumsum(sizes[first:]), state.policy.task_bytes, side="right"))
        part = segments[first : first + min(max(within, 1), _MOST_SEGMENTS)]
        starts, ends, _ = part.bounds
        yield Candidate(
            kind=kind,
            strategy=kind.value,
            cause=f"{len(part)} segments lack {what}",
            interval=Interval(from_us(int(starts.min())), from_us(int(ends.max()))),
            segments=np.sort(part.ids),
            bytes=part.bytes,
            rows=part.rows,
            # An index saves a look-up perhaps every other file; a sketch saves no scan, but helps people and planners.
            gain=Gain(files=len(part) // 2) if kind is TaskKind.INDEX else Gain(),
            scans=float(state.scans_of(starts.min()[None], ends.max()[None])[0]),
        )
        first += len(part)
