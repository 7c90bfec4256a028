"""What a table's bins hold, told by time chunk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse.catalog.rows import Entry
from lakehouse.catalog.state import BinState
from lakehouse.core.bins import bin_interval
from lakehouse.core.chunk import Grain
from lakehouse.core.commit import Chunk, ChunkDiff
from lakehouse.core.interval import Interval
from lakehouse.core.listing import Listing
from lakehouse.core.segment import Segment
from lakehouse.core.version import ADD


@dataclass(slots=True)
class _Counted:
    """What was found in one chunk so far."""

    version: int = 0
    segments: int = 0
    rows: int = 0
    bytes: int = 0
    tombstones: int = 0


def list_chunks(grain: Grain, states: Iterable[BinState]) -> Listing[Chunk]:
    """Every chunk in which something is live, by time. Cost: one step for each chunk of each segment."""
    found: defaultdict[Interval, _Counted] = defaultdict(_Counted)
    for state in states:
        span = bin_interval(grain, state.bin)
        for entry in (*state.segments, *state.tombstones.values()):
            here = entry.interval.intersect(span)
            for chunk in grain.chunks(here) if here is not None else ():
                counted = found[chunk]
                counted.version = max(counted.version, state.version)
                if isinstance(entry, Segment):
                    counted.segments += 1
                    counted.rows += entry.rows
                    counted.bytes += entry.bytes
                else:
                    counted.tombstones += 1
    return Listing(
        Chunk(
            start=chunk.start,
            end=chunk.end,
            version=counted.version,
            segments=counted.segments,
            rows=counted.rows,
            bytes=counted.bytes,
            tombstones=counted.tombstones,
        )
        for chunk, counted in sorted(found.items(), key=lambda one: one[0].start)
    )


def list_changes(grain: Grain, changes: Iterable[tuple[int, Entry]]) -> dict[Interval, ChunkDiff]:
    """Changes, each told in every chunk that it touches, by time."""
    found: defaultdict[Interval, tuple[list[Entry], list[Entry]]] = defaultdict(lambda: ([], []))
    for action, entry in changes:
        for chunk in grain.chunks(entry.interval):
            found[chunk][action != ADD].append(entry)
    return {
        chunk: ChunkDiff(
            added_segments=tuple(one for one in added if isinstance(one, Segment)),
            dropped_segments=tuple(one for one in dropped if isinstance(one, Segment)),
            added_tombstones=tuple(one for one in added if not isinstance(one, Segment)),
            dropped_tombstones=tuple(one for one in dropped if not isinstance(one, Segment)),
        )
        for chunk, (added, dropped) in sorted(found.items(), key=lambda one: one[0].start)
    }
