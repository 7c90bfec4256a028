"""What a table's bins hold, listed by time chunk."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse.catalog.state.bins import BinState
from lakehouse.catalog.store.rows import Entry
from lakehouse.core.bins import bin_interval
from lakehouse.core.chunk import Chunk, Grain
from lakehouse.core.diff import ChunkDiff
from lakehouse.core.interval import Interval
from lakehouse.core.listing import Listing
from lakehouse.core.segment import Segment
from lakehouse.core.version import ADD


@dataclass(slots=True)
class _Counted:
    """The totals of one chunk so far."""

    version: int = 0
    segments: int = 0
    rows: int = 0
    bytes: int = 0
    tombstones: int = 0

    def add(self, version: int, entry: Entry) -> None:
        self.version = max(self.version, version)
        if isinstance(entry, Segment):
            self.segments += 1
            self.rows += entry.rows
            self.bytes += entry.bytes
        else:
            self.tombstones += 1


def _is_wide(grain: Grain, interval: Interval) -> bool:
    return grain.number_of(interval.end_us - 1) - grain.number_of(interval.start_us) >= MOST_LISTED


MOST_LISTED = 10_000
"""Chunks of one segment or tombstone that are listed one by one."""


def list_chunks(grain: Grain, bin_grain: Grain, states: Iterable[BinState]) -> Listing[Chunk]:
    """Every chunk in which something is live, by time. Cost: one step for each chunk of each segment.

    Entries over more than `MOST_LISTED` chunks, such as key tombstones, are counted only in chunks with other entries.
    """
    found: defaultdict[Interval, _Counted] = defaultdict(_Counted)
    wide: list[tuple[int, Entry, Interval]] = []
    counted_before: set[tuple[Interval, int]] = set()
    for state in states:
        span = bin_interval(bin_grain, state.bin)
        for entry in (*state.segments, *state.tombstones.values()):
            here = entry.interval.intersect(span)
            if here is not None and _is_wide(grain, here):
                wide.append((state.version, entry, here))
                continue
            for chunk in grain.chunks(here) if here is not None else ():
                if bin_grain != grain:  # then several bins of an entry may lie in one chunk
                    if (chunk, entry.id) in counted_before:
                        found[chunk].version = max(found[chunk].version, state.version)
                        continue
                    counted_before.add((chunk, entry.id))
                found[chunk].add(state.version, entry)
    listed = sorted(found, key=lambda chunk: chunk.start) if wide else []
    starts, ends = [one.start for one in listed], [one.end for one in listed]
    for version, entry, here in wide:
        for chunk in listed[bisect_right(ends, here.start) : bisect_left(starts, here.end)]:
            found[chunk].add(version, entry)
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
    """Changes, each listed in every chunk that it touches, by time; once where these are more than `MOST_LISTED`."""
    found: defaultdict[Interval, tuple[list[Entry], list[Entry]]] = defaultdict(lambda: ([], []))
    for action, entry in changes:
        aligned = grain.align(entry.interval)
        for chunk in (aligned,) if _is_wide(grain, aligned) else grain.chunks(entry.interval):
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
