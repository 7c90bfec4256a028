"""Spark as a resource, and Spark frames through the IO manager."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

import lakehouse
from lakehouse.dagster import (
    LakehouseIOManager,
    LakehouseResource,
    chunk_asset,
    chunk_partitions,
    table_metadata,
)

ROOT = Path(__file__).parents[2]
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
DAYS = chunk_partitions("day", "2013-01-01", "2013-02-01")
WEEKDAYS = dg.TimeWindowPartitionsDefinition(
    "2013-01-01", "%Y-%m-%d", end="2013-02-01", cron_schedule="0 0 * * *", exclusions=["0 0 * * 6", "0 0 * * 0"]
)


@pytest.fixture
def run(address: dict[str, str], instance: dg.DagsterInstance, spark: Any) -> Callable[..., Any]:
    """Materialize the partitions from first to last."""

    def materialize(*assets: Any, first: str, last: str, **options: Any) -> Any:
        tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        resources = {"io_manager": LakehouseIOManager(**address), "lakehouse": LakehouseResource(**address)}
        return dg.materialize(
            list(assets), instance=instance, tags=tags, resources=resources, run_config=QUIET, **options
        )

    return materialize


def frame_of(spark: Any, days: list[str]) -> DataFrame:
    rows = ", ".join(f"(TIMESTAMP '{day} 07:00:00Z', {number})" for number, day in enumerate(days))
    frame: DataFrame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(at, client)")
    return frame


def test_a_spark_frame_goes_in_and_comes_out_of_the_partitions_of_the_run(
    run: Callable[..., Any], spark: Any, lake: lakehouse.Lake
) -> None:
    seen: list[Any] = []

    @chunk_asset(partitions_def=DAYS, metadata=table_metadata(time="at"))
    def events(context: dg.AssetExecutionContext) -> DataFrame:
        return frame_of(spark, list(context.partition_keys))

    @chunk_asset(partitions_def=DAYS)
    def report(events: DataFrame) -> None:
        seen.append(sorted(row["client"] for row in events.collect()))

    run(events, first="2013-01-01", last="2013-01-06")
    assert lake.table("events").scan().count() == 6
    run(report, events, first="2013-01-03", last="2013-01-04", selection=["report"])
    assert seen == [[2, 3]]


def test_scattered_partitions_of_a_spark_frame_are_one_commit_and_rows_between_them_fail(
    run: Callable[..., Any], spark: Any, lake: lakehouse.Lake
) -> None:
    table = lake.create_table("events", "at TIMESTAMP, client INT", time="at")
    table.append(frame_of(spark, [f"2013-01-0{day}" for day in range(1, 9)]))

    def of(days: list[str]) -> dg.AssetsDefinition:
        @chunk_asset(partitions_def=WEEKDAYS, name="events")
        def events() -> DataFrame:
            return frame_of(spark, days)

        return events

    before = lake.head
    run(of(["2013-01-04", "2013-01-07"]), first="2013-01-03", last="2013-01-07")
    assert len([commit for commit in table.log() if commit.version > before]) == 1
    found = sorted((f"{row['at']:%d}", row["client"]) for row in table.scan().to_arrow().to_pylist())
    assert found == [("01", 0), ("02", 1), ("04", 0), ("05", 4), ("06", 5), ("07", 1), ("08", 7)]
    head = lake.head
    result = run(of(["2013-01-05"]), first="2013-01-03", last="2013-01-07", raise_on_error=False)
    assert "rows lie outside the run's partitions" in str(result.failure_data_for_node("events"))
    assert lake.head == head


def test_rows_are_in_memory_where_no_spark_is_asked_for(run: Callable[..., Any], lake: lakehouse.Lake) -> None:
    lake.create_table("events", "at TIMESTAMP, client INT", time="at")
    kinds: list[Any] = []

    @chunk_asset(partitions_def=DAYS)
    def report(events: pa.Table) -> None:
        kinds.append(type(events))

    run(
        report, dg.AssetSpec("events", partitions_def=DAYS), first="2013-01-03", last="2013-01-04", selection=["report"]
    )
    assert kinds == [pa.Table]


LIFE = """
import dagster as dg
from pyspark.sql import SparkSession
from lakehouse.dagster import LakehouseResource, SparkResource

settings = {"spark.driver.memory": "512m", "spark": {"sql": {"shuffle": {"partitions": 3}}}}
seen = []

@dg.asset
def first(spark: SparkResource, lake: LakehouseResource) -> None:
    session = spark.spark_session
    seen.append((spark.spark_context.master, session.conf.get("spark.sql.shuffle.partitions")))
    assert lake.get_spark() is session
    assert session.range(3).count() == 3

@dg.asset(deps=[first])
def second(spark: SparkResource) -> None:
    assert spark.get_spark().range(2).count() == 2, "another step of the run uses it still"

def run():
    quiet = {"loggers": {"console": {"config": {"log_level": "WARNING"}}}}
    resources = {
        "spark": SparkResource(spark_master="local[1]", spark_config=settings),
        "lake": LakehouseResource(spark_config={"spark.driver.memory": "9g"}),
    }
    assert dg.materialize([first, second], resources=resources, run_config=quiet).success

run()
assert seen == [("local[1]", "3")], seen
try:
    SparkSession.active()
except Exception as error:
    print("stopped:", type(error).__name__)
run()
mine = SparkSession.builder.master("local[1]").getOrCreate()
seen.clear()
run()
print("mine runs still:", mine.range(4).count())
"""


def test_a_session_that_a_run_started_ends_with_it_and_one_that_was_there_stays(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIFE], cwd=tmp_path, env={**_environment(), "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "stopped:" in done.stdout
    assert "mine runs still: 4" in done.stdout
    assert "without these settings: ['spark.driver.memory']" in done.stderr


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHOUSE_", "SPARK_"))}
