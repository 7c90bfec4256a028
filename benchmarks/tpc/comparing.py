"""Whether two results are the same: rows as a bag, in the order that the text asks for as far as it does.

Whole numbers, decimals, text and dates are compared exactly; doubles to 1e-9 of their size, as a sum of them depends on
the order in which they are added. Names of columns and widths of numbers are
not compared; a date is a time at midnight.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

CLOSE = 1e-9
Row = tuple[Any, ...]


def difference(ours: pa.Table, plain: pa.Table, order: Sequence[int] = ()) -> str | None:
    """The first difference in words, None if there is none. ``order``: places of columns that rows are in order of.

    >>> one = pa.table({"a": [1, 2], "b": [0.1 + 0.2, 1.0]})
    >>> difference(one, pa.table({"a": [2, 1], "b": [1.0, 0.3]}))
    >>> difference(one, pa.table({"a": [2, 1], "b": [1.0, 0.3]}), order=[0])
    'the order differs at row 0: 1 and 2'
    >>> difference(one, pa.table({"a": [1, 2], "b": [0.3, 1.1]}))
    'ours alone has (2, 1.0); plain alone has (2, 1.1)'
    """
    if ours.num_columns != plain.num_columns:
        return f"{ours.num_columns} columns and {plain.num_columns}"
    mine, theirs = _rows(ours), _rows(plain)
    if len(mine) != len(theirs):
        return f"{len(mine)} rows and {len(theirs)}"
    only, other = _unmatched(mine, theirs)
    if only or other:
        return f"ours alone has {only[0]}; plain alone has {other[0]}" + _more(len(only))
    for place in order:
        for number, (one, two) in enumerate(zip(mine, theirs, strict=True)):
            if not _same(one[place], two[place]):
                return f"the order differs at row {number}: {one[place]} and {two[place]}"
    return None


def _more(count: int) -> str:
    return f" ({count} rows differ)" if count > 1 else ""


def _rows(table: pa.Table) -> list[Row]:
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, list):
        return tuple(_plain(one) for one in value)
    return value


def _unmatched(mine: list[Row], theirs: list[Row]) -> tuple[list[Row], list[Row]]:
    """Rows that have no counterpart; those that agree in all but doubles are paired by nearness."""
    groups: dict[Row, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    is_double = _doubles(mine, theirs)
    for side, rows in enumerate((mine, theirs)):
        for row in rows:
            key = tuple(None if near else value for value, near in zip(row, is_double, strict=True))
            groups[key][side].append(row)
    only: list[Row] = []
    other: list[Row] = []
    for one, two in groups.values():
        rest = sorted(two, key=_sortable)
        for row in sorted(one, key=_sortable):
            found = next((place for place, candidate in enumerate(rest) if _same_row(row, candidate)), None)
            if found is None:
                only.append(row)
            else:
                rest.pop(found)
        other += rest
    return only, other


def _doubles(mine: list[Row], theirs: list[Row]) -> list[bool]:
    """Which columns hold a double on one of the sides."""
    width = len(mine[0]) if mine else 0
    return [any(isinstance(row[place], float) for rows in (mine, theirs) for row in rows) for place in range(width)]


def _sortable(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple(
        ("", 0) if one is None else ("number", float(one)) if _is_number(one) else ("other", str(one)) for one in row
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal)


def _same_row(one: Row, two: Row) -> bool:
    return all(_same(mine, theirs) for mine, theirs in zip(one, two, strict=True))


def _same(one: Any, two: Any) -> bool:
    if (isinstance(one, float) or isinstance(two, float)) and _is_number(one) and _is_number(two):
        mine, theirs = float(one), float(two)
        return (math.isnan(mine) and math.isnan(theirs)) or math.isclose(mine, theirs, rel_tol=CLOSE, abs_tol=1e-12)
    return bool(one == two)
