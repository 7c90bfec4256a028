"""A timeline drawn with characters: time across, one line for each ordinal, the newest on top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from lakehouse.cli.output import show_time
from lakehouse.core.bars import Bar, BarKind
from lakehouse.core.svg import line_label

MARKS: dict[BarKind, str] = {"visible": "█", "overshadowed": "░", "tombstone": "╳", "mask": "╱"}
LEGEND = "█ visible   ░ overshadowed   ╳ tombstone   ╱ tombstone of some rows"
_STRENGTH: tuple[BarKind, ...] = ("mask", "tombstone", "overshadowed", "visible")
"""If several bars share a character, the last of these is drawn."""
MAX_LINES = 60


def draw(bars: Sequence[Bar], width: int, versions: Mapping[int, int] | None = None) -> Iterator[str]:
    """Lines of the picture; a bar is at least one character wide.

    ``versions``: by the ids of segments and tombstones the versions that added them, which then label the lines instead
    of ordinals; of several the newest, with a plus.

    >>> from lakehouse.core import Segment, Tombstone
    >>> from lakehouse.core.bars import bars
    >>> january = Segment(id=1, start="2013-01-01", end="2013-02-01", ordinal=1)
    >>> dropped = Tombstone(id=2, start="2013-01-20", end="2013-03-01", ordinal=2)
    >>> for line in draw(bars([january], [dropped]), width=40):
    ...     print(line)
       2 |                    ╳╳╳╳╳╳╳╳╳╳╳╳╳|
       1 |████████████████████░░░░░░░░░░░░░|
          2013-01-01             2013-02-01
    """
    if not bars:
        return
    start, end = min(bar.start for bar in bars), max(bar.end for bar in bars)
    lines = [
        (line_label(group, versions or {}), group)
        for group in (list(held) for _, held in groupby(bars, lambda bar: bar.ordinal))
    ]
    label_width = max(4, *(len(label) for label, _ in lines))
    columns = max(10, width - label_width - 3)
    for label, group in reversed(lines[-MAX_LINES:]):
        yield f"{label:>{label_width}} |{_line(group, start, end, columns)}|"
    left, right = show_time(start), show_time(end.replace(second=0, microsecond=0) if end.microsecond == 1 else end)
    yield f"{'':>{label_width}}  {left}{right:>{max(1 + len(right), columns - len(left))}}"
    if len(lines) > MAX_LINES:
        yield f"{len(lines) - MAX_LINES} older ordinals are not drawn; choose a shorter interval to see them"


def _line(bars: Sequence[Bar], start: datetime, end: datetime, columns: int) -> str:
    cells = [" "] * columns
    for bar in sorted(bars, key=lambda bar: _STRENGTH.index(bar.kind)):
        first = min(columns - 1, _column(bar.start - start, end - start, columns))
        last = max(first + 1, _column(bar.end - start, end - start, columns))
        cells[first:last] = MARKS[bar.kind] * (last - first)
    return "".join(cells)


def _column(offset: timedelta, whole: timedelta, columns: int) -> int:
    return round(columns * (offset / whole))
