"""The code location: what it holds, and that loading it starts nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from assets.definitions import defs
from assets.nycflights.changes import Late, Restated
from lakehouse.dagster import (
    LakehouseIOManager,
    LakehouseResource,
    ServingResource,
    SparkResource,
    chunk_partitions,
)
from lakehouse.dagster.maintenance import TaskConfig

ROOT = Path(__file__).parents[2]
FOLLOWERS = dg.AssetSelection.assets("departures", "daily_delays")
SNAPSHOT = Path(__file__).with_name("definitions.json")
LOAD = """
import os, sys, time
started = time.perf_counter()
import assets.definitions
print(f"loaded in {time.perf_counter() - started:.2f} s")
children = open(f'/proc/self/task/{os.getpid()}/children').read().split()
assert not children, children
heavy = {'duckdb', 'sqlalchemy', 'sqlglot', 'pandas', 'polars', 'pyspark', 'streamlit'} & set(sys.modules)
assert not heavy, heavy
"""


def test_loading_the_definitions_starts_no_spark_and_no_process(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHOUSE_", "DAGSTER_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOAD],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "config",
    [Late, Restated, TaskConfig, LakehouseResource, LakehouseIOManager, SparkResource, ServingResource],
    ids=lambda config: config.__name__,
)
def test_the_launchpad_describes_every_field_in_one_sentence(config: Any) -> None:
    said = {name: field.description or "" for name, field in config.model_fields.items()}
    said["itself"] = " ".join(config.__doc__.split())  # Dagster shows all of it
    assert {name: text for name, text in said.items() if not re.fullmatch(r"[A-Z](?:[^.]|\.(?! ))*\.", text)} == {}


def test_the_workspace_names_the_definitions() -> None:
    (location,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    assert location["python_module"]["module_name"] == "assets.definitions"


def test_flights_and_weather_are_partitioned_by_day_and_backfilled_in_one_run() -> None:
    for name in ("flights", "weather"):
        asset = defs.resolve_assets_def(name)
        assert asset.partitions_def == chunk_partitions("day", "2013-01-01", "2014-01-02")
        assert asset.backfill_policy == dg.BackfillPolicy.single_run()


def test_look_ups_are_one_step_that_cannot_be_taken_apart() -> None:
    lookups = defs.resolve_assets_def("airlines")
    assert {key.to_user_string() for key in lookups.keys} == {"airlines", "airports", "planes"}
    assert not lookups.can_subset


def test_every_asset_has_a_group_and_says_what_makes_it() -> None:
    in_process = {"departures", "daily_delays"}
    for spec in defs.resolve_all_asset_specs():
        made_by = {"arrow"} if spec.key.to_user_string() in in_process else {"spark"}
        assert (spec.group_name, spec.kinds) == ("nycflights", made_by)


def test_what_is_made_of_flights_follows_them_into_the_partitions_that_changed() -> None:
    asked = []
    with dg.DagsterInstance.ephemeral() as instance:
        cursor = dg.evaluate_automation_conditions(defs, instance, FOLLOWERS).cursor
        for keys in (["2013-01-05", "2013-01-06"], ["2013-01-06"]):
            for key in keys:
                instance.report_runless_asset_event(dg.AssetMaterialization("flights", partition=key))
            found = dg.evaluate_automation_conditions(defs, instance, FOLLOWERS, cursor=cursor)
            asked.append(found.get_requested_partitions(dg.AssetKey("departures")))
            assert not found.get_requested_partitions(dg.AssetKey("daily_delays")), "a month waits for all its days"
            for key in asked[-1]:
                instance.report_runless_asset_event(dg.AssetMaterialization("departures", partition=key))
            cursor = dg.evaluate_automation_conditions(defs, instance, FOLLOWERS, cursor=found.cursor).cursor
    assert asked == [{"2013-01-05", "2013-01-06"}, {"2013-01-06"}]


def test_the_local_instance_lets_maintenance_take_turns(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.get_concurrency_config().pool_config.default_pool_limit == 1
        assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 1
        assert instance.run_monitoring_enabled
        assert not instance.nux_enabled


def test_the_definitions_are_those_that_were_agreed_on() -> None:
    repository = defs.get_repository_def()
    graph = repository.asset_graph
    found = {
        "assets": {
            key.to_user_string(): {
                "partitions": len(partitions.get_partition_keys()) if partitions else None,
                "parents": sorted(parent.to_user_string() for parent in graph.get(key).parent_keys),
                "checks": sorted(check.name for check in graph.get(key).check_keys),
                "follows": graph.get(key).automation_condition is not None,
            }
            for key, partitions in ((key, graph.get(key).partitions_def) for key in sorted(graph.get_all_asset_keys()))
        },
        "jobs": sorted(job.name for job in repository.get_all_jobs() if not job.name.startswith("__")),
        "sensors": {sensor.name: sensor.default_status.value for sensor in repository.sensor_defs},
        "resources": sorted(defs.resources or {}),
    }
    assert found == json.loads(SNAPSHOT.read_text()), f"if that is meant, {SNAPSHOT.name} is to be: {json.dumps(found)}"
