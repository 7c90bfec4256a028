"""The log of a step says what it does, every few seconds."""

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from lakehouse import progress
from lakehouse.dagster import (
    LakehouseIOManager,
    LakehouseResource,
    chunk_asset,
    chunk_partitions,
    logging_progress,
    replace_chunks,
    replace_each_chunk,
    table_metadata,
)

SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC"))])
DAYS = chunk_partitions("day", "2013-01-01", "2013-02-01")
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Heard(logging.Handler):
    """Remembers lines, and says when the first one with a text has come."""

    def __init__(self, wanted: str = "") -> None:
        super().__init__()
        self.lines: list[str] = []
        self._wanted = wanted
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        if self._wanted in self.lines[-1]:
            self.came.set()


@pytest.fixture
def address(tmp_path: Path) -> dict[str, str]:
    return {"catalog": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path / "warehouse")}


def logger_of(heard: Heard) -> logging.Logger:
    made = logging.Logger("heard", logging.INFO)
    made.addHandler(heard)
    return made


def test_what_runs_is_logged_again_and_again_and_how_it_ended() -> None:
    heard = Heard("6 of 10 rows (60 %)")
    with logging_progress(logger_of(heard), every_seconds=0.01), progress.step("append trips", "rows", 10) as step:
        step.advance(6)
        assert heard.came.wait(60)
        step.advance(4)
    assert heard.lines[-1].startswith("append trips: 10 of 10 rows in ")
    assert not [one for one in threading.enumerate() if one.name == "lakehouse-progress" and not one.daemon]


def test_what_is_over_soon_is_not_logged_and_nothing_is_with_0_seconds() -> None:
    for seconds in (3600.0, 0.0):
        heard = Heard()
        with logging_progress(logger_of(heard), every_seconds=seconds), progress.step("append trips", "rows") as step:
            step.advance(6)
        assert heard.lines == []


def test_a_block_in_another_one_leaves_it_as_it_is() -> None:
    outer, inner = Heard("append"), Heard()
    with (
        logging_progress(logger_of(outer), every_seconds=0.01),
        logging_progress(logger_of(inner), every_seconds=0.01),
        progress.step("append trips", "rows"),
    ):
        assert outer.came.wait(60)
    assert inner.lines == []


def slow_rows(day: str, heard: Heard) -> pa.RecordBatchReader:
    """One row, and an end that comes when the log has said something of it."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"at": [datetime.fromisoformat(day).replace(tzinfo=UTC)]}, schema=SCHEMA)
        assert heard.came.wait(60), "the log said nothing"

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


@pytest.fixture
def heard() -> Iterator[Heard]:
    """What steps log, as it comes; what is waited for is a line of the rows, not of the chunks that they are for."""
    made = Heard(" rows")
    logger = dg.get_dagster_logger()
    logger.addHandler(made)
    yield made
    logger.removeHandler(made)


@pytest.mark.parametrize("each", [False, True], ids=["together", "one by one"])
def test_a_step_that_replaces_chunks_logs_it(address: dict[str, str], heard: Heard, each: bool) -> None:
    @chunk_asset(partitions_def=DAYS, output_required=not each)
    def events(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> Any:
        with lakehouse.get_lake(spark=False) as lake:
            table = lake.create_table("events", SCHEMA, time="at")
            if each:
                return replace_each_chunk(context, table, lambda _: slow_rows("2013-01-05", heard))
            return replace_chunks(context, table, slow_rows("2013-01-05", heard))

    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize(
            [events],
            instance=instance,
            partition_key="2013-01-05",
            resources={"lakehouse": LakehouseResource(**address, progress_seconds=0.01)},
            run_config=QUIET,
        )
        logged = [one.user_message for one in instance.all_logs(done.run_id) if one.step_key == "events"]
    assert any(line.startswith("replace events: 1 rows in ") for line in logged)
    if each:
        assert any(line.startswith("replace events: 0 of 1 chunks") for line in logged)


def test_outputs_of_the_io_manager_are_logged(address: dict[str, str]) -> None:
    heard = Heard(" rows")

    @dg.logger  # type: ignore[arg-type]
    def listener(_: dg.InitLoggerContext) -> logging.Logger:
        return logger_of(heard)

    @chunk_asset(partitions_def=DAYS, metadata=table_metadata(time="at"))
    def events() -> pa.RecordBatchReader:
        return slow_rows("2013-01-05", heard)

    defs = dg.Definitions(
        assets=[events],
        resources={"io_manager": LakehouseIOManager(**address, progress_seconds=0.01)},
        loggers={"listener": listener},
    )
    job = defs.resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(partition_key="2013-01-05", run_config={"loggers": {"listener": {}}})
    assert done.success
    assert any("replace events: 1 rows in " in line for line in heard.lines)
