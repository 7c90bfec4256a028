"""The timeline: what a laser sees that moves over a table from left to right."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse.core.bar import Bar
from lakehouse.core.interval import Interval, from_us, to_utc
from lakehouse.core.segment import Segment
from lakehouse.core.skyline import IntArray, Skyline, bounds, distinct
from lakehouse.core.svg import svg
from lakehouse.core.tombstone import Tombstone

_REPR_SLICES = 20
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Slice:
    """A run of time in which the same segments can be seen.

    ``tombstones`` hide some of its rows but not the slice: they have key scopes, primary keys or row ids. Both are in
    order of ordinal, then id.
    """

    start: datetime
    end: datetime
    segments: tuple[Segment, ...]
    tombstones: tuple[Tombstone, ...] = ()

    @property
    def interval(self) -> Interval:
        """The closed-open interval of the run."""
        return Interval(self.start, self.end)

    def __repr__(self) -> str:
        masks = f", tombstones={_ids(self.tombstones)}" if self.tombstones else ""
        return f"Slice({str(self.interval)!r}, segments={_ids(self.segments)}{masks})"


@dataclass(frozen=True, slots=True)
class Timeline:
    """Slices in order of time, gaps absent, and the segments none of whose interval can be seen."""

    slices: tuple[Slice, ...] = ()
    overshadowed: tuple[Segment, ...] = ()

    def __iter__(self) -> Iterator[Slice]:
        return iter(self.slices)

    def __len__(self) -> int:
        return len(self.slices)

    def to_arrow(self) -> pa.Table:
        """A row a slice: start, end, and the ids of its segments and tombstones."""
        return pa.table(
            {
                "start": pa.array([one.start for one in self.slices], _TIME),
                "end": pa.array([one.end for one in self.slices], _TIME),
                "segments": pa.array([_ids(one.segments) for one in self.slices]),
                "tombstones": pa.array([_ids(one.tombstones) for one in self.slices]),
            }
        )

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return f"<timeline of {len(self.slices)} slices, {len(self.overshadowed)} segments overshadowed>"

    def _repr_html_(self) -> str:
        """A picture: time across, a line for each ordinal."""
        visible = [Bar("visible", one.start, one.end, part.ordinal, part) for one in self for part in one.segments]
        masks = [Bar("mask", one.start, one.end, part.ordinal, part) for one in self for part in one.tombstones]
        hidden = [Bar("overshadowed", one.start, one.end, one.ordinal, one) for one in self.overshadowed]
        drawn = sorted([*visible, *masks, *hidden], key=lambda bar: (bar.ordinal, bar.start, bar.end))
        return svg(drawn) if drawn else "nothing is visible"

    def __str__(self) -> str:
        lines = [f"Timeline({len(self.slices)} slices, {len(self.overshadowed)} overshadowed)"]
        for one in self.slices[:_REPR_SLICES]:
            masks = f"  tombstones {_ids(one.tombstones)}" if one.tombstones else ""
            lines.append(f"  {one.interval}  segments {_ids(one.segments)}{masks}")
        if len(self.slices) > _REPR_SLICES:
            lines.append(f"  ... {len(self.slices) - _REPR_SLICES} more")
        if self.overshadowed:
            lines.append(f"  overshadowed {_ids(self.overshadowed)}")
        return "\n".join(lines)


def timeline(segments: Iterable[Segment], tombstones: Iterable[Tombstone], within: Any = None) -> Timeline:
    """Slices that can be seen, from left to right, and the segments that cannot be seen at all.

    Only interval tombstones without keys hide, and only segments of a smaller ordinal. ``within`` is anything that
    `Interval.of` reads: slices are cut to it, and only segments that overlap it are looked at; an empty
    ``(start, start)`` sees nothing. Takes O((n + m) log(n + m)) for n segments and m tombstones, plus the size of the
    answer, plus moving a list of the segments that lie over one instant.

    >>> january = Segment(id=1, start="2013-01-01", end="2013-02-01", ordinal=1)
    >>> tombstone = Tombstone(id=2, start="2013-01-05", end="2013-01-07", ordinal=2)
    >>> tuesday = Segment(id=3, start="2013-01-05", end="2013-01-06", ordinal=2)
    >>> print(timeline([january, tuesday], [tombstone], within="2013-01"))
    Timeline(3 slices, 0 overshadowed)
      2013-01-01/2013-01-05  segments [1]
      2013-01-05/2013-01-06  segments [3]
      2013-01-07/2013-02-01  segments [1]
    """
    if _is_empty(within):
        return Timeline()
    window = None if within is None else Interval.of(within)
    listed = [one for one in segments if window is None or (one.start < window.end and window.start < one.end)]
    listed.sort(key=lambda one: (one.ordinal, one.id))
    hiding, masking = _split(tombstones)
    starts, ends, ordinals = bounds(listed)
    sky = Skyline.of(*bounds(hiding))
    hidden = sky.least(starts, ends) > ordinals
    seen = [one for one, is_hidden in zip(listed, hidden.tolist(), strict=True) if not is_hidden]
    starts, ends, ordinals = starts[~hidden], ends[~hidden], ordinals[~hidden]
    if window is not None:
        starts, ends = np.maximum(starts, window.start_us), np.minimum(ends, window.end_us)
    runs = list(_sweep(starts, ends, ordinals, sky))
    masks = _masks(runs, ordinals, masking)
    return Timeline(
        slices=tuple(
            Slice(from_us(start), from_us(end), tuple(seen[rank] for rank in ranks), mask)
            for (start, end, ranks), mask in zip(runs, masks, strict=True)
        ),
        overshadowed=tuple(one for one, is_hidden in zip(listed, hidden.tolist(), strict=True) if is_hidden),
    )


def overshadowed_mask(
    starts_us: npt.ArrayLike,
    ends_us: npt.ArrayLike,
    ordinals: npt.ArrayLike,
    tombstone_starts_us: npt.ArrayLike,
    tombstone_ends_us: npt.ArrayLike,
    tombstone_ordinals: npt.ArrayLike,
) -> npt.NDArray[np.bool_]:
    """Which segments are wholly hidden by interval tombstones without keys; all arguments are arrays of int64.

    Takes O((n + m) log m) for n segments and m tombstones.

    >>> overshadowed_mask([0, 0], [9, 11], [1, 1], [0, 5], [6, 10], [2, 3]).tolist()
    [True, False]
    """
    sky = Skyline.of(tombstone_starts_us, tombstone_ends_us, tombstone_ordinals)
    hidden: npt.NDArray[np.bool_] = sky.least(starts_us, ends_us) > np.asarray(ordinals, dtype=np.int64)
    return hidden


_Run = tuple[int, int, list[int]]
"""Start, end and ranks of the visible segments."""


def _sweep(starts: IntArray, ends: IntArray, ordinals: IntArray, sky: Skyline) -> Iterator[_Run]:
    """Walk over the instants at which something begins, ends or is hidden by more or less than before.

    Segments are ranked in order of ordinal: what can be seen is the tail of the sorted ranks that lie over the
    instant, from the first rank whose ordinal is not below the skyline.
    """
    times = distinct(np.concatenate([starts, ends, sky.edges]))
    floors = np.searchsorted(ordinals, sky.at(times), side="left").tolist()
    beginning = _by_time(times, starts)
    ending = _by_time(times, ends)
    over: list[int] = []
    ranks: list[int] = []
    since = floor_before = 0
    for place, (time, floor) in enumerate(zip(times.tolist(), floors, strict=True)):
        gone, come = ending.get(place, ()), beginning.get(place, ())
        for rank in gone:
            del over[bisect_left(over, rank)]
        low, high = min(floor_before, floor), max(floor_before, floor)
        changed = (
            any(rank >= floor_before for rank in gone)
            or any(rank >= floor for rank in come)
            or bisect_left(over, low) < bisect_left(over, high)
        )
        for rank in come:
            insort(over, rank)
        if changed:
            if ranks:
                yield since, time, ranks
            since, ranks = time, over[bisect_left(over, floor) :]
        floor_before = floor
    assert not over, "every segment ends"


def _by_time(times: IntArray, instants: IntArray) -> dict[int, list[int]]:
    """Which ranks have their instant at each place in ``times``."""
    found: dict[int, list[int]] = {}
    for rank, place in enumerate(np.searchsorted(times, instants).tolist()):
        found.setdefault(place, []).append(rank)
    return found


def _masks(runs: Sequence[_Run], ordinals: IntArray, masking: Sequence[Tombstone]) -> list[tuple[Tombstone, ...]]:
    """For each run, the tombstones that overlap it and are younger than its oldest segment."""
    found: list[list[Tombstone]] = [[] for _ in runs]
    starts = np.array([start for start, _, _ in runs], dtype=np.int64)
    ends = np.array([end for _, end, _ in runs], dtype=np.int64)
    oldest = ordinals[np.array([ranks[0] for _, _, ranks in runs], dtype=np.int64)]
    for tombstone in sorted(masking, key=lambda one: (one.ordinal, one.id)):
        first = int(np.searchsorted(ends, tombstone.interval.start_us, side="right"))
        last = int(np.searchsorted(starts, tombstone.interval.end_us, side="left"))
        for place in np.flatnonzero(oldest[first:last] < tombstone.ordinal).tolist():
            found[first + place].append(tombstone)
    return [tuple(one) for one in found]


def _split(tombstones: Iterable[Tombstone]) -> tuple[list[Tombstone], list[Tombstone]]:
    """Tombstones that hide all rows of their interval, and those that mask some."""
    hiding: list[Tombstone] = []
    masking: list[Tombstone] = []
    for one in tombstones:
        (hiding if one.hides_interval else masking).append(one)
    return hiding, masking


def _is_empty(within: Any) -> bool:
    """Whether a window is a pair of one instant twice: no instant lies in it, so nothing can be seen."""
    match within:
        case (start, end) if start is not None and end is not None:
            return to_utc(start) == to_utc(end)
        case _:
            return False


def _ids(entries: Sequence[Segment | Tombstone]) -> list[Any]:
    return [one.id for one in entries]
