"""Rows of each time chunk, as far as segments say: what a picture of a timeline shows below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lakehouse.core.bar import Bar
from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.segment import Segment

_MOST_CHUNKS = 2_000
"""Of a bar over more chunks than a picture has pixels, all rows count for its first."""


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """How many rows each chunk has, in order of time; chunks without any are left out."""

    grain: str
    starts: tuple[datetime, ...]
    ends: tuple[datetime, ...]
    counts: tuple[int, ...]


def chunk_rows(drawn: Iterable[Bar], grain: Grain) -> ChunkRows:
    """Stored rows of what is visible, by chunk: those of a segment in parts lie evenly over its time.

    Rows that a tombstone of some rows hides are counted, since only a read could tell where they lie.

    >>> from lakehouse.core.bars import bars
    >>> days = Segment(id=1, start="2013-01-01", end="2013-01-03", ordinal=1, rows=10)
    >>> chunk_rows(bars([days], []), Grain.DAY).counts
    (5, 5)
    """
    found: dict[Interval, float] = defaultdict(float)
    for bar in drawn:
        if bar.kind != "visible" or not isinstance(bar.of, Segment) or not bar.of.rows:
            continue
        whole, part = bar.of.interval, Interval(bar.start, bar.end)
        rows_a_second = bar.of.rows / (whole.end - whole.start).total_seconds()
        chunk = grain.chunk(part.start)
        if chunk.contains(part) or (part.end - part.start) > _MOST_CHUNKS * (chunk.end - chunk.start):
            found[chunk] += rows_a_second * (part.end - part.start).total_seconds()
            continue
        for one in grain.chunks(part):
            shared = one.intersect(part)
            if shared is not None:
                found[one] += rows_a_second * (shared.end - shared.start).total_seconds()
    chunks = sorted(found)
    return ChunkRows(
        str(grain),
        tuple(one.start for one in chunks),
        tuple(one.end for one in chunks),
        tuple(round(found[one]) for one in chunks),
    )
