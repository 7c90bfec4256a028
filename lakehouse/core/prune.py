"""Which of many segments could hold a row that passes a filter: `may_match` for all of them together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.bucket import may_contain
from lakehouse.core.predicate import (
    INCLUDING,
    NUMBERS,
    And,
    Compare,
    In,
    IsNull,
    Operator,
    Or,
    Predicate,
    Unknown,
    kind_of,
    may_match,
    single,
)
from lakehouse.core.segments import BUCKETS, HIGH, LOW, NULLS, Segments

Mask = npt.NDArray[np.bool_]


def matching(predicate: Predicate, segments: Segments) -> Mask:
    """For each segment what `may_match` says of it. For segments in columns the cost is a few passes over them.

    >>> from lakehouse.core.segment import Segment
    >>> delayed = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1, min={"delay": 3}, max={"delay": 9})
    >>> matching(Compare("delay", "<", 3), Segments.of([delayed])).tolist()
    [False]
    """
    if segments.body is None:
        return _one_by_one(predicate, segments)
    match predicate:
        case And(parts):
            return _all(np.logical_and, [matching(part, segments) for part in parts], len(segments), empty=True)
        case Or(parts):
            return _all(np.logical_or, [matching(part, segments) for part in parts], len(segments), empty=False)
        case Unknown():
            return np.ones(len(segments), dtype=np.bool_)
        case IsNull(column, negated):
            return ~_only_nulls(segments, column) if negated else _nulls(segments, column) != 0
        case Compare(column, operator, value):
            return _compare(segments, column, operator, value)
        case In(column, values):
            found = [_compare(segments, column, "=", value) for value in values if value is not None]
            return _all(np.logical_or, found, len(segments), empty=False)


def _all(combine: Callable[[Mask, Mask], Mask], masks: list[Mask], length: int, *, empty: bool) -> Mask:
    found = np.full(length, empty, dtype=np.bool_)
    for mask in masks:
        found = combine(found, mask)
    return found


def _one_by_one(predicate: Predicate, segments: Segments) -> Mask:
    return np.array([may_match(predicate, one) for one in segments], dtype=np.bool_)


def _nulls(segments: Segments, column: str) -> npt.NDArray[np.int64]:
    """Null counts; -1 where they are not known."""
    held = segments.statistics(NULLS + column)
    if held is None:
        return np.full(len(segments), -1, dtype=np.int64)
    found: npt.NDArray[np.int64] = held.fill_null(-1).to_numpy()
    return found


def _only_nulls(segments: Segments, column: str) -> Mask:
    rows = segments.numbers("rows")
    found: Mask = (rows > 0) & (_nulls(segments, column) == rows)
    return found


def _compare(segments: Segments, column: str, operator: Operator, value: Any) -> Mask:
    low, high = segments.statistics(LOW + column), segments.statistics(HIGH + column)
    may_have_values = ~_only_nulls(segments, column)
    if low is None or high is None:
        return may_have_values
    kinds = {kind_of(value), column_kind(low.type)}
    if kinds <= NUMBERS and "decimal" not in kinds and (len(kinds) > 1 or kinds == {"float"}):
        return may_have_values & _compare_rounded(operator, value, low, high, kinds)
    if len(kinds) > 1 and None not in kinds and not kinds <= NUMBERS:
        return may_have_values
    try:
        if None in kinds or "decimal" in kinds:
            return _one_by_one(Compare(column, operator, value), segments)
        found = may_have_values & _lies_between(operator, pa.scalar(value, low.type), low, high)
        return _without_other_buckets(segments, column, value, low, found) if operator == "=" else found
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):  # a value that the column cannot hold
        return _one_by_one(Compare(column, operator, value), segments)


def _without_other_buckets(segments: Segments, column: str, value: Any, low: pa.Array, found: Mask) -> Mask:
    """What is left when those go whose values are all in other buckets. Cost: a step for each that was left before."""
    held = segments.statistics(BUCKETS + column)
    if held is None:
        return found
    places = np.flatnonzero(found & ~np.asarray(low.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_))
    coordinates = held.take(pa.array(places)).to_pylist()
    found[places] = [buckets is None or may_contain(buckets, value) for buckets in coordinates]
    return found


def column_kind(kind: pa.DataType) -> str | None:
    """What `lakehouse.core.predicate.kind_of` says of the column's values."""
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind):
        return "int"
    if pa.types.is_floating(kind):
        return "float"
    if pa.types.is_decimal(kind):
        return "decimal"
    if pa.types.is_string(kind):
        return "text"
    if pa.types.is_binary(kind):
        return "bytes"
    if pa.types.is_timestamp(kind):
        return "local time" if kind.tz is None else "instant"
    return "date" if pa.types.is_date(kind) else None


def _lies_between(operator: Operator, value: Any, low: pa.Array, high: pa.Array) -> Mask:
    """Whether a value between the bounds (null: unbounded) could pass, as in the test of one segment."""
    match operator:
        case "=":
            return _true(pc.less_equal(low, value)) & _true(pc.greater_equal(high, value))
        case "<>":
            is_value = pc.and_(pc.equal(low, value), pc.equal(high, value))
            return ~np.asarray(is_value.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
        case "<":
            return _true(pc.less(low, value))
        case "<=":
            return _true(pc.less_equal(low, value))
        case ">":
            return _true(pc.greater(high, value))
        case ">=":
            return _true(pc.greater_equal(high, value))


def _true(found: pa.Array) -> Mask:
    return np.asarray(found.fill_null(True).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _compare_rounded(operator: Operator, value: Any, low: pa.Array, high: pa.Array, kinds: set[str | None]) -> Mask:
    """The same where a float is involved: with both roundings of the value where the column may be of single size."""
    anything = np.ones(len(low), dtype=np.bool_)
    try:
        value = float(value)
    except OverflowError:
        return anything
    if math.isnan(value) or operator == "<>" or ("float" in kinds and operator in (">", ">=")):
        return anything
    if len(kinds) > 1:
        operator = INCLUDING.get(operator, operator)
    least, greatest = _doubles(low), _doubles(high)
    found = _lies_between(operator, pa.scalar(value), least, greatest)
    rounded = single(value)
    if rounded != value:
        is_single = _is_single(least) & _is_single(greatest)
        found |= is_single & _lies_between(operator, pa.scalar(rounded), least, greatest)
    return found


def _doubles(column: pa.Array) -> pa.Array:
    """Bounds as doubles; a NaN bounds nothing."""
    values = column.cast(pa.float64(), safe=False)
    return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)


def _is_single(column: pa.Array) -> Mask:
    """Whether a bound is the same in single precision; no bound is."""
    values = column.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        found: Mask = np.isnan(values) | (values == values.astype(np.float32))
    return found
