"""Partitions are time chunks, one to one, for every grain."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.definitions.partitions.context import partition_loading_context
from hypothesis import given
from hypothesis import strategies as st

import lakehouse
from lakehouse.core.chunk import DIVIDING, Grain
from lakehouse.core.interval import Interval
from lakehouse.dagster import (
    chunk_asset,
    chunk_partitions,
    key_range_interval,
    replace_chunks,
    report_commit,
    run_interval,
)
from lakehouse.dagster.automation import data_versions
from lakehouse.dagster.cells import Cell, cells_of
from lakehouse.dagster.partitions import partitions_grain
from lakehouse.errors import InvalidInput
from lakehouse.schema import define_table

SPANS = [
    (Grain.HOUR, "2011-12-25", "2013-01-10"),
    (Grain.HOUR, "2000-02-27T13:45", "2000-03-02T07:01"),
    (Grain.DAY, "1970-01-01", "2025-03-02"),
    (Grain.WEEK, "1998-12-27", "2026-01-06"),
    (Grain.WEEK, "2009-12-30T05", "2010-01-05"),
    (Grain.MONTH, "1970-01-01", "2024-02-29"),
    (Grain.YEAR, "1970-06-15", "2025-01-01"),
]


@pytest.mark.parametrize(("grain", "start", "end"), SPANS)
def test_partitions_are_the_chunks_of_the_grain_one_to_one(grain: Grain, start: str, end: str) -> None:
    partitions = chunk_partitions(grain, start, end)
    keys = partitions.get_partition_keys()
    windows = [partitions.time_window_for_partition_key(key) for key in keys]
    chunks = list(grain.chunks(Interval(start, end)))
    assert [Interval(window.start, window.end) for window in windows] == chunks
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("grain", [grain for grain in DIVIDING if grain is not Grain.WEEK])
def test_a_partition_key_is_the_period_that_the_library_reads(grain: Grain) -> None:
    partitions = chunk_partitions(grain, "2012-02-28", "2013-03-02" if grain is not Grain.YEAR else "2024-06-01")
    for key in partitions.get_partition_keys():
        window = partitions.time_window_for_partition_key(key)
        assert Interval.of(key) == Interval(window.start, window.end)
        assert key == grain.label(window.start)


def test_a_week_key_is_its_monday() -> None:
    keys = chunk_partitions("week", "2020-12-31", "2021-01-05").get_partition_keys()
    assert keys == ["2020-12-28", "2021-01-04"]


@pytest.mark.parametrize("grain", DIVIDING)
def test_without_an_end_the_last_partition_is_the_newest_chunk_that_is_over(grain: Grain) -> None:
    now = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
    with partition_loading_context(effective_dt=now):
        for end in (None, "2030-01-01"):
            assert _last(chunk_partitions(grain, "2020-01-01", end)).end == grain.floor(now)
            assert _last(chunk_partitions(grain, "2020-01-01", end, end_offset=1)) == grain.chunk(now)


def _last(partitions: dg.TimeWindowPartitionsDefinition) -> Interval:
    window = partitions.get_last_partition_window()
    assert window is not None
    return Interval(window.start, window.end)


@pytest.mark.parametrize(("grain", "start", "end"), SPANS)
def test_a_range_of_partitions_is_one_interval(grain: Grain, start: str, end: str) -> None:
    partitions = chunk_partitions(grain, start, end)
    keys = partitions.get_partition_keys()
    assert key_range_interval(partitions, dg.PartitionKeyRange(keys[0], keys[-1])) == grain.align(Interval(start, end))
    for key, chunk in zip(keys[:40], grain.chunks(Interval(start, end)), strict=False):
        assert key_range_interval(partitions, dg.PartitionKeyRange(key, key)) == chunk


def test_a_reversed_range_is_refused_because_dagster_would_run_nothing_and_call_it_a_success() -> None:
    days = chunk_partitions("day", "2013-01-01", "2014-01-01")
    with pytest.raises(InvalidInput, match="reversed"):
        key_range_interval(days, dg.PartitionKeyRange("2013-01-03", "2013-01-01"))


@pytest.mark.parametrize("key", ["2014-01-01", "2012-12-31", "January"])
def test_a_range_that_leaves_the_partitions_is_refused(key: str) -> None:
    days = chunk_partitions("day", "2013-01-01", "2014-01-01")
    with pytest.raises(InvalidInput, match="no such partition"):
        key_range_interval(days, dg.PartitionKeyRange("2013-01-03", key))


def test_partitions_that_are_no_windows_of_time_or_have_gaps_are_refused() -> None:
    with pytest.raises(InvalidInput, match="windows of time"):
        key_range_interval(dg.StaticPartitionsDefinition(["a", "b"]), dg.PartitionKeyRange("a", "b"))
    gaps = dg.TimeWindowPartitionsDefinition(
        "2013-01-01", "%Y-%m-%d", cron_schedule="0 0 * * *", exclusions=["0 0 * * 0"]
    )
    with pytest.raises(InvalidInput, match="leave out"):
        key_range_interval(gaps, dg.PartitionKeyRange("2013-01-03", "2013-01-04"))


def test_partitions_of_a_dagster_definition_in_another_zone_become_utc_intervals() -> None:
    days = dg.DailyPartitionsDefinition("2013-01-01", timezone="America/New_York")
    span = key_range_interval(days, dg.PartitionKeyRange("2013-03-10", "2013-03-10"))
    assert span == Interval("2013-03-10T05:00", "2013-03-11T04:00")
    assert span.end - span.start == timedelta(hours=23)


@pytest.mark.parametrize(
    ("grain", "start", "end"), [("day", "2013-01-02", "2013-01-02"), ("day", "soon", None), ("decade", "2013", None)]
)
def test_bad_input_names_the_value_and_the_remedy(grain: str, start: str, end: str | None) -> None:
    with pytest.raises(InvalidInput):
        chunk_partitions(grain, start, end)


def test_a_table_gives_its_grain_and_where_it_begins(tmp_path: Path) -> None:
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        table = lake.create_table("events", "at TIMESTAMP", time="at", grain="month")
        with pytest.raises(InvalidInput, match="the table is empty"):
            chunk_partitions(table)
        table.append(pa.table({"at": [datetime(2012, 11, 7, tzinfo=UTC)]}))
        assert chunk_partitions(table, end="2013-01").get_partition_keys() == ["2012-11", "2012-12"]
        assert chunk_partitions(table, "2012-12", "2013-02") == chunk_partitions("month", "2012-12", "2013-02")


def test_a_grain_needs_a_start() -> None:
    with pytest.raises(InvalidInput, match="need a start"):
        chunk_partitions("day")


@pytest.mark.parametrize("grain", DIVIDING)
def test_partitions_of_time_and_key_are_the_cells_of_a_keyed_replace(grain: Grain) -> None:
    partitions = chunk_partitions(grain, "2012-12-25", "2013-01-10", keys={"client": [77, "O'Hare"]})
    times = chunk_partitions(grain, "2012-12-25", "2013-01-10")
    for time in times.get_partition_keys()[:3]:
        (cell,) = cells_of(partitions, [f"O'Hare|{time}"])
        assert cell == Cell(key_range_interval(times, dg.PartitionKeyRange(time, time)), {"client": ("O'Hare",)})
    (whole,) = cells_of(partitions, partitions.get_partition_keys())
    assert whole == Cell(grain.align(Interval("2012-12-25", "2013-01-10")), {"client": ("77", "O'Hare")})
    assert partitions_grain(partitions) is grain


def test_a_grain_is_read_from_partitions_that_are_chunks_only() -> None:
    assert partitions_grain(dg.DailyPartitionsDefinition("2013-01-01")) is Grain.DAY
    assert partitions_grain(dg.DailyPartitionsDefinition("2013-01-01", timezone="Europe/Berlin")) is None
    assert partitions_grain(dg.StaticPartitionsDefinition(["a"])) is None


@given(st.sets(st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", "c"])), min_size=1))
def test_cells_cover_exactly_the_partitions_that_they_are_made_of(chosen: set[tuple[int, str]]) -> None:
    first = datetime(2013, 1, 1, tzinfo=UTC)
    partitions = chunk_partitions("day", first, first + timedelta(days=10), keys={"client": ["a", "b", "c"]})
    cells = cells_of(partitions, [f"{client}|{first + timedelta(days=day):%Y-%m-%d}" for day, client in chosen])
    covered = [
        (day, client)
        for cell in cells
        for day in range(10)
        if cell.interval.contains(Grain.DAY.chunk(first + timedelta(days=day)))
        for client in (cell.keys or {})["client"]
    ]
    assert len(covered) == len(set(covered)), "no cell is there twice"
    assert set(covered) == chosen


def test_keys_without_time_are_cells_of_all_time_and_need_a_column() -> None:
    clients = dg.StaticPartitionsDefinition(["12", "77"])
    assert cells_of(clients, ["77"], {"": "client"}) == (Cell(Interval(None, None), {"client": ("77",)}),)
    with pytest.raises(InvalidInput, match="partition_expr"):
        cells_of(clients, ["77"])
    with pytest.raises(InvalidInput, match="two dimensions"):
        chunk_partitions("day", "2013-01-01", keys={"client": [1], "carrier": [2]})


def test_a_key_gets_the_type_of_its_column_or_is_refused() -> None:
    spec = define_table("events", "at TIMESTAMP, client BIGINT", time="at", cluster_by=["client"], folder="f")
    assert Cell(Interval(None, None), {"client": ("77",)}).typed(spec).keys == {"client": (77,)}
    with pytest.raises(InvalidInput, match="not a value of its column"):
        Cell(Interval(None, None), {"client": ("UA",)}).typed(spec)
    with pytest.raises(InvalidInput, match="does not have"):
        Cell(Interval(None, None), {"carrier": ("UA",)}).typed(spec)


@pytest.mark.parametrize("start", ["0001-01-01", "0999-12-31"])
def test_partitions_that_dagster_could_not_name_are_refused(start: str) -> None:
    with pytest.raises(InvalidInput, match="start later"):
        chunk_partitions("day", start, "2000-01-01")
    assert chunk_partitions("day", "1000-01-01", "1000-01-03").get_partition_keys() == ["1000-01-01", "1000-01-02"]


@pytest.mark.parametrize("grain", ["hour", "day", "week", "month", "year"])
def test_rows_at_the_ends_of_time_are_in_no_partition_and_in_nobodys_way(tmp_path: Path, grain: str) -> None:
    partitions = chunk_partitions(grain, "2013-01-01", "2014-01-01")
    key = partitions.get_partition_key_for_timestamp(datetime(2013, 5, 5, tzinfo=UTC).timestamp())
    schema = pa.schema([("ts", pa.timestamp("us", "UTC"))])
    ends = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_998, tzinfo=UTC)]
    with lakehouse.connect(f"sqlite:///{tmp_path}/lake.db", tmp_path / "warehouse") as lake:
        table = lake.create_table("events", schema, time="ts", grain=grain)
        reported = []

        @chunk_asset(partitions_def=partitions)
        def events(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
            rows = pa.table({"ts": [run_interval(context).start]}, schema=schema)
            return replace_chunks(context, table, rows)

        @dg.op
        def late(context: dg.OpExecutionContext) -> None:
            commit = table.append(pa.table({"ts": [*ends, datetime(2013, 5, 5, tzinfo=UTC)]}, schema=schema))
            reported.append((commit.version, report_commit(context, events, table, commit)))

        @dg.job
        def arrives() -> None:
            late()

        with dg.DagsterInstance.ephemeral() as instance:
            touched = arrives.execute_in_process(instance=instance)
            assert [one.partition for one in touched.get_asset_observation_events()] == [key]
            assert touched.get_asset_materialization_events() == []
            assert dg.materialize([events], partition_key=key, instance=instance).success
            again = arrives.execute_in_process(instance=instance)
            assert [one.partition for one in again.get_asset_materialization_events()] == [key]
            assert again.get_asset_observation_events() == []
            (made,) = instance.fetch_materializations(dg.AssetRecordsFilter(events.key), limit=1).records
            assert made.asset_materialization is not None
            assert made.asset_materialization.metadata["rows"].value == 2
        assert [keys for _, keys in reported] == [[key], [key]]
        assert data_versions(table, partitions) == {key: str(reported[-1][0])}
