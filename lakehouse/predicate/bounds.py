"""What a filter says of the time column, as an interval."""

from __future__ import annotations

from datetime import datetime

from lakehouse.core.interval import MAX_TIME, MIN_TIME, Interval, to_us
from lakehouse.core.predicate import And, Compare, In, Or, Predicate

_FIRST_US, _END_US = to_us(MIN_TIME), to_us(MAX_TIME)
_Span = tuple[int, int]
_EVERY: _Span = (_FIRST_US, _END_US)


def time_bounds(tree: Predicate, time: str) -> Interval | None:
    """The smallest interval that this finds around the times of passing rows.

    None where there is no bound, and where no time passes at all: pruning by ``tree`` itself then finds nothing.

    >>> bounds = And((Compare("ts", ">=", MIN_TIME.replace(2013)), Compare("ts", "<", MIN_TIME.replace(2014))))
    >>> print(time_bounds(bounds, "ts"))
    2013-01-01/2014-01-01
    """
    start_us, end_us = _span(tree, time)
    end_us = min(end_us, _END_US)
    if start_us >= end_us or (start_us, end_us) == _EVERY:
        return None
    return Interval(start_us, end_us)


def _span(tree: Predicate, time: str) -> _Span:
    match tree:
        case And(parts=parts):
            spans = [_span(part, time) for part in parts]
            return max((start for start, _ in spans), default=_FIRST_US), min(
                (end for _, end in spans), default=_END_US
            )
        case Or(parts=parts):
            held = [span for span in (_span(part, time) for part in parts) if span[0] < span[1]]
            return min((start for start, _ in held), default=0), max((end for _, end in held), default=0)
        case Compare(column=column, operator=operator, value=datetime() as value) if column == time:
            return _compared(operator, to_us(value))
        case In(column=column, values=values) if column == time:
            points = [to_us(value) for value in values]
            return min(points, default=0), max(points, default=-1) + 1
        case _:
            return _EVERY


def _compared(operator: str, us: int) -> _Span:
    match operator:
        case "=":
            return us, us + 1
        case "<":
            return _FIRST_US, us
        case "<=":
            return _FIRST_US, us + 1
        case ">":
            return us + 1, _END_US
        case ">=":
            return us, _END_US
        case _:
            return _EVERY
