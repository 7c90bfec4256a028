"""Timelines: slices, gaps, windows and what they look like."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakehouse.core import Interval, Segment, Timeline, Tombstone, timeline
from lakehouse.errors import InvalidInput


def segment(number: Any, start: str | None, end: str | None, ordinal: int) -> Segment:
    return Segment(id=number, start=start, end=end, ordinal=ordinal)  # type: ignore[arg-type]


def cover(number: Any, start: str | None, end: str | None, ordinal: int, **more: Any) -> Tombstone:
    return Tombstone(id=number, start=start, end=end, ordinal=ordinal, **more)  # type: ignore[arg-type]


def shown(found: Timeline) -> list[tuple[str, list[Any]]]:
    return [(str(one.interval), [each.id for each in one.segments]) for one in found.slices]


def test_an_empty_table_has_an_empty_timeline() -> None:
    found = timeline([], [cover(1, "2013-01-01", "2013-02-01", 5)])
    assert (found.slices, found.overshadowed, len(found), list(found)) == ((), (), 0, [])


def test_appends_lie_side_by_side_and_nothing_hides_them() -> None:
    found = timeline([segment(1, "2013-01-01", "2013-01-03", 1), segment(2, "2013-01-02", "2013-01-04", 2)], [])
    assert shown(found) == [
        ("2013-01-01/2013-01-02", [1]),
        ("2013-01-02/2013-01-03", [1, 2]),
        ("2013-01-03/2013-01-04", [2]),
    ]


def test_a_drop_leaves_a_gap() -> None:
    found = timeline([segment(1, "2013-01-01", "2013-01-04", 1)], [cover(2, "2013-01-02", "2013-01-03", 2)])
    assert shown(found) == [("2013-01-01/2013-01-02", [1]), ("2013-01-03/2013-01-04", [1])]


def test_two_covers_that_leave_the_same_segments_do_not_cut_a_slice() -> None:
    found = timeline(
        [segment(1, "2013-01-01", "2013-01-09", 1), segment(2, "2013-01-01", "2013-01-09", 9)],
        [cover(3, "2013-01-02", "2013-01-04", 2), cover(4, "2013-01-04", "2013-01-06", 3)],
    )
    assert shown(found) == [
        ("2013-01-01/2013-01-02", [1, 2]),
        ("2013-01-02/2013-01-06", [2]),
        ("2013-01-06/2013-01-09", [1, 2]),
    ]


def test_one_segment_that_ends_where_another_begins_makes_two_slices() -> None:
    found = timeline([segment(1, "2013-01-01", "2013-01-02", 1), segment(2, "2013-01-02", "2013-01-03", 1)], [])
    assert shown(found) == [("2013-01-01/2013-01-02", [1]), ("2013-01-02/2013-01-03", [2])]


def test_equal_ordinals_do_not_hide_each_other() -> None:
    found = timeline([segment(1, "2013-01-01", "2013-01-02", 3)], [cover(2, "2013-01-01", "2013-01-02", 3)])
    assert shown(found) == [("2013-01-01/2013-01-02", [1])]


def test_segments_of_a_slice_are_in_order_of_ordinal_then_id() -> None:
    numbers = [(5, 2), (4, 2), (3, 7), (9, 1)]
    found = timeline([segment(number, "2013-01-01", "2013-01-02", ordinal) for number, ordinal in numbers], [])
    assert shown(found) == [("2013-01-01/2013-01-02", [9, 4, 5, 3])]


def test_a_segment_hidden_by_several_covers_together_is_overshadowed() -> None:
    old = segment(1, "2013-01-01", "2013-01-04", 1)
    covers = [cover(2, "2012-12-31", "2013-01-02", 3), cover(3, "2013-01-02", "2013-01-09", 2)]
    assert timeline([old], covers).overshadowed == (old,)
    assert timeline([old], covers[:1]).overshadowed == ()


def test_key_scoped_and_row_tombstones_are_listed_where_they_are_younger_and_hide_nothing() -> None:
    keyed = cover(10, "2013-01-02", "2013-01-03", 5, keys={"client": 1})
    rows = Tombstone(id=11, kind="row", ordinal=2, row_ids={7})
    keys = Tombstone(id=12, kind="key", ordinal=2, primary_keys={("a",)})
    found = timeline(
        [segment(1, "2013-01-01", "2013-01-04", 1), segment(2, "2013-01-03", "2013-01-06", 3)], [keyed, keys, rows]
    )
    assert [(str(one.interval), [each.id for each in one.tombstones]) for one in found.slices] == [
        ("2013-01-01/2013-01-03", [11, 12, 10]),
        ("2013-01-03/2013-01-04", [11, 12]),
        ("2013-01-04/2013-01-06", []),
    ]


@pytest.mark.parametrize("within", ["2013-01-02", ("2013-01-02", "2013-01-03"), Interval.of("2013-01-02")])
def test_a_window_cuts_slices_and_leaves_out_segments_elsewhere(within: Any) -> None:
    hidden = segment(3, "2013-01-02", "2013-01-04", 0)
    elsewhere = segment(4, "2013-01-03", "2013-01-04", 0)
    found = timeline(
        [segment(1, "2013-01-01", "2013-01-09", 1), hidden, elsewhere],
        [cover(2, "2013-01-02", "2013-01-09", 1)],
        within=within,
    )
    assert shown(found) == [("2013-01-02/2013-01-03", [1])]
    assert found.overshadowed == (hidden,)


def test_a_segment_visible_outside_the_window_only_is_not_overshadowed() -> None:
    found = timeline(
        [segment(1, "2013-01-01", "2013-01-03", 1)], [cover(2, "2013-01-02", "2013-01-03", 2)], within="2013-01-02"
    )
    assert found == Timeline()


def test_nothing_is_seen_within_an_empty_pair_or_outside_the_data() -> None:
    segments = [segment(1, "2013-01-01", "2013-01-03", 1)]
    assert timeline(segments, [], within=("2013-01-02", "2013-01-02")) == Timeline()
    assert timeline(segments, [], within="2014") == Timeline()
    assert shown(timeline(segments, [], within=(None, "2013-01-02"))) == [("2013-01-01/2013-01-02", [1])]


@pytest.mark.parametrize("within", ["never", 7, ("2013-01-02", "2013-01-01")])
def test_a_window_that_is_no_interval_is_refused(within: Any) -> None:
    with pytest.raises(InvalidInput):
        timeline([], [], within=within)


def test_unbounded_segments_and_covers_reach_both_ends_of_time() -> None:
    found = timeline([segment(1, None, None, 1), segment(2, "2013-01-05", None, 3)], [cover(3, None, "2013-01-01", 2)])
    assert shown(found) == [
        ("2013-01-01/2013-01-05", [1]),
        ("2013-01-05/9999-12-31T23:59:59.999999", [1, 2]),
    ]
    assert timeline([segment(1, None, None, 1)], [cover(3, None, None, 2)]).overshadowed


def test_ids_may_be_text() -> None:
    found = timeline([segment("b", "2013-01-01", "2013-01-02", 1), segment("a", "2013-01-01", "2013-01-02", 1)], [])
    assert shown(found) == [("2013-01-01/2013-01-02", ["a", "b"])]


def test_a_timeline_becomes_an_arrow_table_and_a_readable_text() -> None:
    found = timeline(
        [segment(1, "2013-01-01", "2013-01-03", 1), segment(2, "2013-01-03", "2013-01-04", 0)],
        [cover(3, "2013-01-01", "2013-01-02", 2, keys={"client": 1}), cover(4, "2013-01-03", "2013-01-04", 1)],
    )
    table = found.to_arrow()
    assert table.schema.field("start").type == pa.timestamp("us", tz="UTC")
    assert table.select(["segments", "tombstones"]).to_pylist() == [{"segments": [1], "tombstones": [3]}]
    assert list(found.to_pandas()["segments"][0]) == [1]
    assert repr(found) == "<timeline of 1 slices, 1 segments overshadowed>"
    assert str(found) == (
        "Timeline(1 slices, 1 overshadowed)\n  2013-01-01/2013-01-03  segments [1]  tombstones [3]\n  overshadowed [2]"
    )
    assert repr(found.slices[0]) == "Slice('2013-01-01/2013-01-03', segments=[1], tombstones=[3])"


def test_a_long_timeline_prints_its_beginning() -> None:
    days = [segment(day, f"2013-01-{day:02d}", f"2013-01-{day + 1:02d}", 1) for day in range(1, 31)]
    assert str(timeline(days, [])).splitlines()[-1] == "  ... 10 more"


def test_an_empty_timeline_becomes_an_empty_arrow_table() -> None:
    assert Timeline().to_arrow().num_rows == 0
    assert Timeline().to_arrow().column_names == ["start", "end", "segments", "tombstones"]
