"""A timeline as a small picture: time across, a line for each ordinal, newest on top."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from lakehouse.core.bar import Bar, BarKind

_COLOURS: dict[BarKind, str] = {
    "visible": "#2f7ed8",
    "overshadowed": "#a9c4e6",
    "tombstone": "#e8590c",
    "mask": "#f5b27a",
}
_WIDTH, _ROW, _AXIS = 600, 10, 14
_MOST_ROWS = 12
_JOIN_PIXELS = 2.0


def svg(drawn: Sequence[Bar]) -> str:
    """Bars, in order of their ordinals, as SVG.

    Neighbours closer than two pixels are drawn as one, and only the twelve newest ordinals.

    >>> from lakehouse.core import Segment
    >>> from lakehouse.core.bars import bars
    >>> svg(bars([Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=3)], [])).count("<rect")
    1
    """
    first, last = min(bar.start for bar in drawn), max(bar.end for bar in drawn)
    scale = _WIDTH / (last - first).total_seconds()
    lines = [list(group) for _, group in groupby(drawn, lambda bar: bar.ordinal)][-_MOST_ROWS:]
    height = _ROW * len(lines) + _AXIS
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>']
    for row, line in enumerate(reversed(lines)):
        for kind, begin, end in _runs(line, first, scale):
            parts.append(
                f'<rect x="{begin:.1f}" y="{row * _ROW + 1}" width="{max(1.0, end - begin):.1f}" height="{_ROW - 2}" '
                f'fill="{_COLOURS[kind]}"/>'
            )
    text = f'<text y="{height - 3}" font-family="sans-serif" font-size="10" fill="#7f8ea3"'
    parts.append(f"{text}>{first:%Y-%m-%d %H:%M}</text>")
    parts.append(f'{text} x="{_WIDTH}" text-anchor="end">{last:%Y-%m-%d %H:%M}</text></svg>')
    return "".join(parts)


def _runs(line: Sequence[Bar], first: datetime, scale: float) -> list[tuple[BarKind, float, float]]:
    """Bars of one ordinal as kinds and pixels; neighbours of one kind that nearly touch are one."""
    found: list[tuple[BarKind, float, float]] = []
    for bar in sorted(line, key=lambda one: (one.kind, one.start)):
        begin, end = ((at - first).total_seconds() * scale for at in (bar.start, bar.end))
        if found and found[-1][0] == bar.kind and begin - found[-1][2] < _JOIN_PIXELS:
            found[-1] = (bar.kind, found[-1][1], max(end, found[-1][2]))
        else:
            found.append((bar.kind, begin, end))
    return found
