"""Rows that do not fit: an error that names the thing and the remedy, and nothing committed."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakehouse.errors import InvalidInput
from lakehouse.testing.rows import SCHEMA, arrow, many, values, visible

ONE_CATALOG = pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
"""For what is wrong with rows of each kind: what becomes of a write that is refused is tested on both catalogs."""


@pytest.fixture
def unchanged(lake, table):
    """Afterwards nothing was committed, nothing is locked, and the table works."""
    table.append(arrow([("2013-01-05", "a", 1)]))
    head = lake.head
    yield table
    assert lake.head == head
    assert values(table) == [1]
    assert table.locks() == []
    table.replace(arrow([("2013-01-05", "a", 2)]), "2013-01-05", wait_seconds=0)
    assert values(table) == [2]


def columns(**changed):
    """An Arrow table of two good rows, with columns changed, left out (None) or added."""
    made = {
        "time": pa.array([datetime(2013, 1, 5, tzinfo=UTC)] * 2, pa.timestamp("us", tz="UTC")),
        "client": pa.array(["a", "b"]),
        "value": pa.array([1, 2], pa.int64()),
    }
    made.update(changed)
    return pa.table({name: column for name, column in made.items() if column is not None})


BAD = {
    "a null time": (columns(time=pa.array([0, None], pa.timestamp("us"))), "time"),
    "only null times": (columns(time=pa.nulls(2, pa.timestamp("us"))), "time"),
    "times of no type": (columns(time=pa.nulls(2)), "time"),
    "no time column": (columns(time=None), "time"),
    "no value column": (columns(value=None), "value"),
    "a column too many": (columns(extra=pa.array([1, 2])), "extra"),
    "a column in another case": (columns(value=None, Value=pa.array([1, 2])), "value|Value"),
    "text for a number": (columns(value=pa.array(["1", "x"])), "value"),
    "a number that does not fit": (columns(value=pa.array([1, 2**64 - 1], pa.uint64())), "value"),
    "a fraction for a whole number": (columns(value=pa.array([1.5, 2.0])), "value"),
    "a number for text": (columns(client=pa.array([[1], [2]])), "client"),
    "text for a time": (columns(time=pa.array(["yesterday", "today"])), "time"),
    "a number for a time": (columns(time=pa.array([1.5, 2.5])), "time"),
    "a time after the year 9999": (columns(time=pa.array([253_402_300_800, 0], pa.timestamp("s"))), "time"),
    "a time before the year 1": (columns(time=pa.array([-62_135_596_801, 0], pa.timestamp("s"))), "time"),
    "no columns": (pa.table({}), "time"),
}


@ONE_CATALOG
@pytest.mark.parametrize(("data", "named"), BAD.values(), ids=BAD)
def test_an_append_of_rows_that_do_not_fit_is_refused(unchanged, data, named):
    with pytest.raises(InvalidInput, match=named):
        unchanged.append(data)


@ONE_CATALOG
@pytest.mark.parametrize(("data", "named"), BAD.values(), ids=BAD)
def test_a_replace_by_rows_that_do_not_fit_is_refused(unchanged, data, named):
    with pytest.raises(InvalidInput, match=named):
        unchanged.replace(data, (None, None))


def test_two_columns_of_one_name_are_refused(unchanged):
    good = columns()
    twice = pa.Table.from_arrays([*good.columns, good.column("value")], names=[*good.column_names, "value"])
    with pytest.raises(InvalidInput, match="value"):
        unchanged.append(twice)


def test_a_null_in_a_column_that_may_not_be_null_is_refused(lake):
    schema = SCHEMA.set(2, pa.field("value", pa.int64(), nullable=False))
    table = lake.create_table("strict", schema, time="time")
    head = lake.head
    with pytest.raises(InvalidInput, match="value"):
        table.append(columns(value=pa.array([1, None], pa.int64())))
    assert lake.head == head
    assert visible(table) == []


def test_a_bad_batch_of_a_stream_stops_it(unchanged):
    good, bad = columns(), columns(time=pa.array([0, None], pa.timestamp("us", tz="UTC")))
    batches = [*good.to_batches(), *bad.to_batches()]
    reader = pa.RecordBatchReader.from_batches(good.schema, batches)
    with pytest.raises(InvalidInput, match="time"):
        unchanged.append(reader)


def test_a_stream_that_fails_half_way_commits_nothing(unchanged):
    good = columns()

    def batches():
        yield from good.to_batches()
        raise ValueError("the source broke")

    with pytest.raises(Exception, match="the source broke"):
        unchanged.append(pa.RecordBatchReader.from_batches(good.schema, batches()))


@pytest.mark.parametrize("data", [42, "rows", None, ..., {}, [7], [{"time": 0}]], ids=repr)
def test_what_is_no_table_is_refused(unchanged, data):
    with pytest.raises(InvalidInput):
        unchanged.append(data)


OUTSIDE = {
    "before": ("2013-01-04T23:59:59.999999", "a"),
    "at the end": ("2013-01-06T00:00:00", "a"),
    "far away": ("1970-01-01", "a"),
}


@pytest.mark.parametrize(("time", "client"), OUTSIDE.values(), ids=OUTSIDE)
def test_rows_outside_the_interval_are_refused_and_named(unchanged, time, client):
    rows = arrow([("2013-01-05T12:00", "a", 5), (time, client, 6)])
    with pytest.raises(InvalidInput, match="interval") as caught:
        unchanged.replace(rows, "2013-01-05")
    assert "flights" in str(caught.value)
    assert caught.value.facts


def test_rows_outside_a_part_of_a_chunk_are_refused(unchanged):
    with pytest.raises(InvalidInput, match="interval"):
        unchanged.replace(arrow([("2013-01-05T05:59:59", "a", 5)]), ("2013-01-05T06:00", "2013-01-05T18:00"))


@pytest.mark.parametrize("client", ["b", None, "", "A", "a "])
def test_rows_outside_the_keys_are_refused_and_named(unchanged, client):
    rows = arrow([("2013-01-05", "a", 5), ("2013-01-05", client, 6)])
    with pytest.raises(InvalidInput, match=r"client|keys"):
        unchanged.replace(rows, "2013-01-05", keys={"client": ["a", "c"]})


def test_one_row_in_a_million_outside_the_keys_is_found(unchanged):
    rows = pa.concat_tables([many(500_000, step_us=1000), arrow([("2013-01-05", "m", 6)]), many(500_000, step_us=1000)])
    with pytest.raises(InvalidInput, match="m"):
        unchanged.replace(rows, "2013-01-05", keys={"client": ["a", "b", "z"]})


def test_one_null_among_keys_that_do_not_list_it_is_found(unchanged):
    rows = pa.concat_tables([many(1000, step_us=1000), arrow([("2013-01-05", None, 6)])])
    with pytest.raises(InvalidInput):
        unchanged.replace(rows, "2013-01-05", keys={"client": ["a", "b"]})


def test_a_second_batch_outside_undoes_the_first(unchanged):
    def attempt() -> None:
        with unchanged.begin_replace("2013-01-05") as operation:
            operation.write(arrow([("2013-01-05", "a", 5)]))
            operation.write(arrow([("2013-01-07", "a", 6)]))

    with pytest.raises(InvalidInput):
        attempt()


def test_an_operation_whose_write_failed_does_not_commit(unchanged):
    operation = unchanged.begin_replace("2013-01-05")
    with pytest.raises(InvalidInput):
        operation.write(arrow([("2013-01-07", "a", 6)]))
    with pytest.raises(InvalidInput):
        operation.commit()
    operation.abort()


def test_an_error_that_is_caught_inside_the_block_leaves_no_lock(unchanged):
    with unchanged.begin_replace("2013-01-05") as operation, pytest.raises(InvalidInput):
        operation.write(arrow([("2013-01-07", "a", 6)]))


def test_files_of_a_refused_write_are_not_left_behind(unchanged, warehouse):
    before = sorted(path for path in warehouse.rglob("*") if path.is_file())
    with pytest.raises(InvalidInput):
        unchanged.replace(arrow([("2013-01-07", "a", 6)]), "2013-01-05")
    assert sorted(path for path in warehouse.rglob("*") if path.is_file()) == before


def test_an_operation_that_has_ended_takes_no_more_rows(unchanged):
    operation = unchanged.begin_append()
    operation.abort()
    operation.abort()
    for attempt in (lambda: operation.write(arrow([("2013-01-05", "a", 5)])), operation.commit):
        with pytest.raises(InvalidInput, match=r"ended|abort"):
            attempt()


def renamed(data):
    """The same rows with a column whose name is not UTF-8."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.rename_columns(["time", "client", "val~~"]).schema) as stream:
        stream.write_table(data.rename_columns(["time", "client", "val~~"]))
    return pa.ipc.open_stream(sink.getvalue().to_pybytes().replace(b"val~~", b"val\xff\xfe"))


def test_a_column_whose_name_is_not_utf8_is_refused(unchanged):
    for data in (renamed(columns()), renamed(columns()).read_all()):
        with pytest.raises(InvalidInput, match="name is not UTF-8"):
            unchanged.append(data)


def test_a_surrogate_in_a_pandas_frame_is_refused_by_column_and_row(unchanged):
    frame = columns().to_pandas()
    frame["client"] = ["a", "\ud800"]
    with pytest.raises(InvalidInput, match=r"not UTF-8.*column=client row=1"):
        unchanged.append(frame)


def test_the_last_microsecond_is_refused_as_the_end_of_time_and_the_one_before_is_stored(unchanged):
    last = 253_402_300_799_999_999
    with pytest.raises(InvalidInput, match=r"the end of time.*column=time row=1"):
        unchanged.append(columns(time=pa.array([0, last], pa.timestamp("us"))))
    with pytest.raises(InvalidInput, match=r"the end of time.*column=time row=0"):
        unchanged.replace(columns(time=pa.array([last, 0], pa.timestamp("us"))), (None, None))
