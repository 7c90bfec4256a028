"""Values as HTML for notebooks. Every text is escaped: names and messages are what users wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

MOST_ROWS = 100
"""Rows of a table that are shown."""


def html_table(headings: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "", count: int = 0) -> str:
    """A table; of more than `MOST_ROWS` rows the first, and how many of ``count`` there are.

    >>> html_table(["table"], [["<b>"]])
    '<table><thead><tr><th>table</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    shown = list(islice(rows, MOST_ROWS))
    more = f"<p>the first {len(shown)} of {count}</p>" if count > len(shown) else ""
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{escape(one)}</th>" for one in headings)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in shown)
    return f"<table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    return "" if value is None else escape(str(value))
