"""Streams in Dagster: what is observed of a topic, which stalled ones are told of, and bounded runs of one."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.observe import observe

import lakehouse
from lakehouse.core.topic import Progress, TopicState
from lakehouse.dagster import LakehouseResource, build_stalled_sensor, observe_topic, topic_asset

TOLD = Progress("ticks", "kafka ticks", rows=70, batch=3, version=9, lag=4, lag_unit="records", batch_ago=1.0)
FAILING = Progress("ticks", "rate", failures=5, restarts=5, error="no column b", started_ago=1000.0)
Tick = Callable[..., Any]


@pytest.fixture
def quiet(address: dict[str, str]) -> Iterator[lakehouse.Lake]:
    """The test's lake, without Spark."""
    with lakehouse.connect(**address) as one:
        yield one


def say(lake: lakehouse.Lake, name: str, progress: Progress, state: TopicState = TopicState.RUNNING) -> None:
    lake.catalog.claim_topic(name, "here:1:1", progress)
    lake.catalog.report_topics("here:1:1", {name: (state, progress)})


def materialize(asset: dg.AssetsDefinition, address: dict[str, str], instance: dg.DagsterInstance) -> Any:
    return dg.materialize(
        [asset], resources={"lakehouse": LakehouseResource(**address)}, instance=instance, raise_on_error=False
    )


def test_an_observation_says_how_a_topic_is(
    quiet: lakehouse.Lake, address: dict[str, str], instance: dg.DagsterInstance
) -> None:
    asset = observe_topic("ticks", every=timedelta(minutes=5), group_name="streams")
    resources = {"lakehouse": LakehouseResource(**address)}
    assert not observe([asset], resources=resources, instance=instance, raise_on_error=False).success  # nobody ran it
    say(quiet, "ticks", TOLD)
    assert observe([asset], resources=resources, instance=instance).success
    event = instance.fetch_observations(dg.AssetKey("ticks"), limit=1).records[0]
    observed = event.asset_observation
    assert observed is not None
    found = {name: value.value for name, value in observed.metadata.items()}
    assert (found["health"], found["lag"], found["lag_unit"], found["version"]) == ("well", 4, "records", 9)
    assert "error" not in found
    assert observed.tags["dagster/data_version"] == "9"


@pytest.fixture
def tick(instance: dg.DagsterInstance, address: dict[str, str]) -> Tick:
    def evaluate(sensor: dg.SensorDefinition, cursor: str | None = None) -> Any:
        resources = {"lakehouse": LakehouseResource(**address)}
        with dg.build_sensor_context(instance=instance, cursor=cursor, resources=resources) as context:
            return sensor.evaluate_tick(context)

    return evaluate


@dg.job
def tell() -> None:
    """Tells somebody."""


def test_a_stalled_topic_is_told_of_once_and_so_is_its_recovery(quiet: lakehouse.Lake, tick: Tick) -> None:
    sensor = build_stalled_sensor(job=tell)
    say(quiet, "good", TOLD)
    say(quiet, "bad", FAILING, TopicState.WAITING)
    first = tick(sensor)
    (request,) = first.run_requests
    assert request.tags["lakehouse/topic"] == "bad"
    (event,) = first.asset_events
    assert (event.asset_key, "5 failures" in event.description) == (dg.AssetKey("bad"), True)
    again = tick(sensor, first.cursor)
    assert (again.run_requests, again.asset_events) == ([], [])
    assert "1 of them stalled as before" in again.skip_message
    say(quiet, "bad", TOLD)
    after = tick(sensor, again.cursor)
    assert (after.run_requests, json.loads(after.cursor)) == ([], {})
    assert "progress again" in after.asset_events[0].description
    say(quiet, "bad", FAILING, TopicState.WAITING)
    (request_again,) = tick(sensor, after.cursor).run_requests
    assert request_again.tags == request.tags


def test_a_topic_that_nobody_has_started_is_stalled_where_it_is_asked_for(quiet: lakehouse.Lake, tick: Tick) -> None:
    say(quiet, "bad", FAILING, TopicState.WAITING)
    found = tick(build_stalled_sensor(topics=["ticks"]))
    (event,) = found.asset_events
    assert (event.asset_key, "no process has run it" in event.description) == (dg.AssetKey("ticks"), True)
    assert found.run_requests == []
    say(quiet, "ticks", TOLD, TopicState.STOPPED)
    assert "or has ended" in tick(build_stalled_sensor(topics=["ticks"]), found.cursor).asset_events[0].description


def test_a_materialization_reads_what_there_is_and_the_next_one_goes_on(
    lake: lakehouse.Lake, address: dict[str, str], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    lake.create_table("ticks", "at TIMESTAMP, id BIGINT", time="at")
    (folder := tmp_path / "source").mkdir()
    text = f'source = {{format = "json", path = "{folder}", columns = "at TIMESTAMP, id BIGINT"}}\ntable = "ticks"\n'
    (file := tmp_path / "topics.toml").write_text(f"[topics.ticks]\n{text}")
    asset = topic_asset(file, "ticks")

    def put(number: int) -> None:
        (folder / f"{number}.json").write_text(json.dumps({"at": "2026-01-01T00:00:00Z", "id": number}))

    put(1)
    first = materialize(asset, address, instance)
    assert first.success
    (event,) = first.asset_materializations_for_node("ticks")
    found = {name: value.value for name, value in event.metadata.items()}
    assert (found["rows_read"], found["batches"], found["version"]) == (1, 1, lake.table("ticks").version)
    assert event.tags["dagster/data_version"] == str(lake.table("ticks").version)
    put(2)
    assert materialize(asset, address, instance).success
    assert materialize(asset, address, instance).success
    assert lake.table("ticks").count() == 2
    (folder / "3.json").write_text('{"at": null, "id": 3}')
    failed = materialize(asset, address, instance)
    assert not failed.success
    assert "ticks failed" in str(failed.all_events)
    assert lake.table("ticks").count() == 2
