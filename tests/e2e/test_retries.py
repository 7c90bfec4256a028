"""A retry never doubles data, a new run is never taken for a retry, and what was committed stays."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run

import lakehouse
from lakehouse.dagster import (
    LakehouseIOManager,
    LakehouseResource,
    chunk_asset,
    chunk_partitions,
    replace_each_chunk,
    table_metadata,
)
from lakehouse.dagster.retry import first_attempt

DAYS = chunk_partitions("day", "2013-01-01", "2013-03-01")
SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("value", pa.int64())])
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Fragile(LakehouseIOManager):
    """An IO manager whose process dies after the commits of runs that are to die."""

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        super().handle_output(context, obj)
        match context.step_context.dagster_run.tags.get("dies"):
            case "after the commit":
                raise RuntimeError("the process died")
            case "by kill":
                os.kill(os.getpid(), signal.SIGKILL)


def rows_of(day: str, value: int) -> pa.Table:
    return pa.table({"at": [datetime.fromisoformat(day).replace(hour=7, tzinfo=UTC)], "value": [value]}, schema=SCHEMA)


@pytest.fixture
def lake(address: dict[str, str]) -> Iterator[lakehouse.Lake]:
    """The test's lake, without Spark."""
    with lakehouse.connect(**address) as one:
        yield one


def job_of(mode: str, address: dict[str, str], **options: Any) -> dg.JobDefinition:
    """A job that writes one row a run, whose value the run says."""

    @dg.asset(partitions_def=DAYS, metadata=table_metadata(mode=mode, time="at"), **options)  # type: ignore[arg-type]
    def events(context: dg.AssetExecutionContext) -> pa.Table:
        return rows_of(context.partition_key, int(context.run.tags["value"]))

    @dg.asset(partitions_def=DAYS, deps=[events])
    def after(context: dg.AssetExecutionContext) -> None:
        if context.run.tags.get("dies") == "later":
            raise RuntimeError("another step failed")

    definitions = dg.Definitions(
        assets=[events, after], resources={"io_manager": Fragile(**address)}, executor=dg.in_process_executor
    )
    return definitions.resolve_implicit_global_asset_job_def()


@pytest.fixture
def run(instance: dg.DagsterInstance) -> Callable[..., dg.DagsterRun]:
    """Run a job for a day; ``retry_of`` executes an earlier run again, all of it, as the UI does."""

    def execute(job: dg.JobDefinition, value: int, retry_of: dg.DagsterRun | None = None, **tags: str) -> Any:
        run = instance.create_run_for_job(
            job_def=job,
            run_config=QUIET,
            tags={"dagster/partition": "2013-01-05", "value": str(value)} | tags,
            parent_run_id=retry_of and retry_of.run_id,
            root_run_id=retry_of and (retry_of.root_run_id or retry_of.run_id),
        )
        execute_run(InMemoryJob(job), run, instance, raise_on_error=False)
        return instance.get_run_by_id(run.run_id)

    return execute


def seen(lake: lakehouse.Lake) -> list[int]:
    return sorted(lake.table("events").scan().to_arrow()["value"].to_pylist())


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_a_retry_of_a_run_that_died_after_its_commit_changes_nothing(
    mode: str, run: Callable[..., dg.DagsterRun], address: dict[str, str], lake: lakehouse.Lake,
    instance: dg.DagsterInstance,
) -> None:  # fmt: skip
    job = job_of(mode, address)
    first = run(job, 1, dies="after the commit")
    assert first.status is dg.DagsterRunStatus.FAILURE
    lake.table("events").append(rows_of("2013-01-05", 100), message="late, between the attempts")
    again = run(job, 1, first, dies="after the commit")
    last = run(job, 1, again)
    assert last.status is dg.DagsterRunStatus.SUCCESS
    assert first_attempt(instance, last) == first.run_id
    assert seen(lake) == [1, 100]
    assert len(lake.table("events").log()) == 2
    newest = instance.get_latest_materialization_event(dg.AssetKey("events"))
    assert newest is not None
    assert newest.run_id == last.run_id
    assert newest.asset_materialization is not None
    assert newest.asset_materialization.metadata["version"].value == lake.table("events").log()[-1].version


KILLED = """
import sys
import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from tests.e2e.test_retries import job_of
home, run_id, catalog, warehouse = sys.argv[1:]
with dg.DagsterInstance.from_config(home) as instance:
    job = InMemoryJob(job_of("append", {"catalog": catalog, "warehouse": warehouse}))
    execute_run(job, instance.get_run_by_id(run_id), instance)
"""


def test_a_run_that_was_killed_after_its_commit_is_executed_again_and_doubles_nothing(
    address: dict[str, str], lake: lakehouse.Lake, tmp_path: Path
) -> None:
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    job = job_of("append", address)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        tags = {"dagster/partition": "2013-01-05", "value": "1"}
        first = instance.create_run_for_job(job, run_config=QUIET, tags=tags | {"dies": "by kill"})
        command = [sys.executable, "-c", KILLED, str(home), first.run_id, address["catalog"], address["warehouse"]]
        killed = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=240)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert seen(lake) == [1]
        assert instance.get_run_by_id(first.run_id).status is dg.DagsterRunStatus.STARTED
        assert not instance.get_materialized_partitions(dg.AssetKey("events"))
        again = instance.create_run_for_job(
            job, run_config=QUIET, tags=tags, parent_run_id=first.run_id, root_run_id=first.run_id
        )
        execute_run(InMemoryJob(job), again, instance)
        assert instance.get_materialized_partitions(dg.AssetKey("events")) == {"2013-01-05"}
        assert seen(lake) == [1]


def test_a_retry_of_a_step_inside_its_run_changes_nothing(
    run: Callable[..., dg.DagsterRun], address: dict[str, str], lake: lakehouse.Lake
) -> None:
    job = job_of("append", address, retry_policy=dg.RetryPolicy(max_retries=2))
    assert run(job, 1, dies="after the commit").status is dg.DagsterRunStatus.FAILURE
    assert seen(lake) == [1]


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_a_run_that_is_started_anew_is_a_wish_and_no_retry(
    mode: str, run: Callable[..., dg.DagsterRun], address: dict[str, str], lake: lakehouse.Lake
) -> None:
    job = job_of(mode, address)
    run(job, 1, dies="after the commit")
    run(job, 2)
    assert seen(lake) == ([1, 2] if mode == "append" else [2])


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_executing_a_run_again_that_succeeded_is_a_wish_too(
    mode: str, run: Callable[..., dg.DagsterRun], address: dict[str, str], lake: lakehouse.Lake
) -> None:
    job = job_of(mode, address)
    first = run(job, 1)
    second = run(job, 2, first, dies="after the commit")
    run(job, 2, second)
    assert seen(lake) == ([1, 2] if mode == "append" else [2])


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_where_another_step_failed_an_append_is_not_repeated_and_a_replace_is(
    mode: str, run: Callable[..., dg.DagsterRun], address: dict[str, str], lake: lakehouse.Lake
) -> None:
    job = job_of(mode, address)
    first = run(job, 1, dies="later")
    assert first.status is dg.DagsterRunStatus.FAILURE
    run(job, 2, first)
    assert seen(lake) == ([1] if mode == "append" else [2])


def test_a_backfill_that_is_executed_again_knows_the_runs_that_died(
    run: Callable[..., dg.DagsterRun], address: dict[str, str], lake: lakehouse.Lake
) -> None:
    job = job_of("append", address)
    run(job, 1, dies="after the commit", **{"dagster/backfill": "first"})
    run(job, 1, **{"dagster/backfill": "second", "dagster/parent_backfill_id": "first"})
    assert seen(lake) == [1]


def test_a_backfill_that_fails_half_way_keeps_what_it_committed_and_goes_on_from_there(
    address: dict[str, str], instance: dg.DagsterInstance, lake: lakehouse.Lake
) -> None:
    broken = {"2013-01-04"}
    asked: list[str] = []

    @chunk_asset(partitions_def=DAYS, output_required=False)
    def events(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> None:
        def rows(chunk: Any) -> pa.Table:
            day = f"{chunk.start:%Y-%m-%d}"
            asked.append(day)
            if day in broken:
                raise RuntimeError("no such file")
            return rows_of(day, 1)

        with lakehouse.get_lake(spark=False) as opened:
            replace_each_chunk(context, opened.table("events"), rows)

    lake.create_table("events", SCHEMA, time="at")
    defs = dg.Definitions(
        [events], resources={"lakehouse": LakehouseResource(**address)}, executor=dg.in_process_executor
    )
    job = defs.resolve_implicit_global_asset_job_def()
    keys = {"dagster/asset_partition_range_start": "2013-01-02", "dagster/asset_partition_range_end": "2013-01-06"}
    first = instance.create_run_for_job(job_def=job, run_config=QUIET, tags=keys)
    execute_run(InMemoryJob(job), first, instance, raise_on_error=False)
    assert instance.get_run_by_id(first.run_id).status is dg.DagsterRunStatus.FAILURE
    assert instance.get_materialized_partitions(events.key) == {"2013-01-02", "2013-01-03"}
    assert seen(lake) == [1, 1]
    head = lake.head

    broken.clear()
    again = instance.create_run_for_job(
        job_def=job, run_config=QUIET, tags=keys, parent_run_id=first.run_id, root_run_id=first.run_id
    )
    execute_run(InMemoryJob(job), again, instance)
    assert instance.get_materialized_partitions(events.key) == {f"2013-01-0{day}" for day in range(2, 7)}
    assert seen(lake) == [1] * 5
    assert len([commit for commit in lake.log() if commit.version > head]) == 3
