"""Pruning by statistics, at the edges."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from lakehouse.core import Segment
from lakehouse.core.keys import KeyScope
from lakehouse.core.predicate import And, Compare, In, IsNull, Operator, Or, Predicate, Unknown
from lakehouse.core.prune import holding, matching
from lakehouse.core.segments import Segments
from lakehouse.testing import pruning


def segment(low: Any = None, high: Any = None, nulls: int | None = None, rows: int = 10) -> Segment:
    return Segment(
        id=1,
        start="2013-01-05",
        end="2013-01-06",
        ordinal=1,
        rows=rows,
        min={} if low is None else {"x": low},
        max={} if high is None else {"x": high},
        nulls={} if nulls is None else {"x": nulls},
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


@pytest.mark.parametrize(
    ("operator", "matching", "pruned"),
    [
        ("=", [3, 5, 9], [2, 10]),
        ("<>", [3, 5, 9, 2], []),
        ("<", [4, 10], [3, 2]),
        ("<=", [3, 10], [2]),
        (">", [8, 2], [9, 10]),
        (">=", [9, 2], [10]),
    ],
)
def test_a_comparison_prunes_beyond_the_bounds(operator: Operator, matching: list[int], pruned: list[int]) -> None:
    assert all(may_match(Compare("x", operator, value), segment(3, 9)) for value in matching)
    assert not any(may_match(Compare("x", operator, value), segment(3, 9)) for value in pruned)


def test_a_constant_column_is_pruned_by_not_equal_unless_it_may_hold_nan() -> None:
    assert not may_match(Compare("x", "<>", 3), segment(3, 3))
    assert may_match(Compare("x", "<>", 4), segment(3, 3))
    assert may_match(Compare("x", "<>", 3.0), segment(3.0, 3.0))


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
def test_without_bounds_anything_may_match(operator: Operator) -> None:
    assert may_match(Compare("x", operator, 3), segment())
    assert may_match(Compare("y", operator, 3), segment(3, 9))


def test_one_bound_alone_prunes_its_side() -> None:
    assert not may_match(Compare("x", "=", 2), segment(low=3))
    assert may_match(Compare("x", "=", 99), segment(low=3))
    assert not may_match(Compare("x", ">", 99), segment(high=9))


def test_nan_is_above_every_maximum_and_not_below_it() -> None:
    floats = segment(1.0, 2.0)
    assert all(may_match(Compare("x", operator, 3.0), floats) for operator in (">", ">=", "<>"))
    assert not may_match(Compare("x", "=", 3.0), floats)
    assert not may_match(Compare("x", "<", 1.0), floats)
    assert all(may_match(Compare("x", operator, math.nan), floats) for operator in ("=", "<>", "<", "<=", ">", ">="))
    assert may_match(Compare("x", "=", 7.0), segment(math.nan, math.nan)), "bounds that are NaN bound nothing"


def test_numbers_of_two_types_compare_with_limits_included() -> None:
    assert may_match(Compare("x", "=", 0.1), segment(Decimal("0.1"), Decimal("0.1")))
    assert may_match(Compare("x", "<", 2.0**53), segment(2**53, 2**53 + 1))
    assert not may_match(Compare("x", "=", 0.5), segment(1, 9))
    assert not may_match(Compare("x", ">", Decimal("9.5")), segment(1, 9))
    assert may_match(Compare("x", ">", 10**400), segment(1.0, 2.0)), "too large for a float: not compared"


def test_a_short_float_may_be_a_rounded_one() -> None:
    single = 0.10000000149011612
    assert may_match(Compare("x", "=", 0.1), segment(single, single))
    assert not may_match(Compare("x", "=", 0.1), segment(0.10000000149011613, 0.2))


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (1, "1"),
        ("1", 1),
        (True, 0),
        (b"a", "b"),
        (date(2013, 1, 5), datetime(2013, 1, 6, tzinfo=UTC)),
        (datetime(2013, 1, 5, tzinfo=UTC), datetime(2013, 1, 6, tzinfo=UTC).replace(tzinfo=None)),
        (object(), 1),
        (Decimal("NaN"), Decimal(1)),
    ],
)
def test_values_that_do_not_compare_may_match(value: Any, bound: Any) -> None:
    assert all(may_match(Compare("x", one, value), segment(bound, bound)) for one in ("=", "<>", "<", "<=", ">", ">="))


def test_text_compares_by_code_point() -> None:
    names = segment("Zürich", "\uffff")
    assert may_match(Compare("x", "=", "aachen"), names)
    assert may_match(Compare("x", "=", "Ä"), names)
    assert not may_match(Compare("x", "=", "Aachen"), names)
    assert not may_match(Compare("x", "=", "\U0001f600"), names), "UTF-16 would put it before U+FFFF"


def test_a_column_of_nulls_passes_no_comparison() -> None:
    nulls = segment(nulls=10)
    assert not may_match(Compare("x", "<>", 1), nulls)
    assert not may_match(In("x", (1, 2)), nulls)
    assert not may_match(IsNull("x", negated=True), nulls)
    assert may_match(IsNull("x"), nulls)


def test_a_null_is_looked_for_where_one_is_counted_or_none_were_counted() -> None:
    assert not may_match(IsNull("x"), segment(3, 9, nulls=0))
    assert may_match(IsNull("x"), segment(3, 9, nulls=1))
    assert may_match(IsNull("x"), segment(3, 9))
    assert may_match(IsNull("x", negated=True), segment(3, 9, nulls=1))


def test_rows_that_were_not_counted_are_not_taken_for_nulls() -> None:
    assert may_match(Compare("x", "=", 3), segment(3, 9, nulls=0, rows=0))
    assert may_match(IsNull("x", negated=True), segment(nulls=0, rows=0))


def test_a_list_matches_if_one_of_it_may() -> None:
    assert may_match(In("x", (1, 5)), segment(3, 9))
    assert not may_match(In("x", (1, 10)), segment(3, 9))
    assert not may_match(In("x", ()), segment(3, 9))
    assert not may_match(In("x", (None,)), segment(3, 9))


def test_and_needs_every_part_and_or_needs_one() -> None:
    inside, outside = Compare("x", "=", 5), Compare("x", "=", 1)
    assert not may_match(And((inside, outside)), segment(3, 9))
    assert may_match(Or((inside, outside)), segment(3, 9))
    assert may_match(And((inside, Unknown())), segment(3, 9))
    assert not may_match(Or((outside, And((inside, outside)))), segment(3, 9))
    assert may_match(And(()), segment(3, 9))
    assert not may_match(Or(()), segment(3, 9))


def test_a_key_scope_is_held_if_every_column_may_hold_one_of_its_values() -> None:
    listed = segment(3, 9, nulls=0)
    assert may_hold({"x": (1, 4)}, listed)
    assert not may_hold({"x": (1, None)}, listed)
    assert may_hold({"x": (1, None)}, segment(3, 9))
    assert not may_hold({"x": (4,), "z": (4,)}, Segment(1, "2013-01-05", "2013-01-06", 1, max={"z": 3}))
    assert may_hold(None, listed)
