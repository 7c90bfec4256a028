"""What a replace drops and hides, and what is left to clean."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.core import Grain, Interval, Segment, Tombstone
from lakehouse.core.clean import overshadows, plan_clean
from lakehouse.core.replace import ReplacePlan, plan_replace


def segment(id: int, start: str, end: str, ordinal: int, **more: Any) -> Segment:
    return Segment(id=id, start=start, end=end, ordinal=ordinal, **more)


def replace(interval: Any, *live: Any, grain: Grain = Grain.DAY, ordinal: int = 9, keys: Any = None) -> ReplacePlan:
    return plan_replace(
        [one for one in live if isinstance(one, Segment)],
        [one for one in live if isinstance(one, Tombstone)],
        interval=Interval.of(interval),
        keys=keys,
        ordinal=ordinal,
        grain=grain,
    )


def parts(plan: ReplacePlan) -> list[str]:
    return [str(part) for part, _ in plan.tombstones]


def test_a_fully_covered_chunk_needs_no_tombstone() -> None:
    one, other = segment(1, "2013-01-05", "2013-01-06", 1), segment(2, "2013-01-05T03", "2013-01-05T04", 2)
    assert replace("2013-01-05", one, other) == ReplacePlan(drop_segments=(one, other))


def test_nothing_older_in_the_interval_means_nothing_to_do() -> None:
    younger, elsewhere = segment(1, "2013-01-05", "2013-01-06", 9), segment(2, "2013-01-06", "2013-01-07", 1)
    assert replace("2013-01-05", younger, elsewhere) == ReplacePlan()
    assert replace((None, None)) == ReplacePlan()


def test_a_ragged_segment_keeps_its_rows_outside_and_a_tombstone_hides_those_inside() -> None:
    plan = replace("2013-01-05", segment(1, "2013-01-04T20", "2013-01-05T03", 1))
    assert (plan.drop_segments, parts(plan)) == ((), ["2013-01-05/2013-01-06"])


def test_an_interval_inside_chunks_is_cut_at_their_boundaries() -> None:
    plan = replace(("2013-01-05T12", "2013-01-08T06"), segment(1, "2013-01-01", "2013-01-31", 1))
    assert parts(plan) == [
        "2013-01-05T12:00:00/2013-01-06",
        "2013-01-06/2013-01-07",
        "2013-01-07/2013-01-08",
        "2013-01-08/2013-01-08T06:00:00",
    ]


def test_only_chunks_that_hold_older_rows_get_a_tombstone_once_each() -> None:
    plan = replace(
        ("2013-01-05T12", "2013-12-01"),
        segment(1, "2013-01-05", "2013-01-05T18", 1),
        segment(2, "2013-01-05T06", "2013-01-06T18", 1),
        segment(3, "2013-11-30", "2013-12-02", 1),
        segment(4, "2013-06-01", "2013-06-02", 1),
    )
    assert parts(plan) == ["2013-01-05T12:00:00/2013-01-06", "2013-01-06/2013-01-07", "2013-11-30/2013-12-01"]
    assert [one.id for one in plan.drop_segments] == [4]


def test_an_unbounded_replace_looks_only_where_there_are_segments() -> None:
    inside, ragged = segment(1, "2013-01-05", "2013-01-06", 1), segment(2, "2012-12-31", "2013-01-02", 1)
    plan = replace(("2013-01-01", None), inside, ragged, grain=Grain.HOUR)
    assert plan.drop_segments == (inside,)
    assert len(plan.tombstones) == 24
    assert replace((None, None), inside, ragged, grain=Grain.HOUR) == ReplacePlan(drop_segments=(inside, ragged))


@pytest.mark.parametrize("keys", [None, {"client": ("a",)}])
def test_older_tombstones_inside_are_superseded(keys: Any) -> None:
    inside = Tombstone(id=1, start="2013-01-05T06", end="2013-01-05T09", ordinal=5, keys=keys)
    sticking_out = Tombstone(id=2, start="2013-01-04", end="2013-01-05T09", ordinal=5, keys=keys)
    younger = Tombstone(id=3, start="2013-01-05T06", end="2013-01-05T09", ordinal=10, keys=keys)
    of_rows = Tombstone(id=4, kind="row", start="2013-01-05T06", end="2013-01-05T09", ordinal=5, row_ids={1})
    ragged = segment(1, "2013-01-04", "2013-01-06", 1)
    plan = replace("2013-01-05", ragged, inside, sticking_out, younger, of_rows)
    assert plan.drop_tombstones == (inside,)
    assert parts(plan) == ["2013-01-05/2013-01-06"]


def test_with_keys_nothing_is_dropped_and_each_chunk_with_such_rows_gets_a_keyed_tombstone() -> None:
    inside = segment(1, "2013-01-05", "2013-01-06", 1)
    old = Tombstone(id=2, start="2013-01-05", end="2013-01-06", ordinal=5)
    plan = replace(("2013-01-05", "2013-01-08"), inside, old, keys={"client": ("a",)})
    assert plan == ReplacePlan(tombstones=((Interval.of("2013-01-05"), {"client": ("a",)}),))


def test_a_segment_that_holds_none_of_the_keys_needs_no_tombstone() -> None:
    known = {"min": {"client": "b"}, "max": {"client": "d"}, "nulls": {"client": 0}}
    without = segment(1, "2013-01-05", "2013-01-06", 1, rows=5, **known)
    assert replace("2013-01-05", without, keys={"client": ("a", None)}) == ReplacePlan()
    assert parts(replace("2013-01-05", without, keys={"client": ("a", "c")})) == ["2013-01-05/2013-01-06"]
    nulls_unknown = segment(1, "2013-01-05", "2013-01-06", 1, min={"client": "b"}, max={"client": "d"})
    assert replace("2013-01-05", nulls_unknown, keys={"client": (None,)}).tombstones


def test_clean_up_drops_what_is_overshadowed_and_then_what_overshadows_nothing() -> None:
    hidden = segment(1, "2013-01-05", "2013-01-06", 1)
    half = segment(2, "2013-01-06T12", "2013-01-08", 1)
    cover = Tombstone(id=3, start="2013-01-05", end="2013-01-06", ordinal=2)
    needed = Tombstone(id=4, start="2013-01-07", end="2013-01-08", ordinal=2)
    keyed = Tombstone(id=5, start="2013-01-05", end="2013-01-06T12", ordinal=3, keys={"client": 1})
    of_rows = Tombstone(id=6, kind="row", ordinal=2, row_ids={1})
    assert plan_clean([half, hidden], [needed, cover, of_rows, keyed]) == ((hidden,), (cover, keyed))


def test_clean_up_of_nothing_is_nothing() -> None:
    assert plan_clean([], []) == ((), ())
    assert plan_clean([], [Tombstone(id=1, ordinal=5)]) == ((), (Tombstone(id=1, ordinal=5),))
    assert overshadows([], []).tolist() == []


def test_a_tombstone_overshadows_only_what_is_older_where_it_lies() -> None:
    old, young = segment(1, "2013-01-05", "2013-01-06", 1), segment(2, "2013-01-06", "2013-01-07", 7)
    covers = [
        Tombstone(id=1, start="2013-01-05", end="2013-01-07", ordinal=2),
        Tombstone(id=2, start="2013-01-06", end="2013-01-07", ordinal=7),
        Tombstone(id=3, start="2013-01-01", end="2013-01-05", ordinal=7),
    ]
    assert overshadows(covers, [old, young]).tolist() == [True, False, False]
