"""The code location: what it holds, and that loading it starts nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import yaml

from assets.definitions import defs
from lakehouse.dagster import chunk_partitions

ROOT = Path(__file__).parents[2]
LOAD = """
import os, sys, time
started = time.perf_counter()
import assets.definitions
print(f"loaded in {time.perf_counter() - started:.2f} s")
from pyspark.sql import SparkSession
from pyspark import SparkContext
assert SparkSession.getActiveSession() is None and SparkContext._gateway is None
children = open(f'/proc/self/task/{os.getpid()}/children').read().split()
assert not children, children
heavy = {'duckdb', 'sqlalchemy', 'pandas', 'polars', 'streamlit'} & set(sys.modules)
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


def test_every_asset_has_a_group_and_says_that_spark_makes_it() -> None:
    for spec in defs.resolve_all_asset_specs():
        assert (spec.group_name, spec.kinds) == ("nycflights", {"spark"})
