"""Facts and look-ups published in one version, by an asset of several tables."""

from collections.abc import Iterator
from datetime import datetime

import dagster as dg
import pyarrow as pa
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run

import lakehouse
from lakehouse.dagster import LakehouseResource, chunk_partitions, replace_together, run_cells

DAYS = chunk_partitions("day", "2013-01-01", "2013-02-01")
QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("carrier", pa.string())])
EVER = lakehouse.Interval("2000-01-01", "2001-01-01")


def rows_of(at: datetime, *carriers: str) -> pa.Table:
    return pa.table({"at": [at] * len(carriers), "carrier": list(carriers)}, schema=SCHEMA)


@dg.multi_asset(specs=[dg.AssetSpec("facts", partitions_def=DAYS), dg.AssetSpec("looks", partitions_def=DAYS)])
def publish(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> Iterator[dg.MaterializeResult[None]]:
    """The run's day of facts, and all look-ups."""
    (cell,) = run_cells(context)
    looks = rows_of(EVER.start, "UA", "AA")
    if context.run.tags.get("breaks"):
        looks = rows_of(EVER.end, "UA")
    with lakehouse.get_lake(spark=False) as lake:
        yield from replace_together(
            context, lake, {"facts": rows_of(cell.interval.start, "UA"), "looks": (looks, EVER)}
        )
    if context.run.tags.get("dies"):
        raise RuntimeError("the process died after the commit")


def test_facts_and_look_ups_become_visible_in_one_version_or_not_at_all(
    address: dict[str, str], instance: dg.DagsterInstance
) -> None:
    defs = dg.Definitions(
        [publish], resources={"lakehouse": LakehouseResource(**address)}, executor=dg.in_process_executor
    )
    job = defs.resolve_implicit_global_asset_job_def()

    def run(parent: dg.DagsterRun | None = None, **tags: str) -> dg.DagsterRun:
        started = instance.create_run_for_job(
            job,
            run_config=QUIET,
            tags={"dagster/partition": "2013-01-05"} | tags,
            parent_run_id=parent and parent.run_id,
            root_run_id=parent and parent.run_id,
        )
        execute_run(InMemoryJob(job), started, instance, raise_on_error=False)
        found = instance.get_run_by_id(started.run_id)
        assert found is not None
        return found

    with lakehouse.connect(**address) as lake:
        facts, looks = (lake.create_table(name, SCHEMA, time="at") for name in ("facts", "looks"))
        assert run(breaks="yes").status is dg.DagsterRunStatus.FAILURE
        assert not facts.log()
        assert not looks.log()

        died = run(dies="yes")
        assert died.status is dg.DagsterRunStatus.FAILURE
        head = lake.head
        assert run(died).status is dg.DagsterRunStatus.SUCCESS
        assert lake.head == head, "its retry writes nothing"
        assert (facts.version, looks.version) == (head, head)
        assert (facts.scan().count(), looks.scan().count()) == (1, 2)
        event = instance.get_latest_materialization_event(dg.AssetKey("looks"))
        assert event is not None
        assert event.asset_materialization is not None
        metadata = {name: value.value for name, value in event.asset_materialization.metadata.items()}
        assert (metadata["version"], metadata["rows"], metadata["interval"]) == (head, 2, "2000-01-01/2001-01-01")
