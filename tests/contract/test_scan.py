"""Scans: columns, where, interval, as_of, the plan that is made first, and every form of result."""

from __future__ import annotations

import shutil

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakehouse.core.pruned import Reason
from lakehouse.errors import InvalidInput, SegmentUnreadable
from lakehouse.testing.rows import SCHEMA, arrow, many, plain, row, values, visible


@pytest.fixture
def days(table):
    """Ten days of 24 hourly rows, the fourth replaced from 6 to 9 and the sixth for client a."""
    table.append(many(240, start="2013-01-01", step_us=3_600_000_000))
    table.replace(arrow([("2013-01-04T07:30", "c", 1000)]), ("2013-01-04T06:00", "2013-01-04T09:00"))
    table.replace(None, "2013-01-06", keys={"client": "a"})
    return table


def test_columns_come_in_the_order_asked_for(days):
    assert days.scan(columns=["value", "time"]).to_arrow().column_names == ["value", "time"]
    assert days.scan().to_arrow().column_names == ["time", "client", "value"]
    assert days.scan(columns=["client"], where="value = 1000").to_arrow().to_pylist() == [{"client": "c"}]


def test_rows_have_the_types_of_the_table(days):
    found = days.scan().to_arrow().schema
    assert [str(found.field(name).type) for name in SCHEMA.names] == [str(field.type) for field in SCHEMA]


@pytest.mark.parametrize("columns", [["nowhere"], ["value", "nowhere"], ["_row_id"], "nowhere", [1], []])
def test_columns_that_are_not_there_are_refused(days, columns):
    with pytest.raises(InvalidInput):
        days.scan(columns=columns).to_arrow()


def test_an_interval_limits_rows_not_chunks(days):
    assert values(days, interval=("2013-01-02T05:30", "2013-01-02T08:00")) == [30, 31]
    assert days.scan(interval="2013-01-02").count() == 24
    assert days.scan(interval="2014").count() == 0


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("value < 3", [0, 1, 2]),
        ("value >= 238 AND client = 'a'", [238]),
        ("client = 'c'", [1000]),
        ("value IN (1, 5, 1000, 9999)", [1, 5, 1000]),
        ("value BETWEEN 100 AND 102", [100, 101, 102]),
        ("time >= TIMESTAMP '2013-01-10T22:00:00'", [238, 239]),
        ("time < '2013-01-01 02:00:00'", [0, 1]),
        ("client IS NULL", []),
        ("NOT (value > 1)", [0, 1]),
        ("value % 100 = 7 AND client LIKE 'b%'", [7, 107, 207]),
        ("value = 5 OR value = 1000", [5, 1000]),
        ("abs(value - 5) <= 1", [4, 5, 6]),
        ("coalesce(client, 'x') = 'c'", [1000]),
        ("value + 1 = 4", [3]),
        ("client = 'it\\'s; DROP TABLE flights'", []),
        ("CASE WHEN value > 500 THEN true ELSE false END", [1000]),
        ("1 = 0", []),
    ],
)
def test_a_predicate_filters(days, where, expected):
    assert values(days, where=where) == expected
    assert days.scan(where=where).count() == len(expected)


@pytest.mark.parametrize(
    "where",
    [
        "value = 5",
        "value > 1000",
        "value < 0",
        "client = 'c'",
        "client = 'a' AND value > 200",
        "time = '2013-01-04 07:30:00'",
        "value IN (3, 200)",
        "client IS NOT NULL AND value <> 7",
        "NOT (client = 'a' OR value > 20)",
    ],
)
def test_a_pruned_result_is_the_unpruned_one(days, where):
    pruned = plain(days.scan(where=where).to_arrow())
    everything = days.scan().to_arrow()
    expected = plain(duckdb.sql(f"SELECT * FROM everything WHERE {where}").to_arrow_table())
    assert everything.num_rows
    assert pruned == expected


def test_null_rows_are_filtered_as_sql_says(table):
    table.append(arrow([("2013-01-05", client, index) for index, client in enumerate([None, "a", "b"])]))
    assert values(table, where="client <> 'a'") == [2]
    assert values(table, where="client = 'a' OR client IS NULL") == [0, 1]
    assert values(table, where="client NOT IN ('a')") == [2]
    assert values(table, where="client IS NULL") == [0]


def test_a_plan_prunes_by_time_and_by_column(days):
    everything = days.scan().plan()
    one_day = days.scan(interval="2013-01-02").plan()
    assert len(one_day.segments) == 1 < len(everything.segments)
    assert len(days.scan(where="value = 30").plan().segments) == 1
    assert len(days.scan(where="time >= '2013-01-10'").plan().segments) == 1
    assert one_day.bytes < everything.bytes
    assert one_day.rows_estimate == 24
    assert everything.version == days.version


def test_a_plan_is_made_without_opening_a_data_file(days, warehouse):
    expected = days.scan(where="value > 100", interval=("2013-01-02", "2013-01-08")).plan()
    warehouse.rename(warehouse.with_name("moved"))
    found = days.scan(where="value > 100", interval=("2013-01-02", "2013-01-08")).plan()
    assert found.segments == expected.segments
    assert found.tombstones == expected.tombstones
    assert (found.version, found.files, found.bytes, found.rows_estimate) == (
        expected.version,
        expected.files,
        expected.bytes,
        expected.rows_estimate,
    )
    with pytest.raises(SegmentUnreadable):
        days.scan().to_arrow()
    warehouse.with_name("moved").rename(warehouse)
    assert days.scan().to_arrow().num_rows == days.scan().count()


def test_looking_needs_no_data_file_either(days, warehouse):
    shutil.rmtree(warehouse)
    assert days.timeline().slices
    assert days.segments()
    assert days.chunks()
    assert days.log()


def test_every_form_of_a_result_holds_the_same_rows(days):
    scan = days.scan(where="value > 200", interval=("2013-01-05", "2013-01-10"))
    expected = plain(scan.to_arrow())
    assert len(expected) == scan.count() > 0
    pandas = scan.to_pandas()
    assert isinstance(pandas, pd.DataFrame)
    assert sorted(pandas["value"]) == [value for _, _, value in sorted(expected, key=lambda one: one[2])]
    polars = scan.to_polars()
    polars = polars.collect() if isinstance(polars, pl.LazyFrame) else polars
    assert plain(polars.to_arrow().cast(SCHEMA)) == expected
    assert min(scan.to_duckdb().fetchall(), key=lambda one: one[0])[2] == expected[0][2]


def test_a_duckdb_relation_may_live_on_a_connection_of_the_callers(days):
    with duckdb.connect() as connection:
        relation = days.scan(columns=["client", "value"]).to_duckdb(connection)
        assert relation.aggregate("count(*) AS n").fetchall() == [(days.scan().count(),)]


@pytest.mark.parametrize("form", ["arrow", "batches", "pandas", "polars", "stream"])
def test_data_of_every_form_is_written(table, form):
    data = arrow([("2013-01-05", "a", 1), ("2013-01-05T12:00:00.000001", None, 2)])
    forms = {
        "arrow": lambda: data,
        "batches": lambda: pa.RecordBatchReader.from_batches(data.schema, data.to_batches()),
        "pandas": data.to_pandas,
        "polars": lambda: pl.from_arrow(data),
        "stream": lambda: duckdb.from_arrow(data),
    }
    table.append(forms[form]())
    assert visible(table) == plain(data)
    table.replace(forms[form](), "2013-01-05")
    assert visible(table) == plain(data)


def test_columns_may_come_in_any_order(table):
    table.append(arrow([("2013-01-05", "a", 1)]).select(["value", "time", "client"]))
    assert visible(table) == [row("2013-01-05", "a", 1)]


def test_naive_times_and_other_units_are_read_as_utc(table):
    for value, unit in enumerate(["s", "ms", "us", "ns"]):
        times = pa.array([1_357_387_200 * 10 ** (3 * value)], pa.timestamp(unit))
        table.append(pa.table({"time": times, "client": ["a"], "value": pa.array([value], pa.int64())}))
    zoned = pa.array([1_357_387_200], pa.timestamp("s", tz="America/New_York"))
    table.append(pa.table({"time": zoned, "client": ["a"], "value": [4]}))
    assert visible(table) == [row("2013-01-05T12:00", "a", value) for value in range(5)]


def test_an_operation_may_write_any_number_of_times(table):
    with table.begin_append() as operation:
        for value in range(5):
            operation.write(arrow([("2013-01-05", "a", value)]))
    assert values(table) == [0, 1, 2, 3, 4]
    assert len(table.log()) == 1


def test_a_chunk_split_keeps_rows_and_bounds_in_their_chunks(table):
    table.append(many(1000, start="2012-12-25", step_us=1_234_567_891))
    for segment in table.segments():
        assert segment.start.date() == segment.max["time"].date()
    assert table.scan().count() == 1000


def test_segments_fill_up_to_the_target_row_count(lake):
    table = lake.create_table("small", SCHEMA, time="time", properties={"target_rows": "100"})
    table.append(many(1000, start="2013-01-05", step_us=1000))
    assert sum(segment.rows for segment in table.segments()) == 1000
    assert max(segment.rows for segment in table.segments()) <= 100
    assert len(table.segments()) == 10


def test_a_compaction_keeps_the_rows_and_leaves_fewer_segments(table):
    for value in range(20):
        table.append(arrow([("2013-01-05", "a", value), ("2013-01-06", None, 100 + value)]))
    table.replace(None, ("2013-01-05T00:00", "2013-01-05T00:00:00.000001"), keys={"client": "b"})
    before, version = visible(table), table.version
    commit = table.compact()
    assert commit.operation == "compact"
    assert (commit.rows_added, commit.rows_deleted) == (0, 0)
    assert visible(table) == before == visible(table, as_of=version)
    assert len(table.segments()) == 2
    assert table.compact() is None
    assert table.version == commit.version


def test_a_compaction_of_an_interval_leaves_the_rest(table):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value), ("2013-02-05", "a", value)]))
    table.compact("2013-01")
    assert len(table.segments(interval="2013-01")) == 1
    assert len(table.segments(interval="2013-02")) == 4


def test_what_is_left_out_has_a_reason_also_where_an_index_says_so(lake, table):
    table.set_properties({"index": "client"})
    table.append(arrow([("2013-01-05", "ac"[n % 2], n) for n in range(10)]))
    table.append(arrow([("2013-01-06", "b", 1)]))
    lake.maintain()
    scan = table.scan(where="client = 'b'")
    assert [(one.reason, one.condition, len(one.segments)) for one in scan.pruned()] == [
        (Reason.INDEX, "client = 'b'", 1)
    ]
    assert len(scan.plan().segments) == 1
