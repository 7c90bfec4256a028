"""Queries of the Timeline page: one table at one version in one interval, as a picture.

Few entries are drawn one by one, stacked by ordinal. Many are first counted by time, in the catalog's columns: a
hundred thousand segments cost some passes over arrays, and zooming in leads to few.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd

from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.bars import Bar, bars
from lakehouse.core.interval import MAX_TIME, MIN_TIME, from_us, hull, to_us
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import Skyline, bounds
from queries.words import describe, framed, text_of

MOST_DRAWN = 400
"""Entries that are drawn one by one; above this neighbours cannot be distinguished."""
COLUMNS = 240
"""Number of columns of a counted picture."""
MOST_PAIRS = 2_000_000
"""The most pairs of a segment and a column; above that, columns get fewer and wider."""
KINDS = {
    "visible": "visible",
    "overshadowed": "overshadowed",
    "tombstone": "tombstone",
    "mask": "tombstone of some rows",
}
NARROWEST = timedelta(seconds=1)
"""No picture covers less time: its parts would be closer than a microsecond."""
_NARROWEST_PART = 1 / 400
"""No bar is drawn narrower than this part of the picture, or a segment of one row would not show."""
MICROSECOND = timedelta(microseconds=1)
_HATCHES = 130
"""Number of hatching lines across the whole picture."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An interval of a table at a version: its totals, and bars or columns to draw, with hatching lines.

    ``is_counted`` says that ``drawn`` has a row for each column and kind, not for each bar.
    """

    window: Interval | None
    segments: int
    rows: int
    bytes: int
    overshadowed: int
    tombstones: int
    is_counted: bool
    drawn: pd.DataFrame
    hatched: pd.DataFrame


def read_picture(lake: Any, name: str, version: int, interval: Interval | None) -> Picture:
    """The picture of an interval (None: everything). Cost: the bins that it may touch."""
    table = lake.table(name)
    segments, tombstones = lake.catalog.live(table.spec, version, interval)
    if interval is not None:
        segments = segments.within(interval)
        tombstones = [one for one in tombstones if one.interval.overlaps(interval)]
    window = interval or whole(segments, tombstones)
    window = None if window is None else zoomed(window, 1) if window.end - window.start < NARROWEST else window
    starts, ends, ordinals = segments.bounds
    sky = Skyline.of(*bounds([one for one in tombstones if one.hides_interval]))
    hidden = int((sky.least(starts, ends) > ordinals).sum())
    totals = (len(segments), segments.rows, segments.bytes, hidden, len(tombstones))
    if window is None:
        return Picture(None, *totals, False, pd.DataFrame(), pd.DataFrame())
    if len(segments) + len(tombstones) <= MOST_DRAWN:
        return Picture(window, *totals, False, *drawn_bars(segments, tombstones, window))
    return Picture(window, *totals, True, *counted(segments, tombstones, window, sky))


def stops(numbers: list[int], version: int, most: int) -> list[int]:
    """The stops of a slider through history: all versions, or some over all of it and every one near a version."""
    listed = sorted({*numbers, version})
    if len(listed) <= most:
        return listed
    here, near = listed.index(version), most // 4
    spread = np.linspace(0, len(listed) - 1, most - 2 * near).astype(int).tolist()
    return sorted({listed[one] for one in spread} | set(listed[max(0, here - near) : here + near]) | {version})


def whole(segments: Segments, tombstones: list[Tombstone]) -> Interval | None:
    """The time that segments cover; without any, that of tombstones with an end."""
    if len(segments):
        starts, ends, _ = segments.bounds
        return Interval(from_us(int(starts.min())), from_us(int(ends.max())))
    return hull(one.interval for one in tombstones if one.start > MIN_TIME and one.end < MAX_TIME)


def drawn_bars(segments: Segments, tombstones: list[Tombstone], window: Interval) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row for each bar, at its level, and the hatching over tombstones."""
    found = bars(segments, tombstones, window)
    narrowest = (window.end - window.start) * _NARROWEST_PART
    level_of = levels([*segments, *tombstones], window, narrowest)
    drawn = framed((_bar(bar, level_of[bar.of.id], window, narrowest) for bar in found), "start", "end")
    return drawn, strokes(drawn[drawn["kind"].str.startswith("tombstone")] if len(drawn) else drawn, window)


def levels(entries: list[Segment | Tombstone], window: Interval, narrowest: timedelta) -> dict[Any, int]:
    """The level of each entry: above everything older that it overlaps, by drawn width.

    A tombstone lies below a segment of its own ordinal, which it does not hide. Takes O(n^2) for n entries.
    """
    ordered = sorted(entries, key=lambda one: (one.ordinal, isinstance(one, Segment), one.start))
    starts = np.array([to_us(max(one.start, window.start)) for one in ordered], dtype=np.int64)
    ends = np.array([to_us(min(one.end, window.end)) for one in ordered], dtype=np.int64)
    width = narrowest // MICROSECOND
    starts = np.minimum(starts, window.end_us - width)
    ends = np.maximum(ends, starts + width)
    level = np.zeros(len(ordered), dtype=np.int64)
    for place in range(1, len(ordered)):
        below = (starts[:place] < ends[place]) & (ends[:place] > starts[place])
        if below.any():
            level[place] = level[:place][below].max() + 1
    return {one.id: int(height) for one, height in zip(ordered, level, strict=True)}


def _bar(bar: Bar, level: int, window: Interval, narrowest: timedelta) -> dict[str, Any]:
    start = min(bar.start, window.end - narrowest)
    return {
        "id": str(bar.of.id),
        "kind": KINDS[bar.kind],
        "level": level,
        "low": level + 0.1,
        "high": level + 0.9,
        "start": start,
        "end": max(bar.end, start + narrowest),
        "what": describe(bar.of),
        "span": str(bar.of.interval),
        "from": text_of(bar.of.start),
        "until": text_of(bar.of.end),
        "ordinal": bar.ordinal,
        "rows": bar.of.rows,
    }


def strokes(hatched: pd.DataFrame, window: Interval) -> pd.DataFrame:
    """Slanted lines over bars, on one grid, so that neighbours look alike; cut at the bars' ends."""
    step = (window.end_us - window.start_us) / _HATCHES
    rows = []
    for bar in hatched.itertuples():
        start, end = to_us(bar.start.to_pydatetime()), to_us(bar.end.to_pydatetime())
        rise = bar.high - bar.low
        for place in range(int((start - window.start_us) / step), _HATCHES):
            at = window.start_us + place * step
            if at >= end:
                break
            begin, stop = max(at, start), min(at + step, end)
            rows.append(
                {
                    "kind": bar.kind,
                    "start": from_us(int(begin)),
                    "end": from_us(int(stop)),
                    "low": bar.low + rise * (begin - at) / step,
                    "high": bar.low + rise * (stop - at) / step,
                }
            )
    return framed(rows, "start", "end") if rows else pd.DataFrame(columns=["kind", "start", "end", "low", "high"])


def counted(
    segments: Segments, tombstones: list[Tombstone], window: Interval, sky: Skyline
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How many segments are visible, and how many overshadowed, in each column of time; the same of tombstones."""
    starts, ends, ordinals = segments.bounds
    starts, ends = np.maximum(starts, window.start_us), np.minimum(ends, window.end_us)
    edges = column_edges(starts, ends, window)
    count = len(edges) - 1
    first, last = _columns_of(edges, starts, ends)
    visible = np.zeros(count, dtype=np.int64)
    total = np.zeros(count, dtype=np.int64)
    spans = last - first + 1
    for block in np.array_split(np.arange(len(starts)), max(1, int(spans.sum()) // 500_000)):
        which = np.repeat(block, spans[block])
        column = np.arange(len(which)) - np.repeat(np.cumsum(spans[block]) - spans[block], spans[block])
        column += first[which]
        low, high = np.maximum(starts[which], edges[column]), np.minimum(ends[which], edges[column + 1])
        seen = sky.least(low, high) <= ordinals[which]
        total += np.bincount(column, minlength=count)
        visible += np.bincount(column[seen], minlength=count)
    over = np.zeros(count + 1, dtype=np.int64)
    if tombstones:
        low, high, _ = bounds(tombstones)
        first, last = _columns_of(edges, np.maximum(low, window.start_us), np.minimum(high, window.end_us))
        np.add.at(over, first, 1)
        np.add.at(over, last + 1, -1)
    frame = _count_frame(edges, {"overshadowed": total - visible, "visible": visible})
    covered = _count_frame(edges, {"tombstone": np.cumsum(over)[:-1]})
    return frame, covered


def column_edges(starts: Any, ends: Any, window: Interval) -> Any:
    """Edges of columns of equal width; fewer if segments are so long that too many columns hold them."""
    width = max(1, (window.end_us - window.start_us) // COLUMNS)
    pairs = int(((ends - starts) // width + 2).sum())
    count = min(COLUMNS, window.end_us - window.start_us)
    if pairs > MOST_PAIRS:
        count = max(24, count * MOST_PAIRS // pairs)
    return np.linspace(window.start_us, window.end_us, count + 1).astype(np.int64)


def _columns_of(edges: Any, starts: Any, ends: Any) -> tuple[Any, Any]:
    most = len(edges) - 2
    first = np.clip(np.searchsorted(edges, starts, side="right") - 1, 0, most)
    return first, np.clip(np.searchsorted(edges, ends, side="left") - 1, first, most)


def _count_frame(edges: Any, by_kind: dict[str, Any]) -> pd.DataFrame:
    """One row for each column that has something of a kind."""
    found = [(kind, place, int(counts[place])) for kind, counts in by_kind.items() for place in np.flatnonzero(counts)]
    spans = [(from_us(int(edges[place])), from_us(int(edges[place + 1]))) for _, place, _ in found]
    rows = (
        {"kind": kind, "start": start, "end": end, "from": text_of(start), "until": text_of(end), "count": count}
        for (kind, _, count), (start, end) in zip(found, spans, strict=True)
    )
    return (
        framed(rows, "start", "end")
        if found
        else pd.DataFrame(columns=["kind", "start", "end", "from", "until", "count"])
    )


def zoomed(window: Interval, factor: float, shift: float = 0.0) -> Interval:
    """A window scaled about its middle, moved by fractions of its width; no narrower than a second."""
    held = window.end_us - window.start_us
    width = max(int(held * factor), NARROWEST // MICROSECOND)
    edge = 60_000_000 if width >= 1_200_000_000 else 1_000_000
    start = window.start_us + held // 2 + int(held * shift) - width // 2
    # A window moved or widened beyond the calendar stops at its end, and never becomes empty there.
    first = min(max(start, to_us(MIN_TIME)), to_us(MAX_TIME) - edge)
    first -= first % edge
    last = max(start + width, first + edge)
    return Interval(from_us(first), from_us(min(last + -last % edge, to_us(MAX_TIME))))
