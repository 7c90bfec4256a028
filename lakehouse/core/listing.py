"""Lists of values that turn into Arrow tables and data frames."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, TypeVar

import pyarrow as pa

from lakehouse.core.html import MOST_ROWS, html_table
from lakehouse.core.interval import Interval

T = TypeVar("T")


class Listing(list[T]):
    """A list of one kind of value, with an Arrow form: a row a value, a column a field.

    Intervals become two columns, ``start`` and ``end`` (prefixed by the field's name unless it is ``interval`` or
    ``chunk``); maps, and lists of mixed types, become JSON text.

    >>> from lakehouse.core.segment import Segment
    >>> Listing([Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=3)]).to_arrow().column_names[:4]
    ['id', 'start', 'end', 'ordinal']
    """

    def to_arrow(self) -> pa.Table:
        """The values as an Arrow table; one without columns for an empty list."""
        return pa.Table.from_pylist([_row(value) for value in self])

    def to_pandas(self) -> Any:
        """The values as a pandas frame."""
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        shown = [_row(value) for value in self[:MOST_ROWS] if is_dataclass(value)]
        headings = list(shown[0]) if shown else []
        return html_table(headings, ([row.get(name) for name in headings] for row in shown), count=len(self))


def _row(value: Any) -> dict[str, Any]:
    assert is_dataclass(value)
    row: dict[str, Any] = {}
    for field in fields(value):
        held = getattr(value, field.name)
        if isinstance(held, Interval):
            prefix = "" if field.name in ("interval", "chunk") else f"{field.name}_"
            row[f"{prefix}start"], row[f"{prefix}end"] = held.start, held.end
        else:
            row[field.name] = _cell(held)
    return row


def _cell(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str() | bytes() | datetime():
            return value
        case Mapping():
            return json.dumps({str(name): held for name, held in value.items()}, default=str, sort_keys=True)
        case Sequence() | set() | frozenset():
            cells = [_cell(getattr(item, "id", item)) for item in value]
            return cells if len({type(cell) for cell in cells}) <= 1 else json.dumps(cells, default=str)
        case _:
            return str(value)
