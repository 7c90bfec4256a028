"""A timeline as bars to draw: of every segment the parts that can be seen and the parts that cannot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lakehouse.core.bar import Bar as Bar
from lakehouse.core.bar import BarKind as BarKind
from lakehouse.core.interval import Interval, hull
from lakehouse.core.segment import Segment
from lakehouse.core.timeline import timeline
from lakehouse.core.tombstone import Tombstone


def bars(segments: Iterable[Segment], tombstones: Iterable[Tombstone], within: Any = None) -> tuple[Bar, ...]:
    """Bars in order of ordinal, then time. Without ``within``, tombstones are cut to the time that segments cover.

    >>> january = Segment(id=1, start="2013-01-01", end="2013-02-01", ordinal=1)
    >>> dropped = Tombstone(id=2, start="2013-01-20", end="2013-03-01", ordinal=2)
    >>> for bar in bars([january], [dropped]):
    ...     print(bar.ordinal, f"{bar.start:%m-%d} {bar.end:%m-%d}", bar.kind)
    1 01-01 01-20 visible
    1 01-20 02-01 overshadowed
    2 01-20 02-01 tombstone
    """
    listed, masks = list(segments), list(tombstones)
    window = hull(one.interval for one in listed) if within is None else Interval.of(within)
    if window is None:
        return ()
    seen: dict[Any, list[Interval]] = {}
    for one in timeline(listed, masks, window):
        for segment in one.segments:
            parts = seen.setdefault(segment.id, [])
            if parts and parts[-1].end == one.start:
                parts[-1] = Interval(parts[-1].start, one.end)
            else:
                parts.append(one.interval)
    drawn = [bar for segment in listed for bar in _of_segment(segment, window, seen.get(segment.id, []))]
    for tombstone in masks:
        part = tombstone.interval.intersect(window)
        if part is not None:
            kind: BarKind = "tombstone" if tombstone.hides_interval else "mask"
            drawn.append(Bar(kind, part.start, part.end, tombstone.ordinal, tombstone))
    return tuple(sorted(drawn, key=lambda bar: (bar.ordinal, bar.start, bar.end)))


def _of_segment(segment: Segment, window: Interval, visible: list[Interval]) -> list[Bar]:
    """The visible parts, and what lies between them."""
    whole = segment.interval.intersect(window)
    if whole is None:
        return []
    found = []
    since = whole.start
    for part in visible:
        if since < part.start:
            found.append(Bar("overshadowed", since, part.start, segment.ordinal, segment))
        found.append(Bar("visible", part.start, part.end, segment.ordinal, segment))
        since = part.end
    if since < whole.end:
        found.append(Bar("overshadowed", since, whole.end, segment.ordinal, segment))
    return found
