"""Output of commands: tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from lakehouse.core.interval import MAX_TIME, MIN_TIME, Interval
from lakehouse.progress import show_bytes as show_bytes

_NAMES = frozenset({"id", "ordinal", "priority", "token", "version"})
"""Columns whose numbers are ids: no thousands separators."""
_GAP = 3
"""Cells between two columns."""
_MOST_LETTERS = 40
"""Width that a column needs at most: longer cells end in an ellipsis."""
_WIDE = 100_000
"""Width without a terminal: nothing is cut."""


def console(*, stderr: bool = False) -> Console:
    """The terminal, or a plain stream without colours that cuts nothing. Values are never read as markup."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE
    return Console(width=width, stderr=stderr, markup=False, highlight=False, emoji=False)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    json.dump(plain(value), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def plain(value: Any) -> Any:
    """A value that JSON can hold: times as ISO 8601, bytes as hex, other types as text.

    >>> plain({"chunk": Interval.of("2013-01-05"), "nan": float("nan"), "key": b"ab"})
    {'chunk': {'start': '2013-01-05T00:00:00+00:00', 'end': '2013-01-06T00:00:00+00:00'}, 'nan': 'nan', 'key': '6162'}
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Mapping():
            return {str(name): plain(held) for name, held in value.items()}
        case Sequence() | set() | frozenset():
            return [plain(held) for held in value]
        case _ if is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return str(value)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    title: str | None = None,
    are_values: bool = False,
    spare: Sequence[str] = (),
) -> None:
    """Print rows under headings, numbers right-aligned; ``are_values`` prints values of table rows unformatted.

    On a terminal that is too narrow, columns are left out, those of ``spare`` first, then from the right; one line says
    which. A single long cell ends in an ellipsis. No word is broken.
    """
    width = console().width
    if width < _WIDE:
        columns, rows, left_out = _fitting(columns, rows, are_values, spare, width)
        if left_out:
            print_line(f"left out for want of width: {', '.join(left_out)}")
    table = Table(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, title=title, title_justify="left", title_style="bold"
    )
    for place, name in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[place], (int, float)) for row in rows)
        table.add_column(printable(name), justify="right" if is_number else "left", overflow="ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(*(_text(name, cell, are_values) for name, cell in zip(columns, row, strict=True)))
    console().print(table)


def _text(name: str, cell: Any, are_values: bool) -> str:
    return str(cell) if (are_values or name in _NAMES) and isinstance(cell, int) else show(cell)


def _fitting(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], are_values: bool, spare: Sequence[str], width: int
) -> tuple[Sequence[str], Sequence[Sequence[Any]], list[str]]:
    """The columns that fit, their cells, and the names of the others; the first column always stays."""
    widths = [
        min(_MOST_LETTERS, max(cell_len(name), *(cell_len(_text(name, row[place], are_values)) for row in rows)))
        if rows
        else cell_len(name)
        for place, name in enumerate(columns)
    ]
    kept = list(range(len(columns)))
    order = [place for one in spare for place, name in enumerate(columns) if name == one]
    order += [place for place in reversed(kept) if place not in order]
    for place in order:
        if sum(widths[one] + _GAP for one in kept) - _GAP <= width or len(kept) == 1:
            break
        kept.remove(place)
    left_out = [name for place, name in enumerate(columns) if place not in kept]
    return [columns[place] for place in kept], [[row[place] for place in kept] for row in rows], left_out


def print_line(text: str) -> None:
    """Print one line of text as it is."""
    console().print(printable(text))


def show(value: Any) -> str:
    """A value as a cell of a table."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case datetime():
            return show_time(value)
        case Interval():
            return f"{show_time(value.start)} .. {show_time(value.end)}"
        case Mapping():
            return ", ".join(f"{name}={show_keys(held)}" for name, held in value.items())
        case str():
            return printable(value)
        case Sequence():
            return ", ".join(show(held) for held in value)
        case _:
            return printable(str(value))


def show_keys(value: Any) -> str:
    """Values of a key, without thousands separators: they may be names."""
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return "|".join(printable(str(held)) for held in value)
    return printable(str(value))


def show_time(instant: datetime) -> str:
    """A UTC time, as short as possible.

    >>> show_time(Interval.of("2013-01-05").start), show_time(Interval.of("2013-01-05T07").start)
    ('2013-01-05', '2013-01-05 07:00')
    """
    if instant in (MIN_TIME, MAX_TIME):
        return "-∞" if instant == MIN_TIME else "∞"
    text = instant.replace(tzinfo=None).isoformat(sep=" ")
    return text.removesuffix(":00").removesuffix(" 00:00")


def last_instant(end: datetime) -> datetime:
    """The last instant before an end: for a segment, the time of its last row."""
    return end - timedelta(microseconds=1)


def show_last(end: datetime) -> str:
    """Where something ends: at its last instant or, if that is the shorter text, before an instant.

    >>> from datetime import UTC
    >>> show_last(datetime(2013, 1, 5, 8, 0, 0, 1, tzinfo=UTC)), show_last(Interval.of("2013-01-05").end)
    ('2013-01-05 08:00', 'before 2013-01-06')
    """
    if end == MAX_TIME:
        return show_time(end)
    last, before = show_time(last_instant(end)), show_time(end)
    return last if len(last) <= len(before) else f"before {before}"


def printable(text: str) -> str:
    r"""Text without control characters: stored text must not control the terminal.

    >>> printable("red\x1b[31m")
    'red\\x1b[31m'
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
