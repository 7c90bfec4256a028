"""Statistics never prune a segment that holds a row which passes."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core import Segment
from lakehouse.core.keys import KeyScope, key_scope, scope_matches
from lakehouse.core.predicate import Compare, In, IsNull, Operator, Predicate
from lakehouse.core.prune import holding, matching
from lakehouse.core.segments import Segments
from lakehouse.testing import pruning

OPERATORS: st.SearchStrategy[Operator] = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
DOUBLES = st.floats() | st.sampled_from([0.1, 0.5, 1.0, -0.0, 3.0, math.nan, math.inf, 2.0**53])
SINGLES = st.floats(width=32) | st.sampled_from([float(np.float32(0.1)), 1.0, math.nan])
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-10, max_value=10)
WHOLE = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=3) | st.sampled_from(["a", "ab", "Z", "é", "\U0001f600", "\uffff"])
NEAR_1970 = st.timedeltas(timedelta(days=-30), timedelta(days=30)).map(
    lambda age: datetime(1970, 1, 1, tzinfo=UTC) + age
)
COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "whole": WHOLE,
    "double": DOUBLES,
    "decimal": DECIMALS,
    "text": TEXT,
    "bytes": st.binary(max_size=3),
    "date": st.dates(date(1969, 12, 1), date(1970, 2, 1)),
    "instant": NEAR_1970,
    "local time": NEAR_1970.map(lambda at: at.replace(tzinfo=None)),
}
NUMBERS = st.one_of(WHOLE, DOUBLES, DECIMALS)
COLUMNS_OF_NUMBERS = st.one_of(
    *(st.lists(st.none() | kind, min_size=1, max_size=4) for kind in (WHOLE, DOUBLES, DECIMALS))
)


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[Any], Any]:
    """Values of a column, nulls and NaN among them, and a value to compare with."""
    kind = draw(st.sampled_from(sorted(COLUMNS)))
    values = draw(st.lists(st.none() | COLUMNS[kind], min_size=1, max_size=5))
    return values, draw(COLUMNS[kind])


def segment(values: list[Any]) -> Segment:
    """A segment whose statistics are those of a file's footer: without NaN, absent where nothing is left."""
    bounded = [one for one in values if one is not None and one == one]
    return Segment(
        id=1,
        start="2013-01-05",  # type: ignore[arg-type]
        end="2013-01-06",  # type: ignore[arg-type]
        ordinal=1,
        rows=len(values),
        min={"column": min(bounded)} if bounded else {},
        max={"column": max(bounded)} if bounded else {},
        nulls={"column": sum(one is None for one in values)},
    )


def may_match(predicate: Predicate, segment: Segment) -> bool:
    """What the library says of one segment, which is what the oracle says."""
    found = bool(matching(predicate, Segments.of([segment]))[0])
    assert found == pruning.may_match(predicate, segment)
    return found


def may_hold(keys: KeyScope | None, segment: Segment) -> bool:
    found = bool(holding(keys, Segments.of([segment]))[0])
    assert found == pruning.may_hold(keys, segment)
    return found


def holds(one: Any, operator: Operator, value: Any) -> bool:
    """SQL's comparison: null passes none, NaN equals NaN and is greater than every number."""
    if one is None:
        return False
    left, right = ((int(x != x), 0 if x != x else x) for x in (one, value))
    return bool(
        {
            "=": left == right,
            "<>": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[operator]
    )


@given(columns(), OPERATORS)
def test_a_comparison_never_prunes_a_row_that_passes(column: tuple[list[Any], Any], operator: Operator) -> None:
    values, value = column
    if any(holds(one, operator, value) for one in values):
        assert may_match(Compare("column", operator, value), segment(values))


@given(COLUMNS_OF_NUMBERS, OPERATORS, NUMBERS)
def test_numbers_of_different_types_never_prune_a_row_that_passes_exactly_or_rounded(
    values: list[Any], operator: Operator, value: Any
) -> None:
    rounded = [None if one is None else float(one) for one in values]
    if any(holds(one, operator, value) for one in values) or any(holds(one, operator, float(value)) for one in rounded):
        assert may_match(Compare("column", operator, value), segment(values))


@given(st.lists(SINGLES, min_size=1, max_size=4), OPERATORS, DOUBLES)
def test_a_column_of_single_precision_may_be_compared_in_either_precision(
    values: list[float], operator: Operator, value: float
) -> None:
    with np.errstate(over="ignore"):
        single = float(np.float32(value))
    if any(holds(one, operator, value) or holds(one, operator, single) for one in values):
        assert may_match(Compare("column", operator, value), segment(values))


@given(columns(), st.data())
def test_a_list_and_a_null_test_never_prune_a_row_that_passes(
    column: tuple[list[Any], Any], data: st.DataObject
) -> None:
    values, value = column
    listed = (value, *data.draw(st.lists(st.sampled_from(values), max_size=2)))
    if any(holds(one, "=", other) for one in values for other in listed if other is not None):
        assert may_match(In("column", listed), segment(values))
    assert may_match(IsNull("column"), segment(values)) == (None in values)
    assert may_match(IsNull("column", negated=True), segment(values)) == any(one is not None for one in values)


@given(columns(), st.data())
def test_a_key_scope_never_prunes_a_row_that_it_matches(column: tuple[list[Any], Any], data: st.DataObject) -> None:
    values, value = column
    scope = key_scope({"column": [value, *data.draw(st.lists(st.sampled_from(values), max_size=2))]})
    if any(scope_matches(scope, {"column": one}) for one in values):
        assert may_hold(scope, segment(values))


@given(columns(), columns(), OPERATORS)
def test_values_of_any_two_types_are_compared_without_an_error(
    column: tuple[list[Any], Any], other: tuple[list[Any], Any], operator: Operator
) -> None:
    assert isinstance(may_match(Compare("column", operator, other[1]), segment(column[0])), bool)
