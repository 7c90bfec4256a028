"""Checks fail when they should, stop what lies downstream where the user says so, and open no data file needlessly."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.definitions.observe import observe

import lakehouse
from lakehouse.dagster import (
    LakehouseIOManager,
    LakehouseResource,
    build_checks,
    checks,
    chunk_partitions,
    observe_table,
    on_new_version,
    table_metadata,
)
from lakehouse.errors import InvalidInput

DAYS = chunk_partitions("day", "2013-01-01", "2013-02-01")
SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("client", pa.int64())])
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def rows_of(*days: str, clients: tuple[int, ...] = (77,)) -> pa.Table:
    at = [datetime.fromisoformat(day).replace(hour=7, tzinfo=UTC) for day in days for _ in clients]
    return pa.table({"at": at, "client": list(clients) * len(days)}, schema=SCHEMA)


@pytest.fixture
def lake(address: dict[str, str]) -> Iterator[lakehouse.Lake]:
    """The test's lake, without Spark."""
    with lakehouse.connect(**address) as one:
        yield one


@pytest.fixture
def events(lake: lakehouse.Lake) -> lakehouse.Table:
    """Three days, one of them with two clients."""
    table = lake.create_table("events", SCHEMA, time="at", primary_key=["client"], cluster_by=["client"])
    table.append(rows_of("2013-01-02", "2013-01-03"))
    table.append(rows_of("2013-01-05", clients=(12, 77)))
    return table


def now() -> datetime:
    return datetime(2013, 1, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("check", "passes", "sentence"),
    [
        (checks.chunk_complete(), False, "1 of the chunks of"),
        (checks.chunk_complete(allowed=1), True, "1 of the chunks of"),
        (checks.chunk_complete(("2013-01-02", "2013-01-04")), True, "0 of the chunks of"),
        (checks.chunk_complete("2013-01"), False, "28 of the chunks of"),
        (checks.row_count(4), True, "4 rows"),
        (checks.row_count(lambda table: len(table.schema)), False, "the source has 2"),
        (checks.row_count(5, tolerance=0.2), True, "4 rows"),
        (checks.row_count(2, interval="2013-01-05"), True, "2 rows"),
        (checks.primary_key_unique(), False, "1 keys are there twice"),
        (checks.primary_key_unique(interval="2013-01-05"), True, "0 keys"),
        (checks.primary_key_unique(["at", "client"]), True, "0 keys"),
        (checks.no_null_time(), True, "0 rows"),
        (checks.schema_is("at TIMESTAMP, client BIGINT"), True, "0 columns"),
        (checks.schema_is("at TIMESTAMP, client STRING, note STRING"), False, "2 columns differ"),
        (checks.tombstone_debt(), True, "0 tombstones"),
        (checks.freshness(timedelta(days=1), now=now), True, "the newest of rows"),
        (checks.freshness(timedelta(hours=1), now=now), False, "is allowed"),
        (checks.freshness(timedelta(days=1), of="version"), True, "the newest of version"),
    ],
)
def test_a_check_passes_and_fails_when_it_should(
    events: lakehouse.Table, check: checks.TableCheck, passes: bool, sentence: str
) -> None:
    passed, _, said = check.look(events)
    assert (passed, sentence in said) == (passes, True), said


def test_of_a_timeless_table_what_needs_a_time_is_refused(lake: lakehouse.Lake) -> None:
    table = lake.create_table("codes", "code STRING")
    table.append(pa.table({"code": ["UA", "B6"]}))
    for check in (checks.chunk_complete(), checks.row_count(2), checks.freshness(timedelta(days=1), of="version")):
        assert check.look(table)[0]
    for check in (checks.freshness(timedelta(days=1)), checks.no_null_time(), checks.chunk_complete("2013-01")):
        with pytest.raises(InvalidInput, match="no time"):
            check.look(table)


def test_tombstones_are_a_debt_by_number_and_by_share(events: lakehouse.Table) -> None:
    events.delete("client + 0 = 12")
    assert checks.tombstone_debt(share=0.3).look(events)[0]
    assert not checks.tombstone_debt(share=0.1).look(events)[0]
    assert not checks.tombstone_debt(0).look(events)[0]


def test_an_empty_table_is_neither_complete_nor_fresh(lake: lakehouse.Lake) -> None:
    table = lake.create_table("events", SCHEMA, time="at")
    assert not checks.chunk_complete().look(table)[0]
    assert not checks.freshness(timedelta(days=1)).look(table)[0]
    with pytest.raises(InvalidInput, match="primary key"):
        checks.primary_key_unique().look(table)


def definitions(address: dict[str, str], *, blocking: Any) -> dg.Definitions:
    """An asset whose keys are there twice, its checks, and what lies downstream of it."""

    @dg.asset(metadata=table_metadata(table="trips", time="at"))
    def raw() -> pa.Table:
        return rows_of("2013-01-02", clients=(77, 77))

    @dg.asset
    def clean(raw: pa.Table) -> pa.Table:
        return raw

    unique = [checks.primary_key_unique(["client"]), checks.no_null_time()]
    return dg.Definitions(
        assets=[raw, clean],
        asset_checks=build_checks(raw, unique, blocking=blocking),
        resources={"lakehouse": LakehouseResource(**address), "io_manager": LakehouseIOManager(**address)},
        executor=dg.in_process_executor,
    )


@pytest.mark.parametrize("blocking", [True, ["primary_key_unique"], False])
def test_a_blocking_check_that_fails_keeps_what_lies_downstream_from_running(
    blocking: Any, address: dict[str, str], instance: dg.DagsterInstance, lake: lakehouse.Lake
) -> None:
    job = definitions(address, blocking=blocking).resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance, run_config=QUIET, raise_on_error=False)
    found = {one.check_name: one for one in result.get_asset_check_evaluations()}
    assert {name: one.passed for name, one in found.items()} == {"primary_key_unique": False, "no_null_time": True}
    assert found["primary_key_unique"].metadata["examples"].value == ["{'client': 77}"]
    assert found["primary_key_unique"].metadata["version"].value == lake.table("trips").version
    assert lake.tables() == (["trips"] if blocking else ["clean", "trips"])
    assert result.success is not bool(blocking)


def test_a_blocking_check_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidInput, match="no such check"):
        build_checks("trips", [checks.no_null_time()], blocking=["nul_time"])


def test_observing_a_table_reports_its_version_to_dagster_and_of_chunks_each_its_own(
    events: lakehouse.Table, address: dict[str, str], instance: dg.DagsterInstance
) -> None:
    whole = observe_table("events", key=dg.AssetKey(["outside", "events"]))
    by_day = observe_table("events", partitions_def=DAYS)
    resources = {"lakehouse": LakehouseResource(**address)}
    first, second = (commit.version for commit in reversed(events.log()))

    def observed() -> tuple[Any, dict[str, str]]:
        result = observe([whole, by_day], instance=instance, resources=resources, run_config=QUIET)
        found = {
            (one.asset_key.to_user_string(), one.partition): one.tags["dagster/data_version"]
            for one in (
                event.asset_observation_data.asset_observation for event in result.get_asset_observation_events()
            )
        }
        return found.pop(("outside/events", None)), {key or "": version for (_, key), version in found.items()}

    assert observed() == (str(second), {"2013-01-02": str(first), "2013-01-03": str(first), "2013-01-05": str(second)})
    late = events.append(rows_of("2013-01-02"))
    assert observed() == (
        str(late.version),
        {"2013-01-02": str(late.version), "2013-01-03": str(first), "2013-01-05": str(second)},
    )


@pytest.mark.filterwarnings("ignore:Property `OpDefinition.version`:DeprecationWarning")  # of Dagster, of its own call
def test_assets_downstream_follow_late_data_into_the_chunk_that_it_changed(
    events: lakehouse.Table, address: dict[str, str], instance: dg.DagsterInstance
) -> None:
    source = observe_table("events", partitions_def=DAYS)

    @dg.asset(partitions_def=DAYS, deps=[source], automation_condition=on_new_version())
    def daily() -> None: ...

    defs = dg.Definitions([source, daily], resources={"lakehouse": LakehouseResource(**address)})

    def asked(cursor: Any) -> tuple[set[str], Any]:
        observe([source], instance=instance, resources=defs.resources, run_config=QUIET)
        found = dg.evaluate_automation_conditions(
            defs, instance, asset_selection=dg.AssetSelection.assets(daily), cursor=cursor
        )
        return {key or "" for key in found.get_requested_partitions(daily.key)}, found.cursor

    _, cursor = asked(None)
    for key in ("2013-01-02", "2013-01-03", "2013-01-05"):
        dg.materialize([daily], instance=instance, partition_key=key, run_config=QUIET)
    settled, cursor = asked(cursor)
    assert settled == set()
    events.append(rows_of("2013-01-03", clients=(1234,)))
    assert asked(cursor)[0] == {"2013-01-03"}
