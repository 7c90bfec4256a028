"""Sensors that start maintenance by score: no run without work, no two for one chunk, and nothing forgotten."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.dagster import LakehouseResource, build_compaction_sensor, build_maintenance_jobs

SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("client", pa.int64())])
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
JOBS = build_maintenance_jobs()
SENSOR = build_compaction_sensor(JOBS)
Tick = Callable[..., Any]


@pytest.fixture
def lake(address: dict[str, str]) -> Iterator[lakehouse.Lake]:
    """The test's lake, without Spark."""
    with lakehouse.connect(**address) as one:
        yield one


def rows_of(day: str, count: int = 1) -> pa.Table:
    at = [datetime.fromisoformat(day).replace(hour=7, tzinfo=UTC)] * count
    return pa.table({"at": at, "client": list(range(count))}, schema=SCHEMA)


def fill(lake: lakehouse.Lake, *days: str, name: str = "events") -> lakehouse.Table:
    """Many small segments in each of some days."""
    table = lake.create_table(name, SCHEMA, time="at", primary_key=["client"], if_not_exists=True)
    for day in days:
        for _ in range(12):
            table.append(rows_of(day))
    return table


@pytest.fixture
def tick(instance: dg.DagsterInstance, address: dict[str, str]) -> Tick:
    """Evaluate a sensor, as the daemon does; its cursor goes from one to the next."""

    def evaluate(cursor: str | None = None, sensor: dg.SensorDefinition = SENSOR) -> Any:
        context = dg.build_sensor_context(
            instance=instance, cursor=cursor, resources={"lakehouse": LakehouseResource(**address)}
        )
        with context:
            return sensor.evaluate_tick(context)

    return evaluate


def run(request: Any, instance: dg.DagsterInstance, address: dict[str, str]) -> Any:
    (job,) = [one for one in JOBS if one.name == request.job_name]
    return job.execute_in_process(
        instance=instance,
        run_config=dict(request.run_config) | QUIET,
        resources={"lakehouse": LakehouseResource(**address)},
        tags=request.tags,
        raise_on_error=False,
    )


def merges(found: Any) -> list[Any]:
    return [one for one in found.run_requests if one.job_name == "lakehouse_compact"]


def test_a_lake_with_nothing_to_do_gets_no_run(lake: lakehouse.Lake, tick: Tick) -> None:
    cursor = None
    for _ in range(2):
        lake.create_table("events", SCHEMA, time="at", if_not_exists=True).append(rows_of("2013-01-05"))
        found = tick(cursor)
        cursor = found.cursor
        assert not found.run_requests
        assert "nothing to do" in found.skip_message


def test_versions_that_no_retention_keeps_become_a_run_that_forgets_them(
    address: dict[str, str], lake: lakehouse.Lake, tick: Tick, instance: dg.DagsterInstance
) -> None:
    table = lake.create_table("events", SCHEMA, time="at", properties={"retention": "0s", "keep_last": "1"})
    for _ in range(3):
        table.append(rows_of("2013-01-05"))
    (request,) = [one for one in tick().run_requests if one.job_name == "lakehouse_collect"]
    assert "lakehouse/table" not in request.tags
    assert run(request, instance, address).success
    assert len(table.log()) == 1


def test_many_small_segments_become_a_run_that_names_table_and_chunk_and_merges_them(
    lake: lakehouse.Lake, tick: Tick, instance: dg.DagsterInstance, address: dict[str, str]
) -> None:
    table = fill(lake, "2013-01-05")
    rows = table.scan().count()
    found = tick()
    (request,) = merges(found)
    assert request.tags["lakehouse/table"] == "events"
    assert request.tags["lakehouse/chunk"].startswith("2013-01-05")
    assert float(request.tags["lakehouse/score"]) > 0
    done = run(request, instance, address)
    assert done.success
    assert (len(table.segments()), table.scan().count()) == (1, rows)
    (observed,) = [one for one in done.all_events if one.event_type_value == "ASSET_OBSERVATION"]
    assert observed.asset_key == dg.AssetKey("events")
    assert not merges(tick(found.cursor))


def test_a_timeless_table_is_merged_by_one_run_at_a_time(
    lake: lakehouse.Lake, tick: Tick, instance: dg.DagsterInstance, address: dict[str, str]
) -> None:
    table = lake.create_table("codes", "code BIGINT", properties={"retention": "forever"})
    for number in range(12):
        table.append(pa.table({"code": [number]}))
    first = tick()
    (request,) = merges(first)
    started = instance.create_run_for_job(
        next(one for one in JOBS if one.name == request.job_name), run_config=request.run_config, tags=request.tags
    )
    table.append(pa.table({"code": [12]}))
    assert not merges(tick(first.cursor)), "the run's chunk is the whole table"
    instance.report_run_canceled(started)
    (again,) = merges(tick())
    assert run(again, instance, address).success
    assert (len(table.segments()), table.scan().count()) == (1, 13)


def test_a_cursor_survives_a_restart_and_asks_for_nothing_twice(
    lake: lakehouse.Lake, tick: Tick, instance: dg.DagsterInstance
) -> None:
    fill(lake, "2013-01-05")
    first = tick()
    (request,) = merges(first)
    instance.create_run_for_job(
        next(one for one in JOBS if one.name == request.job_name), run_config=request.run_config, tags=request.tags
    )
    assert not merges(tick(first.cursor)), "its run is under way"
    held = json.loads(first.cursor)
    assert held["head"] == lake.head
    assert set(held["requested"].values()) == {1}


def test_what_a_run_was_asked_to_do_and_did_not_is_asked_for_again(
    lake: lakehouse.Lake, tick: Tick, instance: dg.DagsterInstance
) -> None:
    fill(lake, "2013-01-05")
    first = tick()
    (request,) = merges(first)
    job = next(one for one in JOBS if one.name == request.job_name)
    started = instance.create_run_for_job(job, run_config=request.run_config, tags=request.tags)
    instance.report_run_failed(started, "the process was killed")
    (again,) = merges(tick(first.cursor))
    assert again.tags["lakehouse/task"] == request.tags["lakehouse/task"]
    assert again.run_key != request.run_key


def test_a_task_that_somebody_else_did_is_left_alone(
    lake: lakehouse.Lake, tick: Tick, instance: dg.DagsterInstance, address: dict[str, str]
) -> None:
    fill(lake, "2013-01-05")
    (request,) = merges(tick())
    lake.maintain()
    head = lake.head
    assert run(request, instance, address).success
    assert lake.head == head


def test_a_chunk_that_somebody_replaces_is_not_merged_meanwhile_and_another_one_is(
    lake: lakehouse.Lake, tick: Tick
) -> None:
    table = fill(lake, "2013-01-05", "2013-02-05")
    with table.begin_replace("2013-01-05") as replace:
        chunks = {one.tags["lakehouse/chunk"][:10] for one in merges(tick())}
        replace.abort()
    assert chunks <= {"2013-02-05"}
    assert merges(tick())


def test_no_more_runs_are_under_way_than_allowed_and_only_of_the_tables_and_scores_asked_for(
    lake: lakehouse.Lake, tick: Tick
) -> None:
    for name in ("events", "others", "thirds"):
        fill(lake, "2013-01-05", name=name)
    only = build_compaction_sensor(JOBS, name="only", tables=["others"])
    assert {one.tags["lakehouse/table"] for one in tick(sensor=only).run_requests} == {"others"}
    one = build_compaction_sensor(JOBS, name="one", most_runs=1)
    assert len(tick(sensor=one).run_requests) == 1
    none = build_compaction_sensor(JOBS, name="none", least_score=1e12)
    assert not tick(sensor=none).run_requests


def test_all_maintenance_shares_a_concurrency_pool() -> None:
    assert {op.pool for job in JOBS for op in (node.definition for node in job.nodes)} == {"lakehouse_maintenance"}
    assert [job.name for job in JOBS] == [f"lakehouse_{kind}" for kind in
                                          ("compact", "resolve", "clean", "collect", "stats", "index")]  # fmt: skip
