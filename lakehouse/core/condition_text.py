"""Conditions and intervals as people write them."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.core.interval import MAX_TIME, MIN_TIME, Interval
from lakehouse.core.predicate import And, Compare, In, IsNull, Or, Predicate, Unknown

_MOST_LISTED = 20
_LONGEST = 60


def span_text(interval: Interval) -> str:
    """An interval as people write it, without an end that is no limit.

    >>> span_text(Interval(MIN_TIME, "2013-01-05")), span_text(Interval("2013-01-05", MAX_TIME))
    ('before 2013-01-05', 'from 2013-01-05')
    """
    start, end = str(interval).split("/")
    if interval.start == MIN_TIME:
        return f"before {end}"
    return f"from {start}" if interval.end == MAX_TIME else str(interval)


def text_of(predicate: Predicate) -> str:
    """A condition as people write it; long lists and values are cut.

    >>> text_of(And((Compare("delay", ">", 9), Or((IsNull("tail"), In("carrier", ("UA", "AA")))))))
    "delay > 9 AND (tail IS NULL OR carrier IN ('UA', 'AA'))"
    """
    match predicate:
        case Compare(column, operator, value):
            return f"{column} {operator} {_value(value)}"
        case In(column, values):
            return f"{column} IN ({_listed([_value(value) for value in values], ', ')})"
        case IsNull(column, negated):
            return f"{column} IS {'NOT ' if negated else ''}NULL"
        case And(parts):
            return _listed([_in_parentheses(part) for part in parts], " AND ") or "TRUE"
        case Or(parts):
            return _listed([_in_parentheses(part) for part in parts], " OR ") or "FALSE"
        case Unknown():
            return "..."


def _in_parentheses(predicate: Predicate) -> str:
    text = text_of(predicate)
    return f"({text})" if isinstance(predicate, And | Or) and len(predicate.parts) > 1 else text


def _listed(parts: Sequence[str], between: str) -> str:
    more = [f"({len(parts) - _MOST_LISTED} more)"] if len(parts) > _MOST_LISTED else []
    return between.join([*parts[:_MOST_LISTED], *more])


def _value(value: object) -> str:
    match value:
        case bool() | int() | float():
            return str(value)
        case bytes():
            text = f"X'{value[:_LONGEST].hex()}'"
        case _:
            text = "'" + str(value)[:_LONGEST].replace("'", "''") + "'"
    return text if len(str(value)) <= _LONGEST else f"{text}..."
