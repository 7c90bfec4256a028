"""Assets through the IO manager: every form of rows, every mode, partitions as cells, and retries."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.dagster import LakehouseIOManager, chunk_asset, chunk_partitions, table_metadata
from lakehouse.errors import InvalidPartitions
from lakehouse.reading.scan import Scan

DAYS = chunk_partitions("day", "2013-01-01", "2013-03-01")
SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("client", pa.int64()), ("value", pa.float64())])
RUN_CONFIG = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}


def rows_of(*days: str, clients: tuple[int, ...] = (77,), value: float = 1.0) -> pa.Table:
    at = [datetime.fromisoformat(day).replace(hour=7, tzinfo=UTC) for day in days for _ in clients]
    return pa.table({"at": at, "client": list(clients) * len(days), "value": [value] * len(at)}, schema=SCHEMA)


@pytest.fixture
def lake(address: dict[str, str]) -> Iterator[lakehouse.Lake]:
    """The test's lake, without Spark."""
    with lakehouse.connect(**address) as one:
        yield one


@pytest.fixture
def run(address: dict[str, str], instance: dg.DagsterInstance) -> Callable[..., dg.ExecuteInProcessResult]:
    """Materialize assets through an IO manager, for a partition or the range of them from first to last."""

    def materialize(*assets: Any, first: str | None = None, last: str | None = None, **options: Any) -> Any:
        tags = options.pop("tags", {})
        manager = LakehouseIOManager(**address, **options.pop("manager", {}))
        if last is not None:
            tags |= {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        return dg.materialize(
            list(assets),
            instance=instance,
            partition_key=first if last is None else None,
            resources={"io_manager": manager},
            run_config=RUN_CONFIG,
            tags=tags,
            **options,
        )

    return materialize


FORMS: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda rows: rows,
    "reader": lambda rows: rows.to_reader(),
    "pandas": lambda rows: rows.to_pandas(),
    "polars": pl.from_arrow,
    "lazy": lambda rows: pl.from_arrow(rows).lazy(),
    "duckdb": duckdb.from_arrow,
}
TYPES: dict[str, Any] = {
    "arrow": pa.Table,
    "reader": pa.RecordBatchReader,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "duckdb": duckdb.DuckDBPyRelation,
    "scan": Scan,
}


@pytest.mark.parametrize("form", FORMS)
def test_an_output_in_any_form_makes_its_table_and_fills_the_chunk(
    form: str, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    rows = rows_of("2013-01-05", clients=(77, 12))

    @dg.asset(partitions_def=DAYS)
    def trips() -> Any:
        return FORMS[form](rows)

    run(trips, first="2013-01-05")
    table = lake.table("trips")
    assert (table.grain, table.time, table.schema.names) == ("day", "at", SCHEMA.names)
    assert table.scan().to_arrow().to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("form", TYPES)
def test_an_input_comes_in_the_form_of_its_annotation(form: str, run: Callable[..., Any], lake: lakehouse.Lake) -> None:
    lake.create_table("trips", SCHEMA, time="at").append(rows_of("2013-01-04", "2013-01-05", "2013-01-06"))
    seen: list[Any] = []

    def take(trips: Any) -> None:
        as_arrow = trips.to_arrow() if form == "scan" else trips
        if form == "lazy":
            as_arrow = trips.collect()
        seen.append((type(trips), days_of(pa.table(as_arrow) if form != "reader" else trips.read_all())))

    take.__annotations__["trips"] = TYPES[form]
    run(dg.asset(take, ins={"trips": dg.AssetIn()}, partitions_def=DAYS), dg.AssetSpec("trips", partitions_def=DAYS),
        first="2013-01-05", selection=["take"])  # fmt: skip
    ((kind, days),) = seen
    assert issubclass(kind, TYPES[form])
    assert days == ["2013-01-05"]


def days_of(rows: pa.Table) -> list[str]:
    return sorted({f"{at:%Y-%m-%d}" for at in rows["at"].to_pylist()})


def values(table: lakehouse.Table, **options: Any) -> list[tuple[str, int, float]]:
    """Visible rows as day, client and value, in order."""
    rows = table.scan(**options).to_arrow().to_pylist()
    return sorted((f"{row['at']:%Y-%m-%d}", row["client"], row["value"]) for row in rows)


def reported(result: dg.ExecuteInProcessResult, asset: str) -> list[dict[str, Any]]:
    """Metadata of an asset's materializations, in order of their partitions."""
    events = [one for one in result.get_asset_materialization_events() if one.asset_key == dg.AssetKey(asset)]
    found = sorted(events, key=lambda one: one.partition or "")
    return [{name: value.value for name, value in one.materialization.metadata.items()} for one in found]


@pytest.fixture
def trips() -> dg.AssetsDefinition:
    """A day's trips, of two clients."""

    @chunk_asset(partitions_def=DAYS, metadata=table_metadata(time="at"))
    def trips(context: dg.AssetExecutionContext) -> pa.Table:
        return rows_of(*context.partition_keys, clients=(12, 77))

    return trips


def test_a_range_of_partitions_is_one_replace_and_each_partition_shows_its_rows(
    trips: dg.AssetsDefinition, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    result = run(trips, first="2013-01-30", last="2013-02-02")
    table = lake.table("trips")
    (commit,) = table.log()
    assert (commit.operation, commit.rows_added) == ("replace", 8)
    assert commit.message == "materialize trips 2013-01-30...2013-02-02"
    events = reported(result, "trips")
    assert [(one["dagster/partition_row_count"], one["version"], one["rows_in"]) for one in events] == [
        (2, commit.version, 8)
    ] * 4
    tags = {one.materialization.tags["dagster/data_version"] for one in result.get_asset_materialization_events()}
    assert tags == {str(commit.version)}


def test_replacing_partitions_b_to_c_leaves_a_and_d(
    trips: dg.AssetsDefinition, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    run(trips, first="2013-01-01", last="2013-01-04")
    before = {one.id for day in ("2013-01-01", "2013-01-04") for one in lake.table("trips").segments(interval=day)}
    run(trips, first="2013-01-02", last="2013-01-03")
    table = lake.table("trips")
    assert len(values(table)) == 8
    assert before <= {segment.id for segment in table.segments()}


def test_reading_four_days_returns_four(
    trips: dg.AssetsDefinition, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    run(trips, first="2013-01-01", last="2013-01-08")
    seen: list[list[str]] = []

    @chunk_asset(partitions_def=DAYS)
    def report(trips: pa.Table) -> None:
        seen.append(days_of(trips))

    run(report, trips, first="2013-01-03", last="2013-01-06", selection=["report"])
    assert seen == [["2013-01-03", "2013-01-04", "2013-01-05", "2013-01-06"]]


def test_an_input_follows_its_partition_mapping(
    trips: dg.AssetsDefinition, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    run(trips, first="2013-01-01", last="2013-01-08")
    seen: dict[str, list[str]] = {}
    week = dg.TimeWindowPartitionMapping(start_offset=-2, end_offset=0)
    picked = dg.SpecificPartitionsPartitionMapping(["2013-01-02", "2013-01-07"])

    @dg.asset(partitions_def=DAYS, ins={"trips": dg.AssetIn(partition_mapping=week)})
    def last_three(trips: pa.Table) -> None:
        seen["last three"] = days_of(trips)

    @dg.asset(ins={"trips": dg.AssetIn(partition_mapping=picked)})
    def scattered(trips: pa.Table) -> None:
        seen["scattered"] = days_of(trips)

    @dg.asset
    def everything(trips: pa.Table) -> None:
        seen["everything"] = days_of(trips)

    run(last_three, trips, first="2013-01-05", selection=["last_three"])
    run(scattered, everything, trips, selection=["scattered", "everything"])
    assert seen["last three"] == ["2013-01-03", "2013-01-04", "2013-01-05"]
    assert seen["scattered"] == ["2013-01-02", "2013-01-07"]
    assert len(seen["everything"]) == 8


def test_an_input_is_read_in_the_columns_rows_and_version_that_it_asks_for(
    trips: dg.AssetsDefinition, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    run(trips, first="2013-01-01", last="2013-01-03")
    table = lake.table("trips")
    lake.tag("before")
    table.replace(None, "2013-01-02")
    seen: list[pa.Table] = []
    wanted = {"columns": ["client"], "where": "client = 77", "as_of": "before"}

    @chunk_asset(partitions_def=DAYS, ins={"trips": dg.AssetIn(metadata=wanted)})
    def report(trips: pa.Table) -> None:
        seen.append(trips)

    run(report, trips, first="2013-01-02", last="2013-01-03", selection=["report"])
    assert seen[0].to_pydict() == {"client": [77, 77]}


def test_all_inputs_of_a_step_are_read_at_one_version(run: Callable[..., Any], lake: lakehouse.Lake) -> None:
    for name in ("facts", "looks"):
        lake.create_table(name, SCHEMA, time="at").append(rows_of("2013-01-05"))
    head = lake.head
    versions: list[int] = []

    @dg.asset
    def report(facts: Scan, looks: Scan) -> None:
        versions.extend([facts.version, looks.version])

    class Later(LakehouseIOManager):
        """Somebody commits after each input was read."""

        def load_input(self, context: dg.InputContext) -> Any:
            found = super().load_input(context)
            for name in ("facts", "looks"):
                lake.table(name).append(rows_of("2013-01-05"))
            return found

    address = {"catalog": lake.catalog.url, "warehouse": str(lake.warehouse), "form": "scan"}
    dg.materialize(
        [report, dg.AssetSpec("facts"), dg.AssetSpec("looks")],
        selection=["report"],
        resources={"io_manager": Later(**address)},
        run_config=RUN_CONFIG,
    )
    assert max(versions) <= head


def test_scattered_partitions_are_one_commit_that_leaves_what_lies_between(
    run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    lake.create_table("trips", SCHEMA, time="at", cluster_by=["client"])
    table = lake.table("trips")
    all_days = [f"2013-01-{day:02d}" for day in range(1, 9)]
    table.append(rows_of(*all_days, clients=(12, 77)))
    table.append(rows_of("2013-01-06", value=6.0))
    weekdays = dg.TimeWindowPartitionsDefinition(
        "2013-01-01", "%Y-%m-%d", end="2013-03-01", cron_schedule="0 0 * * *", exclusions=["0 0 * * 6", "0 0 * * 0"]
    )

    @chunk_asset(partitions_def=weekdays, name="trips")
    def of_weekdays(context: dg.AssetExecutionContext) -> pa.Table:
        return rows_of(*context.partition_keys, value=2.0)

    before = lake.head
    run(of_weekdays, first="2013-01-03", last="2013-01-07")
    assert [commit.version for commit in table.log() if commit.version > before] == [table.version]
    found = values(table)
    assert [one for one in found if one[2] == 2.0] == [(day, 77, 2.0) for day in
                                                       ("2013-01-03", "2013-01-04", "2013-01-07")]  # fmt: skip
    untouched = [(day, client, 1.0) for day in all_days if day not in ("2013-01-03", "2013-01-04", "2013-01-07")
                 for client in (12, 77)]  # fmt: skip
    assert [one for one in found if one[2] != 2.0] == sorted([*untouched, ("2013-01-06", 77, 6.0)])


def test_rows_outside_scattered_partitions_fail_the_run_and_nothing_is_committed(
    run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    weekdays = dg.TimeWindowPartitionsDefinition(
        "2013-01-01", "%Y-%m-%d", end="2013-03-01", cron_schedule="0 0 * * *", exclusions=["0 0 * * 6", "0 0 * * 0"]
    )

    @chunk_asset(partitions_def=weekdays, name="trips")
    def of_weekdays() -> pa.Table:
        return rows_of("2013-01-04", "2013-01-05")

    result = run(of_weekdays, first="2013-01-03", last="2013-01-07", raise_on_error=False)
    assert not result.success
    assert "rows lie outside the run's partitions" in str(result.failure_data_for_node("trips"))
    assert not lake.table("trips").log()


CELLS = chunk_partitions("day", "2013-01-01", "2013-03-01", keys={"client": [12, 77, 1234]})


@pytest.fixture
def by_client() -> dg.AssetsDefinition:
    """Trips by day and client."""

    @chunk_asset(partitions_def=CELLS, name="trips", metadata=table_metadata(time="at"))
    def trips(context: dg.AssetExecutionContext) -> pa.Table:
        value = float(context.run.tags.get("value", 1.0))
        keys = [CELLS.get_partition_key_from_str(key).keys_by_dimension for key in context.partition_keys]
        return pa.concat_tables([rows_of(one["time"], clients=(int(one["client"]),), value=value) for one in keys])

    return trips


def test_a_partition_of_time_and_key_replaces_the_rows_of_that_key_only(
    by_client: dg.AssetsDefinition, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    run(by_client, first="12|2013-01-01", last="1234|2013-01-03")
    table = lake.table("trips")
    assert dict(table.cluster_by) == {"client": 0}
    assert (len(values(table)), len(table.log())) == (9, 1)
    result = run(by_client, first="77|2013-01-02", tags={"value": "5.0"})
    assert [one for one in values(table) if one[2] == 5.0] == [("2013-01-02", 77, 5.0)]
    assert len(values(table)) == 9
    assert reported(result, "trips")[0]["tombstones"] == 1


def test_an_input_of_time_and_key_holds_the_rows_of_its_cells_only(
    by_client: dg.AssetsDefinition, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    run(by_client, first="12|2013-01-01", last="1234|2013-01-03")
    seen: list[list[tuple[str, int]]] = []

    @chunk_asset(partitions_def=CELLS)
    def report(trips: pa.Table) -> None:
        seen.append(sorted((f"{row['at']:%d}", row["client"]) for row in trips.to_pylist()))

    run(report, by_client, first="77|2013-01-02", last="1234|2013-01-03", selection=["report"])
    assert seen == [[("02", 77), ("02", 1234), ("03", 77), ("03", 1234)]]


def test_without_partitions_the_whole_table_is_replaced(run: Callable[..., Any], lake: lakehouse.Lake) -> None:
    @dg.asset
    def looks(context: dg.AssetExecutionContext) -> pa.Table:
        return rows_of(context.run.tags["day"])

    for day in ("2013-01-05", "2020-06-01"):
        run(looks, tags={"day": day})
        assert values(lake.table("looks")) == [(day, 77, 1.0)]


def test_appends_add_and_may_hold_late_rows_of_other_days(run: Callable[..., Any], lake: lakehouse.Lake) -> None:
    @dg.asset(partitions_def=DAYS, metadata=table_metadata(mode="append", time="at"))
    def arrivals(context: dg.AssetExecutionContext) -> pa.Table:
        return rows_of(context.partition_key, "2013-01-01")

    for day in ("2013-01-02", "2013-01-03", "2013-01-03"):
        run(arrivals, first=day)
    assert [day for day, _, _ in values(lake.table("arrivals"))] == ["2013-01-01"] * 3 + [
        "2013-01-02", "2013-01-03", "2013-01-03"]  # fmt: skip


def test_upserts_leave_one_row_a_key(run: Callable[..., Any], lake: lakehouse.Lake) -> None:
    @dg.asset(metadata=table_metadata(mode="upsert", time="at", primary_key=["client"], newest="value"))
    def clients(context: dg.AssetExecutionContext) -> pa.Table:
        value = float(context.run.tags["value"])
        return pa.concat_tables([rows_of("2013-01-05", value=value), rows_of("2013-01-05", value=value - 1)])

    for value in ("3.0", "7.0"):
        run(clients, tags={"value": value})
    assert values(lake.table("clients")) == [("2013-01-05", 77, 7.0)]


def of_value(value: Any) -> dg.AssetsDefinition:
    @dg.asset(partitions_def=DAYS, name="trips")
    def forgetful() -> Any:
        return value

    return forgetful


def test_an_asset_that_returns_none_or_no_table_fails_and_drops_nothing(
    run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    lake.create_table("trips", SCHEMA, time="at").append(rows_of("2013-01-05"))
    for value, message in ((None, "returned None"), (17, "not a table")):
        asset = of_value(value)
        result = run(asset, first="2013-01-05", raise_on_error=False)
        assert message in str(result.failure_data_for_node("trips"))
    assert len(values(lake.table("trips"))) == 1


def test_no_rows_are_a_drop_of_the_partition(
    trips: dg.AssetsDefinition, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    run(trips, first="2013-01-01", last="2013-01-03")

    @dg.asset(partitions_def=DAYS, name="trips")
    def empty() -> pa.Table:
        return SCHEMA.empty_table()

    run(empty, first="2013-01-02")
    assert [day for day, _, _ in values(lake.table("trips"))] == ["2013-01-01"] * 2 + ["2013-01-03"] * 2


def test_a_reversed_range_fails_although_dagster_would_call_it_a_success(
    trips: dg.AssetsDefinition, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    result = run(trips, first="2013-01-03", last="2013-01-01", raise_on_error=False)
    assert not result.success


def test_options_that_nobody_knows_are_named(run: Callable[..., Any]) -> None:
    @dg.asset(metadata={"lakehouse/tabel": "trips"})
    def trips() -> pa.Table:
        return rows_of("2013-01-05")

    result = run(trips, raise_on_error=False)
    assert "tabel" in str(result.failure_data_for_node("trips"))


def test_a_rename_is_not_needed_for_assets_with_a_prefix(run: Callable[..., Any], lake: lakehouse.Lake) -> None:
    @dg.asset(key_prefix=["raw"])
    def trips() -> pa.Table:
        return rows_of("2013-01-05")

    run(trips)
    assert lake.tables() == ["raw_trips"]


@pytest.mark.parametrize("mode", ["append", "replace", "upsert", "scattered"])
@pytest.mark.parametrize("given", ["asset", "manager"])
def test_an_output_with_other_columns_gives_them_to_the_table_in_its_commit(
    mode: str, given: str, run: Callable[..., Any], lake: lakehouse.Lake
) -> None:
    table = lake.create_table("trips", SCHEMA, time="at", primary_key=["client"] if mode == "upsert" else ())
    table.append(rows_of("2013-01-04", clients=(12,)))
    said = {"schema": "merge"} if given == "asset" else {}
    metadata = table_metadata(mode="replace" if mode == "scattered" else mode, **said)
    weekdays = dg.TimeWindowPartitionsDefinition(
        "2013-01-01", "%Y-%m-%d", end="2013-03-01", cron_schedule="0 0 * * *", exclusions=["0 0 * * 6", "0 0 * * 0"]
    )

    @chunk_asset(partitions_def=weekdays, name="trips", metadata=metadata)
    def trips() -> pa.Table:
        return rows_of("2013-01-07").append_column("gate", pa.array(["B2"]))

    options = {"manager": {"schema_mode": "merge"}} if given == "manager" else {}
    commits, last = len(lake.log()), "2013-01-08" if mode == "scattered" else "2013-01-07"
    first = "2013-01-04" if mode == "scattered" else last
    run(trips, first=first, last=last, **options)
    assert len(lake.log()) == commits + 1
    found = lake.table("trips").scan(columns=["client", "gate"]).to_arrow().to_pylist()
    assert {"client": 77, "gate": "B2"} in found
    assert ({"client": 12, "gate": None} in found) == (mode != "scattered")


def test_rows_that_lack_a_column_fail_and_the_table_keeps_it(run: Callable[..., Any], lake: lakehouse.Lake) -> None:
    lake.create_table("trips", SCHEMA, time="at").append(rows_of("2013-01-05", "2013-01-06"))

    @dg.asset(partitions_def=DAYS)
    def trips() -> pa.Table:
        return rows_of("2013-01-05").drop_columns("value")

    result = run(trips, first="2013-01-05", raise_on_error=False)
    assert "missing column" in str(result.failure_data_for_node("trips"))
    assert lake.table("trips").schema.names == SCHEMA.names
    assert len(values(lake.table("trips"))) == 2


def test_rows_without_times_are_a_timeless_table_of_an_asset_without_partitions(
    run: Callable[..., Any], lake: lakehouse.Lake, instance: dg.DagsterInstance
) -> None:
    found: list[Any] = []

    @dg.asset(metadata=table_metadata(cluster_by=["region"]))
    def codes() -> pa.Table:
        return pa.table({"code": ["UA", "B6"][: 2 - len(found)], "region": ["west", "east"][: 2 - len(found)]})

    def named(codes: pa.Table) -> None:
        found.append(codes["code"].to_pylist())

    for rows in (2, 1):
        shown = reported(run(codes, dg.asset(named)), "codes")[0]
        assert (shown["rows"], shown["interval"]) == (rows, "all time")
    assert found == [["UA", "B6"], ["UA"]]
    assert (lake.table("codes").time, lake.table("codes").cluster_by) == (None, {"region": 0})
    for partitions in (DAYS, dg.StaticPartitionsDefinition(["west"])):
        first = partitions.get_partition_keys()[0]
        again: dict[str, Any] = {"partitions_def": partitions, "metadata": {"partition_expr": "region"}}
        rows_again = dg.asset(lambda: pa.table({"code": ["C"], "region": ["west"]}), name="codes", **again)
        with pytest.raises(InvalidPartitions, match=r"no time.*table=codes"):
            run(rows_again, first=first)
        with pytest.raises(InvalidPartitions, match=r"no time.*table=codes"):
            run(dg.AssetSpec("codes", **again), dg.asset(named, **again), first=first, selection=["named"])
    with pytest.raises(InvalidPartitions, match="no time"):
        chunk_partitions(lake.table("codes"))
    assert lake.table("codes").scan().to_arrow()["code"].to_pylist() == ["UA"]
