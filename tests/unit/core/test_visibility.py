"""The rule of visibility, kind by kind."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from lakehouse.core import Interval, Tombstone, is_visible
from lakehouse.core.visibility import matches

DAY = Interval.of("2013-01-05")
NOON = DAY.start + timedelta(hours=12)


def visible(tombstone: Tombstone, ordinal: int = 3, time: datetime = NOON, **row: Any) -> bool:
    return is_visible(time, row, row.get("row_id"), row.get("key"), ordinal, [tombstone])


def test_only_a_greater_ordinal_hides() -> None:
    tombstone = Tombstone(id=1, start=DAY.start, end=DAY.end, ordinal=4)
    assert [visible(tombstone, ordinal) for ordinal in (3, 4, 5)] == [False, True, True]


def test_an_interval_hides_its_first_instant_and_not_its_end() -> None:
    tombstone = Tombstone(id=1, start=DAY.start, end=DAY.end, ordinal=4)
    microsecond = timedelta(microseconds=1)
    times = (DAY.start - microsecond, DAY.start, DAY.end - microsecond, DAY.end)
    assert [visible(tombstone, time=time) for time in times] == [True, False, False, True]


def test_a_scope_hides_only_its_keys() -> None:
    tombstone = Tombstone(id=1, start=DAY.start, end=DAY.end, ordinal=4, keys={"client": ["a", None]})
    assert [visible(tombstone, client=client) for client in ("a", "b", None)] == [False, True, False]


def test_primary_keys_hide_rows_at_any_time() -> None:
    tombstone = Tombstone(id=1, kind="key", ordinal=4, primary_keys={("UA", 7)})
    assert [visible(tombstone, key=key) for key in (("UA", 7), ("UA", 8), None)] == [False, True, True]
    assert not visible(tombstone, time=Interval.of("1999").start, key=("UA", 7))
    assert visible(tombstone, ordinal=4, key=("UA", 7))


def test_row_ids_hide_rows_at_any_time() -> None:
    tombstone = Tombstone(id=1, kind="row", ordinal=4, row_ids={7, 2**62})
    assert [visible(tombstone, row_id=row_id) for row_id in (7, 2**62, 8, None)] == [False, False, True, True]


@pytest.mark.parametrize("kind", ["key", "row"])
def test_a_tombstone_that_lists_nothing_hides_nothing(kind: Any) -> None:
    assert visible(Tombstone(id=1, kind=kind, ordinal=4), key=("a",), row_id=1)


def test_the_interval_of_a_tombstone_of_rows_or_keys_is_no_part_of_what_it_matches() -> None:
    rows = Tombstone(id=1, kind="row", start=DAY.start, end=DAY.end, ordinal=4, row_ids={7})
    keys = Tombstone(id=1, kind="key", start=DAY.start, end=DAY.end, ordinal=4, primary_keys={(7,)})
    for time in (NOON, DAY.end):
        assert matches(rows, time, {}, row_id=7)
        assert matches(keys, time, {}, primary_key=(7,))
    assert not matches(rows, NOON, {}, row_id=8)


def test_tombstones_of_several_kinds_hide_the_union() -> None:
    tombstones = [
        Tombstone(id=1, kind="row", ordinal=4, row_ids={7}),
        Tombstone(id=2, kind="key", ordinal=5, primary_keys={("a",)}),
        Tombstone(id=3, start=DAY.start, end=NOON, ordinal=6),
    ]
    rows = [(DAY.start, 1, ("b",)), (NOON, 7, ("b",)), (NOON, 1, ("a",)), (NOON, 1, ("b",)), (DAY.start, 7, ("a",))]
    assert [is_visible(time, {}, row_id, key, 3, tombstones) for time, row_id, key in rows] == [
        False,
        False,
        False,
        True,
        False,
    ]
