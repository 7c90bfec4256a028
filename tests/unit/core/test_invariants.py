"""Each invariant fails where it is broken."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lakehouse.core import Grain, Segment, Slice
from lakehouse.core.bins import bins_of
from lakehouse.core.conflict import Cell
from lakehouse.core.interval import Interval
from lakehouse.core.invariants import (
    bin_knows_newest,
    head_is_newest,
    is_in_its_bins,
    is_logged,
    is_ordered_before,
    key_frame_holds,
    lived_as_stated,
    lives_alternate,
    locks_are_apart,
    row_ids_are_apart,
    slices_are_apart,
)
from lakehouse.core.version import ADD, DROP

DAY, NEXT_DAY = Interval.of("2013-01-05"), Interval.of("2013-01-06")


def test_the_head_is_the_newest_version_and_lies_between_the_horizon_and_the_counter() -> None:
    assert head_is_newest(horizon=3, newest=7, head=7, counter=9)
    assert head_is_newest(horizon=0, newest=0, head=0, counter=0)
    assert not head_is_newest(horizon=3, newest=6, head=7, counter=9)
    assert not head_is_newest(horizon=8, newest=7, head=7, counter=9)
    assert not head_is_newest(horizon=3, newest=7, head=7, counter=6)


def test_a_version_with_deltas_is_in_the_log_unless_it_is_forgotten() -> None:
    assert is_logged(5, {5}, horizon=5)
    assert not is_logged(5, {6}, horizon=5)
    assert is_logged(4, {6}, horizon=5)


@pytest.mark.parametrize(
    "events",
    [
        [(3, DROP)],
        [(3, ADD), (4, ADD)],
        [(3, ADD), (4, DROP), (5, DROP)],
        [(3, ADD), (4, DROP), (5, ADD), (6, ADD)],
    ],
)
def test_an_entry_is_not_dropped_where_it_is_not_live_nor_added_where_it_is(events: list[tuple[int, int]]) -> None:
    assert not lives_alternate(events)
    assert lives_alternate([])
    assert lives_alternate([(3, ADD), (4, DROP), (5, ADD)])


def test_an_entry_says_when_it_was_live() -> None:
    assert lived_as_stated([(3, ADD), (5, DROP), (7, ADD)], added=3, dropped=None)
    assert not lived_as_stated([(3, ADD), (5, DROP), (7, ADD)], added=7, dropped=None)
    assert not lived_as_stated([(3, ADD), (5, DROP)], added=3, dropped=None)
    assert not lived_as_stated([(3, ADD), (5, DROP)], added=3, dropped=4)


def test_what_a_version_adds_is_not_newer_than_the_version() -> None:
    assert is_ordered_before(4, added=5)
    assert not is_ordered_before(6, added=5)


def test_an_entry_is_kept_in_the_bins_of_its_interval() -> None:
    both = Interval(DAY.start, NEXT_DAY.end)
    first, last = bins_of(Grain.DAY, both)
    assert is_in_its_bins(Grain.DAY, both, {first, last})
    assert not is_in_its_bins(Grain.DAY, both, {first})
    assert not is_in_its_bins(Grain.DAY, DAY, {first, last})


def test_no_row_id_is_given_out_twice() -> None:
    assert row_ids_are_apart([], [])
    assert row_ids_are_apart([20, 0, 10], [1, 10, 10])
    assert not row_ids_are_apart([20, 0, 10], [1, 10, 11])
    assert not row_ids_are_apart([5, 5], [1, 1])


def test_a_key_frame_holds_what_its_deltas_lead_to() -> None:
    assert key_frame_holds([], segments=[], tombstones=[], entries=0)
    assert key_frame_holds([1, 2], segments=[2], tombstones=[1], entries=2)
    assert not key_frame_holds([1, 2], segments=[2], tombstones=[1], entries=3)
    assert not key_frame_holds([1, 2], segments=[2], tombstones=[3], entries=2)
    assert not key_frame_holds([1, 2], segments=[1, 2, 2], tombstones=[], entries=2)


def test_a_bin_names_its_newest_version() -> None:
    assert bin_knows_newest(5, newest=5, forgotten=0)
    assert bin_knows_newest(6, newest=5, forgotten=6)
    assert not bin_knows_newest(6, newest=5, forgotten=5)
    assert not bin_knows_newest(4, newest=5, forgotten=9)


def test_two_operations_do_not_hold_the_same_rows() -> None:
    keys, others = {"client": (77,)}, {"client": (12,)}
    assert locks_are_apart([("a", Cell(DAY, keys)), ("b", Cell(DAY, others)), ("c", Cell(NEXT_DAY))])
    assert not locks_are_apart([("a", Cell(DAY, keys)), ("b", Cell(NEXT_DAY)), ("c", Cell(DAY))])


def test_slices_are_in_order_and_none_is_empty() -> None:
    segment = Segment(id=1, start=DAY.start, end=NEXT_DAY.end, ordinal=1)
    first = Slice(DAY.start, DAY.end, (segment,), ())
    last = Slice(NEXT_DAY.start, NEXT_DAY.end, (segment,), ())
    assert slices_are_apart([first, last])
    assert not slices_are_apart([last, first])
    assert not slices_are_apart([first, Slice(datetime(2013, 1, 5, 12, tzinfo=UTC), NEXT_DAY.end, (segment,), ())])
    assert not slices_are_apart([Slice(DAY.start, DAY.end, (), ())])
