"""Read plans: what is opened, under which masks, in how many groups."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.plan import MAX_GROUPS, ReadPlan, plan_read
from lakehouse.core.predicate import Compare

FIRST = Interval.of("2013-01-01").start
DAY = timedelta(days=1)


def day(number: int, ordinal: int, id: Any = None, days: float = 1, **more: Any) -> Segment:
    start = FIRST + number * DAY
    return Segment(id=number if id is None else id, start=start, end=start + days * DAY, ordinal=ordinal, **more)


def part(number: int, ordinal: int, id: Any = None, **more: Any) -> Tombstone:
    """The first half of a day."""
    start = FIRST + number * DAY
    return Tombstone(id=1000 + number if id is None else id, start=start, end=start + DAY / 2, ordinal=ordinal, **more)


def shown(plan: ReadPlan) -> list[tuple[list[Any], list[Any]]]:
    return [([one.id for one in group.segments], [one.id for one in group.tombstones]) for group in plan.groups]


def test_nothing_to_read_is_no_group() -> None:
    plan = plan_read([], [part(1, 2)], version=7, interval=Interval.of("2013"))
    assert (plan.version, plan.interval, plan.groups, plan.segments) == (7, Interval.of("2013"), (), ())


def test_segments_without_masks_are_one_group_in_the_order_given() -> None:
    assert shown(plan_read([day(2, 5), day(1, 9), day(3, 1)], [], version=1)) == [([2, 1, 3], [])]


def test_only_older_segments_that_overlap_a_tombstone_are_masked() -> None:
    found = plan_read([day(1, 1), day(2, 1), day(2, 3, id=9), day(2, 2, id=8)], [part(2, 2)], version=1)
    assert shown(found) == [([1, 9, 8], []), ([2], [1002])]


def test_segments_of_equal_masks_share_a_group_and_masks_are_in_order_of_ordinal() -> None:
    tombstones = [part(1, 9, id=21), part(1, 5, id=22)]
    found = plan_read([day(1, 1), day(1, 2, id=7), day(1, 6, id=8)], tombstones, version=1)
    assert shown(found) == [([1, 7], [22, 21]), ([8], [21])]


def test_a_covered_segment_is_not_opened_nor_one_covered_within_the_interval() -> None:
    cover = Tombstone(id=50, start=FIRST + DAY, end=FIRST + 2 * DAY, ordinal=2)
    assert shown(plan_read([day(1, 1), day(2, 1)], [cover], version=1)) == [([2], [])]
    assert shown(plan_read([day(1, 1)], [part(1, 2)], version=1, interval=Interval.of("2013-01-02T07"))) == []


def test_a_tombstone_outside_the_interval_masks_nothing() -> None:
    afternoon = Interval("2013-01-02T12", "2013-01-03")
    assert shown(plan_read([day(1, 1), day(7, 1)], [part(1, 2)], version=1, interval=afternoon)) == [([1], [])]


def test_a_predicate_leaves_out_segments_by_their_statistics() -> None:
    listed = [day(1, 1, min={"x": 1}, max={"x": 5}), day(2, 1, min={"x": 6}, max={"x": 9})]
    assert shown(plan_read(listed, [], version=1, predicate=Compare("x", ">", 5))) == [([2], [])]


def test_a_keyed_tombstone_masks_only_segments_that_may_hold_its_keys() -> None:
    listed = [day(1, 1, min={"x": "AA"}, max={"x": "DL"}), day(1, 1, id=9, min={"x": "AA"}, max={"x": "WN"})]
    assert shown(plan_read(listed, [part(1, 2, keys={"x": "UA"})], version=1)) == [([1], []), ([9], [1001])]


def test_tombstones_of_keys_and_rows_reach_whatever_is_older_where_nothing_bounds_them() -> None:
    tombstones = [
        Tombstone(id=71, kind="key", ordinal=2, primary_keys={(1,)}),
        Tombstone(id=72, kind="row", ordinal=4, row_ids={1}),
    ]
    found = plan_read([day(1, 1), day(2, 3), day(3, 4)], tombstones, version=1)
    assert shown(found) == [([3], []), ([1, 2], [71, 72])]


def test_a_tombstone_of_rows_reaches_only_where_its_rows_may_be() -> None:
    listed = [
        day(1, 1, rows=10, first_row_id=0),
        day(2, 1, rows=10, first_row_id=10),
        day(3, 1, rows=9, first_row_id=20),
    ]
    early = Tombstone(id=71, kind="row", end=FIRST + 2 * DAY, ordinal=2)
    last = Tombstone(id=72, kind="row", ordinal=3, min={"_row_id": 20}, max={"_row_id": 28})
    assert shown(plan_read(listed[:2], [early], version=1)) == [([2], []), ([1], [71])]
    assert shown(plan_read(listed, [last], version=1)) == [([1, 2], []), ([3], [72])]


def test_a_tombstone_of_keys_reaches_only_segments_that_may_hold_them() -> None:
    listed = [
        day(1, 1, min={"k": 1}, max={"k": 5}),
        day(2, 1, min={"k": 6}, max={"k": 9}),
        day(3, 9, min={"k": 6}, max={"k": 9}),
    ]
    gone = Tombstone(id=71, kind="key", ordinal=2, min={"k": 7}, max={"k": 7})
    assert shown(plan_read(listed, [gone], version=1)) == [([1, 3], []), ([2], [71])]


def test_thousands_of_row_tombstones_make_one_group_more() -> None:
    listed = [day(number, number, rows=10, first_row_id=10 * number) for number in range(30)]
    gone = [
        Tombstone(id=100 + n, kind="row", ordinal=100 + n, min={"_row_id": n % 100}, max={"_row_id": n % 100})
        for n in range(3000)
    ]
    found = shown(plan_read(listed, gone, version=1))
    assert [ids for ids, _ in found] == [list(range(10, 30)), list(range(10))]


def test_a_year_of_days_each_with_its_own_mask_is_few_groups() -> None:
    segments = [day(number, 10 * number) for number in range(365)]
    found = plan_read(segments, [part(number, 10 * number + 5) for number in range(365)], version=1)
    assert 1 < len(found.groups) <= MAX_GROUPS
    assert sorted(one.id for one in found.segments) == list(range(365))
    assert max(len(group.tombstones) for group in found.groups) <= 365 // MAX_GROUPS + 1
    for group in found.groups:
        assert {one.id - 1000 for one in group.tombstones} == {one.id for one in group.segments}


def test_segments_that_need_different_masks_are_not_joined_however_many_they_are() -> None:
    segments = [day(0, 2 * number, id=number) for number in range(40)]
    tombstones = [part(0, 2 * number + 1, id=1000 + number) for number in range(40)]
    found = plan_read(segments, tombstones, version=1)
    assert [one.tombstones for one in found.groups] == [tuple(tombstones[number:]) for number in range(40)]


def test_a_plan_at_the_limit_is_left_as_it_is() -> None:
    segments = [day(number, 1) for number in range(MAX_GROUPS)]
    found = plan_read(segments, [part(number, 2) for number in range(MAX_GROUPS)], version=1)
    assert [len(group.tombstones) for group in found.groups] == [1] * MAX_GROUPS


def test_a_limit_of_one_still_keeps_unmasked_segments_apart() -> None:
    segments = [day(number, 1) for number in range(5)]
    found = plan_read(segments, [part(number, 2) for number in range(4)], version=1, max_groups=1)
    assert shown(found) == [([4], []), ([0, 1, 2, 3], [1000, 1001, 1002, 1003])]
