"""Which segments a filter may leave out, decided for one segment at a time in plain Python.

The library decides the same for many segments in columns (`lakehouse.core.prune`) and is compared with this module,
which shares only the filter's values with it.
"""

from __future__ import annotations

import math
import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakehouse.core.bucket import may_contain
from lakehouse.core.keys import KeyScope
from lakehouse.core.predicate import And, Compare, In, IsNull, Operator, Or, Predicate, Unknown
from lakehouse.core.segment import Segment

_NUMBERS = {"int", "float", "decimal"}
"""Kinds that compare with each other."""
_INCLUDING: dict[Operator, Operator] = {"<": "<=", ">": ">="}


def may_match(predicate: Predicate, segment: Segment) -> bool:
    """Whether some row of the segment could pass, by its min, max and null counts alone.

    A column without statistics may hold anything. NaN is greater than every number and is not in min or max, so a
    float's max never excludes ``>``, ``>=`` or ``<>``. Values whose types do not compare may match too. A segment of
    0 rows is one whose rows were not counted.

    >>> segment = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1, min={"delay": 3}, max={"delay": 9})
    >>> [may_match(Compare("delay", "<", value), segment) for value in (3, 4)], may_match(Unknown(), segment)
    ([False, True], True)
    """
    match predicate:
        case Compare(column, operator, value):
            return _may_compare(segment, column, operator, value)
        case In(column, values):
            return any(_may_compare(segment, column, "=", value) for value in values if value is not None)
        case IsNull(column, negated):
            return not _only_nulls(segment, column) if negated else _may_be_null(segment, column)
        case And(parts):
            return all(may_match(part, segment) for part in parts)
        case Or(parts):
            return any(may_match(part, segment) for part in parts)
        case Unknown():
            return True


def may_hold(keys: KeyScope | None, segment: Segment) -> bool:
    """Whether some row of the segment could lie in a key scope, by its statistics alone."""
    return keys is None or all(
        any(
            _may_be_null(segment, column) if value is None else _may_compare(segment, column, "=", value)
            for value in values
        )
        for column, values in keys.items()
    )


def _may_be_null(segment: Segment, column: str) -> bool:
    return segment.nulls.get(column) != 0


def _only_nulls(segment: Segment, column: str) -> bool:
    return segment.rows > 0 and segment.nulls.get(column) == segment.rows


def _may_compare(segment: Segment, column: str, operator: Operator, value: Any) -> bool:
    if _only_nulls(segment, column):
        return False
    low, high = segment.min.get(column), segment.max.get(column)
    kinds = {_kind(one) for one in (value, low, high) if one is not None}
    if kinds <= _NUMBERS and (len(kinds) > 1 or kinds == {"float"}):
        return _may_compare_rounded(operator, value, low, high, kinds)
    if len(kinds) > 1 or None in kinds:
        return True
    buckets = segment.buckets.get(column) if operator == "=" and low is not None else None
    return _may_lie_between(operator, value, low, high) and (buckets is None or may_contain(buckets, value))


def _may_lie_between(operator: Operator, value: Any, low: Any, high: Any) -> bool:
    """Whether some x, not below ``low`` and not above ``high`` (None: unbounded), makes ``x operator value`` true."""
    match operator:
        case "=":
            return (low is None or low <= value) and (high is None or value <= high)
        case "<>":
            return not (low == value == high)
        case "<":
            return low is None or bool(low < value)
        case "<=":
            return low is None or bool(low <= value)
        case ">":
            return high is None or bool(value < high)
        case ">=":
            return high is None or bool(value <= high)


def _may_compare_rounded(operator: Operator, value: Any, low: Any, high: Any, kinds: set[str | None]) -> bool:
    """The same where a float is involved, or numbers of two types, of which an engine may round one.

    Rounding keeps order but makes neighbours equal: so numbers of two types compare as floats with the limits
    included, and against a column of single precision, which its min and max do not tell apart from one of double
    precision that holds short numbers, both roundings of ``value`` count.
    """
    try:
        value = float(value)
        low, high = (None if one is None or math.isnan(one) else float(one) for one in (low, high))
    except OverflowError:
        return True
    may_hold_nan = "float" in kinds
    if math.isnan(value) or operator == "<>" or (may_hold_nan and operator in (">", ">=")):
        return True
    if len(kinds) > 1:
        operator = _INCLUDING.get(operator, operator)
    values = [value]
    if all(one is None or one == _single(one) for one in (low, high)):
        values.append(_single(value))
    return any(_may_lie_between(operator, one, low, high) for one in values)


def _kind(value: Any) -> str | None:
    """What a value compares with; None for what has no order that both engines share."""
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "bool"), (int, "int"), (float, "float"), (Decimal, "decimal"), (str, "text"), (bytes, "bytes"),
        (datetime, "time"), (date, "date"),
    )  # fmt: skip
    found = next((name for kind, name in kinds if isinstance(value, kind)), None)
    if found == "time":
        return "local time" if value.tzinfo is None else "instant"
    return None if found == "decimal" and not value.is_finite() else found


def _single(value: float) -> float:
    """The value in single precision."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
