"""Filters as small trees: their SQL text, and their meaning for a row, in plain Python.

The meaning is Spark's in ANSI mode and three-valued: True, False, and None for null. It shares nothing with the
library's interpretation of filters, not even the parser. A row holds numbers, text, bytes and booleans unchanged;
single-precision numbers as rounded floats; dates and times as whole days and microseconds since 1970.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

Row = Mapping[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000
_MOST = 1 << 63
_PASSING = {
    "=": (0,), "==": (0,), "<>": (-1, 1), "!=": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1),
}  # fmt: skip


class OutOfRangeError(ArithmeticError):
    """A whole number beyond 64 bits: the read fails, if it calculates this for the row."""


@dataclass(frozen=True, slots=True)
class Node:
    """``op`` of ``parts``: nodes, and other arguments of the operator. ``kind`` is the family of its values."""

    op: str
    kind: str
    parts: tuple[Any, ...]


def evaluate(node: Node, row: Row) -> Any:
    """The value of a node for a row. Every part is evaluated, so `OutOfRangeError` says whether any could fail."""
    return meaning(node)(row)


def meaning(node: Node) -> Callable[[Row], Any]:
    """The value of a node, as a function of the row."""
    match node.op, node.parts:
        case "column", (name,):
            return lambda row: row[name]
        case "literal", (value, _):
            return lambda _: value
        case "like", (text, tokens, _, negated):
            return _like(meaning(text), tokens, negated)
        case "case", (tests, results, otherwise):
            chosen = _case([meaning(one) for one in tests], [meaning(one) for one in results], meaning(otherwise))
            return _typed(node, chosen)
    function, parts = (
        _MEANING[node.op],
        [meaning(one) if isinstance(one, Node) else _constant(one) for one in node.parts],
    )
    return _typed(node, lambda row: function(*[part(row) for part in parts]))


def _typed(node: Node, value: Callable[[Row], Any]) -> Callable[[Row], Any]:
    """A value in the node's family: numbers become doubles if any alternative is a double."""
    return (lambda row: _double(value(row))) if node.kind == "double" else value


def _constant(value: Any) -> Callable[[Row], Any]:
    return lambda _: value


def _double(value: Any) -> float | None:
    return None if value is None else float(value)


def _case(
    tests: list[Callable[[Row], Any]], results: list[Callable[[Row], Any]], otherwise: Callable[[Row], Any]
) -> Callable[[Row], Any]:
    def chosen(row: Row) -> Any:
        values, last = [(test(row), result(row)) for test, result in zip(tests, results, strict=True)], otherwise(row)
        return next((result for test, result in values if test is True), last)

    return chosen


def _like(text: Callable[[Row], Any], tokens: tuple[str, ...], negated: bool) -> Callable[[Row], bool | None]:
    """Tokens are letters, ``any`` for a run of letters and ``one`` for one."""
    marks = {"any": ".*", "one": "."}
    pattern = re.compile("".join(marks.get(one, re.escape(one)) for one in tokens), re.DOTALL)

    def passes(row: Row) -> bool | None:
        value = text(row)
        return None if value is None else (pattern.fullmatch(value) is not None) != negated

    return passes


def order(one: Any, other: Any) -> int:
    """-1, 0 or 1. If one is a double, both are; NaN equals itself and is greater than all else."""
    if isinstance(one, float) or isinstance(other, float):
        one, other = float(one), float(other)
        if math.isnan(one) or math.isnan(other):
            return int(math.isnan(one)) - int(math.isnan(other))
    return int(one > other) - int(one < other)


def _compare(one: Any, operator: str, other: Any) -> bool | None:
    if one is None or other is None:
        return None
    return order(one, other) in _PASSING[operator]


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return order(one, other) == 0


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(*values: bool | None) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _or(*values: bool | None) -> bool | None:
    return _not(_and(*map(_not, values)))


def _in(value: Any, negated: bool, is_double: bool, *options: Any) -> bool | None:
    """One double among them makes all numbers doubles."""
    if is_double and value is not None:
        value, options = float(value), tuple(None if one is None else float(one) for one in options)
    found = _or(*(_compare(value, "=", one) for one in options))
    return _not(found) if negated else found


def _between(value: Any, negated: bool, low: Any, high: Any) -> bool | None:
    found = _and(_compare(value, ">=", low), _compare(value, "<=", high))
    return _not(found) if negated else found


def _whole(value: int) -> int:
    if not -_MOST <= value < _MOST:
        raise OutOfRangeError(value)
    return value


def _calculate(one: Any, operator: str, other: Any) -> Any:
    if one is None or other is None:
        return None
    if operator == "/":
        one, other = float(one), float(other)
    if operator in ("/", "%", "div") and other == 0:
        return None
    if isinstance(one, int) and isinstance(other, int):
        return _whole(_of_integers(one, operator, other))
    return _of_doubles(float(one), operator, float(other))


def _of_integers(one: int, operator: str, other: int) -> int:
    match operator:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
    quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
    return quotient if operator == "div" else one - quotient * other


def _of_doubles(one: float, operator: str, other: float) -> float:
    match operator:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
        case "/":
            return one / other
    return math.nan if math.isinf(one) else math.fmod(one, other)


def _negative(value: Any) -> Any:
    return None if value is None else _whole(-value) if isinstance(value, int) else -value


def _absolute(value: Any) -> Any:
    return None if value is None else _whole(abs(value)) if isinstance(value, int) else abs(value)


def _cast(value: Any, target: str) -> Any:
    if value is None:
        return None
    match target:
        case "DOUBLE":
            return float(value)
        case "BIGINT":
            return int(value)
    return value // _DAY_US


def _part(value: int | None, part: str, is_day: bool) -> int | None:
    if value is None:
        return None
    time = _EPOCH + timedelta(microseconds=value * _DAY_US if is_day else value)
    match part:
        case "quarter":
            return (time.month + 2) // 3
        case "dayofyear":
            return time.timetuple().tm_yday
        case "dayofmonth":
            return time.day
    return int(getattr(time, part))


def _both(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda one, other: None if one is None or other is None else function(one, other)


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _is(value: bool | None, wanted: bool, negated: bool) -> bool:
    return (value is wanted) != negated


_MEANING: Mapping[str, Callable[..., Any]] = {
    "compare": _compare,
    "distinct": lambda one, other: not _same(one, other),
    "same": _same,
    "not_distinct": _same,
    "and": _and,
    "or": _or,
    "not": _not,
    "is": _is,
    "null": lambda value, negated: (value is None) != negated,
    "in": _in,
    "between": _between,
    "calculate": _calculate,
    "negative": _negative,
    "abs": _absolute,
    "isnan": lambda value: value is not None and math.isnan(value),
    "length": lambda value: None if value is None else len(value),
    "join": _both(lambda one, other: one + other),
    "startswith": _both(lambda one, other: one.startswith(other)),
    "endswith": _both(lambda one, other: one.endswith(other)),
    "contains": _both(lambda one, other: other in one),
    "part": _part,
    "day_of": lambda value, _: None if value is None else value // _DAY_US,
    "cast": _cast,
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "ifnull": _coalesce,
    "nullif": lambda one, other: None if _compare(one, "=", other) else one,
    "if": lambda test, one, other: one if test is True else other,
}


def written(node: Node) -> str:
    """The node in Spark's SQL."""
    match node.op, node.parts:
        case "literal", (_, text):
            return str(text)
        case "like", (text, tokens, escape, negated):
            return _written_like(written(text), tokens, escape, negated)
        case "case", (tests, results, otherwise):
            whens = " ".join(f"WHEN {written(t)} THEN {written(r)}" for t, r in zip(tests, results, strict=True))
            return f"CASE {whens} ELSE {written(otherwise)} END"
    parts = [written(one) if isinstance(one, Node) else one for one in node.parts]
    return _WRITTEN[node.op](*parts)


def _written_like(text: str, tokens: tuple[str, ...], escape: str, negated: bool) -> str:
    marks = {"any": "%", "one": "_"}
    pattern = "".join(marks.get(one, escape + one if one in ("%", "_", escape) else one) for one in tokens)
    ending = "" if escape == "\\" else f" ESCAPE {quoted(escape)}"
    return f"({text} {'NOT ' * negated}LIKE {quoted(pattern)}{ending})"


def quoted(text: str) -> str:
    r"""A string literal.

    >>> print(quoted("it's"))
    'it\'s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _call(name: str) -> Callable[..., str]:
    return lambda *parts: f"{name}({', '.join(parts)})"


_WRITTEN: Mapping[str, Callable[..., str]] = {
    "column": lambda name: f"`{name}`",
    "compare": lambda one, operator, other: f"({one} {operator} {other})",
    "distinct": lambda one, other: f"({one} IS DISTINCT FROM {other})",
    "not_distinct": lambda one, other: f"({one} IS NOT DISTINCT FROM {other})",
    "same": lambda one, other: f"({one} <=> {other})",
    "and": lambda *parts: "(" + " AND ".join(parts) + ")",
    "or": lambda *parts: "(" + " OR ".join(parts) + ")",
    "not": lambda one: f"(NOT {one})",
    "is": lambda one, wanted, negated: f"({one} IS {'NOT ' * negated}{'TRUE' if wanted else 'FALSE'})",
    "null": lambda one, negated: f"({one} IS {'NOT ' * negated}NULL)",
    "in": lambda one, negated, _, *options: f"({one} {'NOT ' * negated}IN ({', '.join(options)}))",
    "between": lambda one, negated, low, high: f"({one} {'NOT ' * negated}BETWEEN {low} AND {high})",
    "calculate": lambda one, operator, other: f"({one} {operator} {other})",
    "negative": lambda one: f"(- {one})",
    "join": lambda one, other: f"({one} || {other})",
    "cast": lambda one, target: f"CAST({one} AS {target})",
    "part": lambda one, part, _: f"{part}({one})",
    "day_of": lambda one, function: f"{function}({one})",
    **{name: _call(name) for name in ("abs", "isnan", "length", "startswith", "endswith", "contains")},
    **{name: _call(name) for name in ("coalesce", "nvl", "ifnull", "nullif", "if")},
}


def plain(value: Any) -> Any:
    """A column's Python value in the form that rows hold."""
    match value:
        case datetime():
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return (aware - _EPOCH) // timedelta(microseconds=1)
        case None | bool() | int() | float() | Decimal() | str() | bytes():
            return value
    return value.toordinal() - _EPOCH.toordinal()
