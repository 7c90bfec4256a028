from datetime import UTC, datetime

import pytest

from lakehouse.core.strategy import deleted_rows, outliers, tombstone_debt
from lakehouse.core.task import TaskKind
from lakehouse.core.tombstone import Tombstone
from tests.unit.core.strategy.tables import MIB, NEW, OLD, segment, state


def ids(candidates) -> list[list[int]]:
    return sorted(one.segments.tolist() for one in candidates)


def rows_gone(id: int, *, first: int, last: int, rows: int, ordinal: int = OLD) -> Tombstone:
    return Tombstone(id=id, kind="row", ordinal=ordinal, rows=rows, min={"_row_id": first}, max={"_row_id": last})


def test_rows_under_row_tombstones_are_estimated_by_their_share_of_the_row_ids() -> None:
    held = [segment(1, rows=1_000, ordinal=5), segment(2, rows=1_000, ordinal=5)]
    gone = rows_gone(9, first=10_000_000, last=10_000_999, rows=300)
    assert state(held, [gone]).hidden.rows.tolist() == pytest.approx([300, 0], abs=1)


def test_a_tombstone_hides_no_row_of_what_is_as_young() -> None:
    held = [segment(1, ordinal=OLD)]
    hidden = state(held, [rows_gone(9, first=0, last=10**9, rows=10**6)]).hidden
    assert hidden.rows.tolist() == [0]
    assert not hidden.placed.any()


def test_rows_of_a_rewritten_segment_are_spread_over_the_row_ids_that_it_bounds() -> None:
    low, high = {"_row_id": 0}, {"_row_id": 99_999}
    held = [segment(1, rows=50_000, ordinal=5, has_row_ids=True, min=low, max=high)]
    hidden = state(held, [rows_gone(9, first=0, last=99_999, rows=1_000)]).hidden
    assert hidden.rows.tolist() == pytest.approx([500], abs=1)


def test_an_interval_tombstone_hides_the_part_that_it_covers() -> None:
    half = Tombstone(id=9, start="2013-01-05", end="2013-01-05T12", ordinal=50)
    whole = Tombstone(id=10, start="2013-01-06", end="2013-01-07", ordinal=50)
    held = [segment(1, ordinal=5), segment(2, day=6, ordinal=5), segment(3, ordinal=60)]
    # What is covered wholly is dropped without a rewrite.
    assert state(held, [half, whole]).hidden.rows.tolist() == pytest.approx([500, 0, 0])


def test_a_keyed_tombstone_hides_the_share_of_its_keys() -> None:
    gone = Tombstone(id=9, start="2013-01-05", end="2013-01-06", ordinal=50, keys={"client": (3, 4)})
    held = [
        segment(1, ordinal=5, min={"client": 0}, max={"client": 9}),
        segment(2, ordinal=5, min={"client": 7}, max={"client": 9}),
    ]
    assert state(held, [gone]).hidden.rows.tolist() == pytest.approx([200, 0])


def test_segments_of_which_much_is_deleted_are_rewritten_together() -> None:
    held = [segment(n, rows=1_000, ordinal=5) for n in range(3)]
    gone = [rows_gone(90 + n, first=n * 10_000_000, last=n * 10_000_000 + 999, rows=100) for n in range(2)]
    (found,) = deleted_rows(state(held, gone))
    assert found.segments.tolist() == [0, 1]
    assert found.gain.bytes == pytest.approx(4_000, rel=0.01)
    assert found.cause.startswith("about 10% of 2,000 rows")


def test_a_share_is_compared_with_the_limit_for_the_age_of_what_was_deleted() -> None:
    held = [segment(1, rows=1_000, ordinal=5)]
    gone = {
        ordinal: rows_gone(9, first=10_000_000, last=10_000_999, rows=100, ordinal=ordinal) for ordinal in (OLD, NEW)
    }
    assert ids(deleted_rows(state(held, [gone[OLD]]))) == [[1]]
    assert ids(deleted_rows(state(held, [gone[NEW]]))) == []


def test_key_tombstones_that_cost_more_than_the_limit_are_resolved() -> None:
    held = [segment(1, rows=1_000_000, ordinal=5, min={"client": 0}, max={"client": 99})]
    keys = [Tombstone(id=9, kind="key", ordinal=OLD, rows=7, min={"client": 5}, max={"client": 6})]
    (found,) = tombstone_debt(state(held, keys))
    assert (found.kind, found.tombstones.tolist(), found.segments.tolist()) == (TaskKind.RESOLVE, [9], [])
    assert found.gain.masked_rows == 1_000_000
    assert 0 < found.bytes < 20_000_000
    far = [Tombstone(id=9, kind="key", ordinal=OLD, rows=7, min={"client": 500}, max={"client": 600})]
    assert list(tombstone_debt(state(held, far))) == []


def test_few_rows_are_left_to_be_compared_with_keys() -> None:
    held = [segment(1, rows=1_000, ordinal=5)]
    assert list(tombstone_debt(state(held, [Tombstone(id=9, kind="key", ordinal=OLD, rows=7)]))) == []


def test_masked_segments_are_merged_where_scans_pay_more_than_that_costs() -> None:
    held = [segment(1, rows=1_000_000, ordinal=5)]
    gone = [rows_gone(9, first=10_000_000, last=10_000_999, rows=3)]
    assert ids(tombstone_debt(state(held, gone, scans=1.0))) == []
    assert ids(tombstone_debt(state(held, gone, scans=100.0))) == [[1]]


def test_a_segment_over_several_chunks_is_cut_where_segments_lie_in_one() -> None:
    across = segment(1, hours=(20, 30), rows=5_000_000, size=900 * MIB)
    assert ids(outliers(state([across, segment(2)]))) == [[1]]
    assert ids(outliers(state([across, segment(2)], properties={"ragged": "true"}))) == []


def test_a_few_rows_over_years_in_a_ragged_table_are_cut_once() -> None:
    days = [segment(day, day=day, rows=1_000_000) for day in range(1, 90)]
    properties = {"ragged": "true"}
    late = segment(500, day=1, hours=(0, 24 * 80), rows=1_000)
    assert ids(outliers(state([*days, late], properties=properties))) == [[500]]
    again = segment(500, day=1, hours=(0, 24 * 80), rows=1_000, has_row_ids=True)
    assert ids(outliers(state([*days, again], properties=properties))) == []


def test_a_row_tombstone_without_bounds_is_of_all_row_ids() -> None:
    held = [segment(1, rows=1_000, ordinal=5)]
    hidden = state(held, [Tombstone(id=9, kind="row", ordinal=OLD, rows=3)]).hidden
    assert hidden.placed.all()
    assert hidden.rows[0] < 1
    assert datetime(2013, 1, 1, tzinfo=UTC) < state(held).now
