"""Replace and drop: what they hide, what they leave behind, and how they split at chunk boundaries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from lakehouse import Interval
from lakehouse.testing.rows import SCHEMA, arrow, many, row, values, visible


def day_of_hours(table, days=(5,), value=0):
    table.append(
        arrow(
            [(f"2013-01-{day:02d}T{hour:02d}:00", "ab"[hour % 2], value + hour) for day in days for hour in range(24)]
        )
    )


def test_a_replace_of_a_whole_chunk_drops_its_segments_and_leaves_no_tombstone(table):
    day_of_hours(table, days=(4, 5, 6))
    commit = table.replace(arrow([("2013-01-05T12:00", "a", 99)]), "2013-01-05")
    assert table.tombstones() == []
    assert commit.dropped == 1
    assert values(table, interval="2013-01-05") == [99]
    assert table.scan().count() == 49


def test_an_empty_replace_of_a_whole_chunk_leaves_nothing_at_all(table):
    day_of_hours(table)
    before = table.version
    table.replace(None, "2013-01-05")
    assert table.tombstones() == []
    assert table.segments() == []
    assert visible(table) == []
    assert table.scan(as_of=before).count() == 24


@pytest.mark.parametrize("data", [None, arrow([])], ids=["none", "no rows"])
def test_no_data_means_drop(table, data):
    day_of_hours(table)
    table.replace(data, ("2013-01-05T06:00", "2013-01-05T18:00"))
    assert values(table) == [*range(6), *range(18, 24)]


def test_a_replace_of_a_part_leaves_one_tombstone_in_each_chunk_that_it_cuts(table):
    day_of_hours(table, days=(4, 5, 6, 7))
    table.replace(arrow([("2013-01-05T12:00", "a", 99)]), ("2013-01-04T18:00", "2013-01-07T06:00"))
    tombstones = sorted((one.start, one.end) for one in table.tombstones())
    assert tombstones == [
        (datetime(2013, 1, 4, 18, tzinfo=UTC), datetime(2013, 1, 5, tzinfo=UTC)),
        (datetime(2013, 1, 7, tzinfo=UTC), datetime(2013, 1, 7, 6, tzinfo=UTC)),
    ]
    assert {one.kind for one in table.tombstones()} == {"interval"}
    assert values(table) == sorted([*range(18), *range(6, 24), 99])


def test_an_interval_is_closed_at_its_start_and_open_at_its_end(table):
    table.append(arrow([("2013-01-05T09:59:59.999999", "a", 1), ("2013-01-05T10:00", "a", 2)]))
    table.append(arrow([("2013-01-05T10:59:59.999999", "a", 3), ("2013-01-05T11:00", "a", 4)]))
    table.replace(None, ("2013-01-05T10:00", "2013-01-05T11:00"))
    assert values(table) == [1, 4]


def test_a_single_microsecond_is_replaced(table):
    times = [datetime(2013, 1, 5, 12, tzinfo=UTC) + timedelta(microseconds=shift) for shift in (-1, 0, 1)]
    table.append(arrow([(time, "a", index) for index, time in enumerate(times)]))
    table.replace(arrow([(times[1], "b", 10)]), (times[1], times[2]))
    assert values(table) == [0, 2, 10]


def test_a_replace_where_nothing_is_adds_its_rows(table):
    commit = table.replace(arrow([("2013-01-05", "a", 1)]), "2013-01")
    assert values(table) == [1]
    assert table.tombstones() == []
    assert commit.dropped == 0


def test_a_replace_of_a_replace_hides_only_what_is_older(table):
    day_of_hours(table)
    table.replace(arrow([("2013-01-05T07:00", "a", 70)]), ("2013-01-05T06:00", "2013-01-05T12:00"))
    table.replace(arrow([("2013-01-05T11:00", "a", 71)]), ("2013-01-05T10:00", "2013-01-05T14:00"))
    assert values(table) == sorted([*range(6), 70, 71, *range(14, 24)])
    table.append(arrow([("2013-01-05T10:30", "a", 72)]))
    assert 72 in values(table)


def test_a_replace_by_keys_leaves_the_others(table):
    day_of_hours(table)
    table.replace(arrow([("2013-01-05T12:00", "a", 99)]), "2013-01-05", keys={"client": "a"})
    assert values(table) == sorted([*range(1, 24, 2), 99])
    assert [dict(one.keys) for one in table.tombstones()] == [{"client": ("a",)}]


def test_several_keys_and_null_may_be_listed(table):
    table.append(arrow([("2013-01-05", client, index) for index, client in enumerate(["a", "b", None, "", "c"])]))
    table.replace(arrow([("2013-01-05", None, 9)]), "2013-01-05", keys={"client": [None, "b"]})
    assert values(table) == [0, 3, 4, 9]
    table.replace(None, "2013", keys={"client": None})
    assert values(table) == [0, 3, 4]
    table.replace(None, "2013", keys={"client": ""})
    assert values(table) == [0, 4]


def test_two_cluster_columns_match_together(lake):
    table = lake.create_table(
        "pairs", "time TIMESTAMP, a STRING, b INT, value BIGINT", time="time", cluster_by=("a", "b")
    )
    rows = [(datetime(2013, 1, 5, tzinfo=UTC), a, b, 10 * index + b) for index, a in enumerate("xy") for b in (1, 2)]
    table.append(_table(table.schema, rows))
    table.replace(None, "2013-01-05", keys={"a": "x", "b": 1})
    assert values(table) == [2, 11, 12]
    table.replace(None, "2013-01-05", keys={"b": [2]})
    assert values(table) == [11]


def _table(schema, rows):
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays(
        [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)], names=schema.names
    )


def test_a_tombstone_and_what_replaces_it_share_one_version(table):
    day_of_hours(table)
    commit = table.replace(arrow([("2013-01-05T06:30", "a", 99)]), ("2013-01-05T06:00", "2013-01-05T18:00"))
    assert table.log(1) == [commit]
    before, after = table.log(2)[1].version, commit.version
    assert {type(one).__name__ for one in table.diff(before, after).added} == {"Segment", "Tombstone"}
    assert (len(table.tombstones(as_of=before)), len(table.tombstones(as_of=after))) == (0, 1)


def test_hourly_rows_lie_in_the_chunks_of_their_days(lake):
    table = lake.create_table("weather", SCHEMA, time="time", grain="day")
    table.append(many(72, start="2013-01-05", step_us=3_600_000_000))
    assert [chunk.rows for chunk in table.chunks()] == [24, 24, 24]
    table.replace(arrow([("2013-01-06T05:00", "a", 500)]), "2013-01-06T05")
    assert table.scan(interval="2013-01-06").count() == 24
    assert 500 in values(table, interval="2013-01-06T05")


@pytest.mark.parametrize(
    ("grain", "inside", "outside"),
    [
        ("hour", "2012-02-29T23:59:59.999999", "2012-03-01T00:00"),
        ("day", "2012-02-29T23:59:59.999999", "2012-03-01T00:00"),
        ("week", "2013-01-06T23:59:59.999999", "2013-01-07T00:00"),
        ("month", "2012-02-29T23:59:59.999999", "2012-03-01T00:00"),
        ("year", "2012-12-31T23:59:59.999999", "2013-01-01T00:00"),
    ],
)
def test_chunks_of_every_grain_end_where_the_calendar_says(lake, grain, inside, outside):
    table = lake.create_table("t", SCHEMA, time="time", grain=grain)
    table.append(arrow([(inside, "a", 1), (outside, "a", 2)]))
    first, second = table.chunks()
    assert first.end == second.start == row(outside)[0]
    table.replace(None, Interval(first.start, first.end))
    assert values(table) == [2]
    assert table.tombstones() == []


def test_a_ragged_segment_is_cut_by_a_replace_of_a_chunk_inside_it(lake):
    table = lake.create_table("t", SCHEMA, time="time", properties={"ragged": "true"})
    table.append(many(72, start="2013-01-05", step_us=3_600_000_000))
    assert len(table.segments()) == 1
    assert [chunk.segments for chunk in table.chunks()] == [1, 1, 1]
    table.replace(arrow([("2013-01-06T12:00", "a", 500)]), "2013-01-06")
    assert values(table) == sorted([*range(24), 500, *range(48, 72)])
    table.replace(None, ("2013-01-05", "2013-01-08"))
    assert visible(table) == []
    assert table.segments() == []
    assert table.tombstones() == []


def test_a_period_names_what_is_replaced(table):
    table.append(
        arrow([("2012-12-31", "a", 1), ("2013-01-06", "a", 2), ("2013-01-07", "a", 3), ("2014-01-01", "a", 4)])
    )
    table.replace(None, "2013-W01")
    assert values(table) == [3, 4]
    table.replace(None, "2013")
    assert values(table) == [4]


def test_everything_may_be_replaced(table):
    table.append(arrow([("1901-01-01", "a", 1), ("2013-01-06", "a", 2), ("9000-01-07", "a", 3)]))
    table.replace(arrow([("2013-01-06", "a", 4)]), (None, None))
    assert values(table) == [4]


def test_a_commit_counts_the_rows_that_it_replaced(table):
    day_of_hours(table)
    commit = table.replace(arrow([("2013-01-05T12:00", "a", 99)]), "2013-01-05")
    assert (commit.operation, commit.rows_added, commit.rows_deleted) == ("replace", 1, 24)


def test_a_dropped_batch_may_be_appended_again(table):
    batch = arrow([("2013-01-05T12:00", "a", 1), ("2013-01-05T13:00", "b", 2)])
    table.append(batch)
    first = {segment.id for segment in table.segments()}
    table.replace(None, "2013-01-05")
    table.append(batch)
    assert values(table) == [1, 2]
    assert first.isdisjoint(segment.id for segment in table.segments())
    table.replace(None, ("2013-01-05T11:00", "2013-01-05T12:30"))
    table.append(batch)
    assert values(table) == [1, 2, 2]
