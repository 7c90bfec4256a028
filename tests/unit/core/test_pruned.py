"""Why a read leaves a segment out, reason by reason."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.bucket import BucketSet
from lakehouse.core.condition_text import text_of
from lakehouse.core.predicate import And, Compare, In, IsNull, Or, Predicate, Unknown
from lakehouse.core.pruned import Pruned, Reason, why_pruned


def segment(low: Any = None, high: Any = None, *, nulls: int | None = None, hashed: bool = False) -> Segment:
    seen = BucketSet(64)
    seen.add([low, high])
    return Segment(
        id=1,
        start="2013-01-05",
        end="2013-01-06",
        ordinal=1,
        rows=10,
        min={} if low is None else {"x": low},
        max={} if high is None else {"x": high},
        nulls={} if nulls is None else {"x": nulls},
        buckets={"x": seen.to_bytes()} if hashed else {},
    )


def why(one: Segment, predicate: Predicate | None = None, **more: Any) -> list[tuple[str, str]]:
    found = why_pruned([one], more.pop("tombstones", []), predicate=predicate, **more)
    assert all([held.id for held in each.segments] == [one.id] for each in found)
    return [(each.reason, each.condition) for each in found]


def test_a_segment_that_is_read_has_no_reason() -> None:
    assert why(segment(3, 9), Compare("x", ">", 5)) == []
    assert why(segment(3, 9), Unknown()) == []


def test_time_comes_first() -> None:
    found = why(segment(3, 9), Compare("x", ">", 9), interval=Interval.of("2014"))
    assert found == [(Reason.TIME, "2014-01-01/2015-01-01")]


@pytest.mark.parametrize(
    ("one", "predicate", "expected"),
    [
        (segment(3, 9), Compare("x", "=", 10), (Reason.BOUNDS, "x = 10")),
        (segment("AA", "WN", hashed=True), Compare("x", "=", "UA"), (Reason.BUCKET, "x = 'UA'")),
        (segment("AA", "WN", hashed=True), Compare("x", "=", "ZZ"), (Reason.BOUNDS, "x = 'ZZ'")),
        (segment("AA", "WN", hashed=True), In("x", ("ZZ", "UA")), (Reason.BUCKET, "x IN ('ZZ', 'UA')")),
        (segment(3, 9), In("x", (1, 2)), (Reason.BOUNDS, "x IN (1, 2)")),
        (segment(nulls=10), Compare("x", ">", 10), (Reason.NULLS, "x > 10")),
        (segment(nulls=10), IsNull("x", negated=True), (Reason.NULLS, "x IS NOT NULL")),
        (segment(3, 9, nulls=0), IsNull("x"), (Reason.NULLS, "x IS NULL")),
        (segment(3, 9), Or((Compare("x", "<", 3), Compare("x", ">", 9))), (Reason.NO_ALTERNATIVE, "x < 3 OR x > 9")),
        (segment(3, 9), And((Compare("x", "<", 5), Compare("x", ">", 9))), (Reason.BOUNDS, "x > 9")),
        (segment(3, 9), Or(()), (Reason.NO_ALTERNATIVE, "FALSE")),
    ],
)
def test_a_condition_that_rules_a_segment_out_is_named(
    one: Segment, predicate: Predicate, expected: tuple[Reason, str]
) -> None:
    assert why(one, predicate) == [expected]


def test_what_tombstones_cover_within_the_interval_is_overshadowed() -> None:
    half = Tombstone(id=9, start="2013-01-05", end="2013-01-05T12:00", ordinal=2)
    assert why(segment(), tombstones=[half]) == []
    assert why(segment(), tombstones=[half], interval=Interval.of("2013-01-05T07")) == [(Reason.OVERSHADOWED, "")]
    keyed = Tombstone(id=9, start="2013-01-05", end="2013-01-06", ordinal=2, keys={"x": (3,)})
    assert why(segment(3, 3), tombstones=[keyed]) == []


def test_columns_of_a_condition_are_named_once() -> None:
    either = Or((Compare("x", "<", 3), And((Compare("x", ">", 9), IsNull("y")))))
    [found] = why_pruned([segment(3, 9)], [], predicate=either)
    assert isinstance(found, Pruned)
    assert found.columns == ("x", "y")


def test_long_conditions_are_cut() -> None:
    assert len(text_of(In("x", tuple(range(10**5))))) < 200
    assert len(text_of(Compare("x", "=", "long " * 10**5))) < 200
    assert text_of(Compare("x", "=", "O'Hare")) == "x = 'O''Hare'"
