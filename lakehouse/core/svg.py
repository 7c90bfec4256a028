"""A timeline as a small picture: versions stacked over time, the rows of each chunk below, with axes and a legend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from lakehouse.core.bar import Bar, BarKind
from lakehouse.core.chunk_rows import ChunkRows
from lakehouse.core.interval import MAX_TIME, MIN_TIME

_COLOURS: dict[BarKind, str] = {
    "visible": "#2f7ed8",
    "overshadowed": "#a9c4e6",
    "tombstone": "#e8590c",
    "mask": "#f5b27a",
}
_WORDS: dict[BarKind, str] = {
    "visible": "visible",
    "overshadowed": "hidden by a newer version",
    "tombstone": "deleted",
    "mask": "some rows deleted",
}
_ROWS_COLOUR = "#5b7fa6"
_LEFT, _WIDTH, _RIGHT = 60, 560, 40
_ROW, _TEXT, _CHART = 12, 14, 48
_MOST_ROWS = 12
_MOST_TICKS = 6
_JOIN_PIXELS = 2.0
_CHUNK_PIXELS = 4.0
_STEPS = [
    *(timedelta(seconds=one) for one in (1, 60, 600, 3600, 3 * 3600, 6 * 3600, 12 * 3600)),
    *(timedelta(days=one) for one in (1, 2, 7, 14)),
]
_MONTHS = (1, 3, 6, *(12 * years for years in (1, 2, 5, 10, 50, 100, 500, 1000, 2000)))


def svg(drawn: Sequence[Bar], *, versions: Mapping[int, int] | None = None, rows: ChunkRows | None = None) -> str:
    """Bars, in order of their ordinals, as SVG: time across, a line for each ordinal, the newest on top.

    ``versions``, by the ids of segments and tombstones, label the lines in place of ordinals; ``rows`` are drawn below.
    Neighbours closer than two pixels are drawn as one, and only the twelve newest ordinals: some kB whatever there is.

    >>> from lakehouse.core import Segment
    >>> from lakehouse.core.bars import bars
    >>> picture = svg(bars([Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=3)], []), versions={1: 7})
    >>> ">7</text>" in picture, "01-05 12:00" in picture, "visible" in picture
    (True, True, True)
    """
    first, last = min(bar.start for bar in drawn), max(bar.end for bar in drawn)
    lines = [list(group) for _, group in groupby(drawn, lambda bar: bar.ordinal)]
    shown = lines[-_MOST_ROWS:]
    bottom = _TEXT + _ROW * len(shown)
    left_out = f"; {len(lines) - len(shown)} older ones are not shown" if len(lines) > len(shown) else ""
    parts = [_text(0, _TEXT - 4, f"{'versions' if versions else 'write order'}, newest on top{left_out}")]
    parts.extend(_stack(shown, first, last, versions or {}))
    parts.append(_line(bottom))
    if rows is not None and rows.counts:
        bottom += _TEXT + 4
        parts.append(_text(0, bottom - 4, f"rows a {rows.grain}"))
        bottom += _CHART
        parts.extend([*_chart(rows, first, last, bottom), _line(bottom)])
    parts.extend(_axis(first, last, bottom))
    bottom += _TEXT + 4
    parts.extend(
        _legend([kind for kind in _COLOURS if any(bar.kind == kind for line in shown for bar in line)], bottom)
    )
    width, height = _LEFT + _WIDTH + _RIGHT, bottom + _TEXT
    opened = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="10" fill="#7f8ea3">'
    )
    return f"{opened}{''.join(parts)}</svg>"


def line_label(line: Sequence[Bar], versions: Mapping[int, int]) -> str:
    """The version that added what is on a line, of several the newest with a plus; without versions its ordinal."""
    found = {versions[bar.of.id] for bar in line if bar.of.id in versions}
    return f"{max(found)}{'+' if len(found) > 1 else ''}" if found else str(line[0].ordinal)


def ticks(first: datetime, last: datetime) -> list[tuple[datetime, str]]:
    """Round times in an interval, at most seven, with labels that are as short as tells them apart.

    >>> from lakehouse.core.interval import Interval
    >>> days, year = Interval.of("2013-01-30/2013-02-03"), Interval.of("2013")
    >>> [label for _, label in ticks(days.start, days.end)]
    ['2013-01-30', '2013-01-31', '2013-02-01', '2013-02-02', '2013-02-03']
    >>> [label for _, label in ticks(year.start, year.end)]
    ['2013-01', '2013-04', '2013-07', '2013-10', '2014-01']
    """
    step = next((one for one in _STEPS if last - first <= one * _MOST_TICKS), None)
    if step is None:
        return _months(first, last)
    form = "%Y-%m-%d" if step >= timedelta(days=1) else "%m-%d %H:%M" if step >= timedelta(minutes=1) else "%H:%M:%S"
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    offset = -((midnight - first) // step) * step  # to the first round time that is not before the interval
    count = (last - midnight - offset) // step + 1
    return [(at, at.strftime(form)) for at in (midnight + offset + place * step for place in range(max(0, count)))]


def _months(first: datetime, last: datetime) -> list[tuple[datetime, str]]:
    """Starts of months, or of years, at most seven."""
    step = next((one for one in _MONTHS if (last - first).days <= one * 31 * _MOST_TICKS), _MONTHS[-1])
    count = first.year * 12 + first.month - 1
    found = []
    for number in range(count - count % step, last.year * 12 + last.month, step):
        year, month = divmod(number, 12)
        if year:
            at = datetime(year, month + 1, 1, tzinfo=first.tzinfo)
            if first <= at <= last:
                found.append((at, f"{year:04}" if step >= 12 else f"{year:04}-{month + 1:02}"))
    return found


def _stack(
    lines: Sequence[Sequence[Bar]], first: datetime, last: datetime, versions: Mapping[int, int]
) -> Iterator[str]:
    """The labels of lines, and of each kind of bar one path."""
    boxes: dict[BarKind, list[str]] = {}
    for place, line in enumerate(reversed(lines)):
        top = _TEXT + place * _ROW
        yield _text(_LEFT - 4, top + _ROW - 3, line_label(line, versions), "end")
        for kind, begin, end in _runs(line, first, last):
            width = max(1.0, end - begin)
            boxes.setdefault(kind, []).append(f"M{begin:.1f} {top + 1}h{width:.1f}v{_ROW - 2}H{begin:.1f}z")
    for kind, found in boxes.items():
        yield f'<path fill="{_COLOURS[kind]}" d="{"".join(found)}"/>'


def _runs(line: Sequence[Bar], first: datetime, last: datetime) -> list[tuple[BarKind, float, float]]:
    """Bars of one ordinal as kinds and pixels; neighbours of one kind that nearly touch are one."""
    found: list[tuple[BarKind, float, float]] = []
    for bar in sorted(line, key=lambda one: (one.kind, one.start)):
        begin, end = _pixel(bar.start, first, last), _pixel(bar.end, first, last)
        if found and found[-1][0] == bar.kind and begin - found[-1][2] < _JOIN_PIXELS:
            found[-1] = (bar.kind, found[-1][1], max(end, found[-1][2]))
        else:
            found.append((bar.kind, begin, end))
    return found


def _chart(rows: ChunkRows, first: datetime, last: datetime, bottom: int) -> Iterator[str]:
    """A bar for each chunk, as high as its rows; of chunks too narrow to be told apart the one with the most."""
    drawn: list[tuple[float, float, int]] = []
    for start, end, count in zip(rows.starts, rows.ends, rows.counts, strict=True):
        begin, until = (_pixel(min(max(at, first), last), first, last) for at in (start, end))
        if drawn and until - drawn[-1][0] < _CHUNK_PIXELS:
            drawn[-1] = (drawn[-1][0], until, max(drawn[-1][2], count))
        else:
            drawn.append((begin, until, count))
    most = max(rows.counts)
    outline, at = f"M{_LEFT} {bottom}", _LEFT
    for begin, until, count in drawn:
        left, right = round(begin), max(round(begin) + 1, round(until))
        if left > at:
            outline += f"V{bottom}H{left}"
        outline += f"V{bottom - max(1, round(_CHART * count / max(1, most)))}H{right}"
        at = right
    yield f'<path fill="{_ROWS_COLOUR}" d="{outline}V{bottom}z"/>'
    yield _text(_LEFT - 4, bottom, "0", "end")
    yield _text(_LEFT - 4, bottom - _CHART + 8, f"{most:,}", "end")


def _axis(first: datetime, last: datetime, bottom: int) -> Iterator[str]:
    if (first, last) == (MIN_TIME, MAX_TIME):
        yield _text(_LEFT, bottom + _TEXT - 2, "all rows: the table has no time")
        return
    found = ticks(first, last)
    marks = "".join(f"M{_pixel(at, first, last):.0f} {bottom}v3" for at, _ in found)
    yield f'<path stroke="#7f8ea3" d="{marks}"/>'
    for at, label in found:
        yield _text(_pixel(at, first, last), bottom + _TEXT - 2, label, "middle")


def _legend(kinds: Sequence[BarKind], top: int) -> Iterator[str]:
    x = float(_LEFT)
    for kind in kinds:
        yield f'<path fill="{_COLOURS[kind]}" d="M{x:.0f} {top + 3}h9v9h-9z"/>'
        yield _text(x + 13, top + 11, _WORDS[kind])
        x += 30 + 5.5 * len(_WORDS[kind])


def _pixel(at: datetime, first: datetime, last: datetime) -> float:
    return _LEFT + _WIDTH * ((at - first) / (last - first))


def _line(y: int) -> str:
    return f'<path stroke="#7f8ea3" d="M{_LEFT} {y}h{_WIDTH}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.0f}" y="{y:.0f}"{anchored}>{text}</text>'
