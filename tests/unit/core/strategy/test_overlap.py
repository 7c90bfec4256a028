from dataclasses import replace
from importlib import import_module

import pytest

from lakehouse.core.strategy import overlap
from tests.unit.core.strategy.tables import MIB, NEW, segment, state

FULL = 5_000_000


def ids(candidates) -> list[list[int]]:
    return sorted(one.segments.tolist() for one in candidates)


def test_full_segments_over_one_time_are_sorted_into_ones_that_are_not() -> None:
    found = list(overlap(state([segment(number, rows=FULL) for number in range(4)])))
    assert ids(found) == [[0, 1, 2, 3]]
    assert "4.0 of 4 segments lie over one point of time" in found[0].cause


def test_full_segments_one_after_the_other_are_left_alone() -> None:
    assert ids(overlap(state([segment(hour, rows=FULL, hours=(hour, hour + 1)) for hour in range(24)]))) == []


def test_segments_over_one_time_with_different_keys_are_left_alone() -> None:
    apart = [segment(n, rows=FULL, min={"client": n * 10}, max={"client": n * 10 + 9}) for n in range(8)]
    assert ids(overlap(state(apart, cluster_by={"client": 64}))) == []
    alike = [segment(n, rows=FULL, min={"client": 0}, max={"client": 99}) for n in range(8)]
    assert ids(overlap(state(alike, cluster_by={"client": 64}))) == [list(range(8))]


def test_what_one_rewrite_made_is_not_rewritten_again_however_it_lies() -> None:
    made = [segment(number, rows=FULL, has_row_ids=True, ordinal=7) for number in range(9)]
    assert ids(overlap(state(made))) == []


def test_a_little_on_top_of_much_that_is_sorted_is_left_alone() -> None:
    made = [segment(n, rows=FULL, has_row_ids=True, ordinal=7) for n in range(20)]
    assert ids(overlap(state([*made, *(segment(n + 50, rows=FULL) for n in range(4))]))) == []


def test_a_young_chunk_may_have_more() -> None:
    young = [segment(number, rows=FULL, ordinal=NEW) for number in range(15)]
    assert ids(overlap(state(young))) == []


def test_what_one_task_cannot_read_is_cut_so_that_each_part_gains() -> None:
    runs = [
        segment(hour * 10 + run, rows=FULL, size=200 * MIB, hours=(hour, hour + 6), has_row_ids=True, ordinal=run)
        for run in range(5)
        for hour in (0, 6, 12, 18)
    ]
    found = ids(overlap(state(runs)))
    assert found
    # Of one part of the day each, and of several runs.
    assert all(len({one // 10 for one in part}) <= 2 and len(part) >= 3 for part in found)


def test_segments_that_no_sort_can_cut_are_left_alone() -> None:
    day = [segment(n, rows=FULL) for n in range(8)]
    moment = [replace(one, end=one.start.replace(microsecond=1)) for one in day]
    assert ids(overlap(state(moment))) == []


def test_where_very_many_lie_over_each_other_each_plan_looks_at_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("lakehouse.core.strategy.overlap"), "_MOST_LOOKED_AT", 8)
    held = state([segment(day * 10 + n, day=day, rows=FULL) for day in range(1, 6) for n in range(4)])
    found = [ids(overlap(replace(held, version=version))) for version in range(10)]
    assert all(len(one) <= 3 for one in found)
    assert {part[0] // 10 for one in found for part in one} == {1, 2, 3, 4, 5}
