"""Materializations side by side: of different cells they never wait for each other, of one cell they do."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.dagster import LakehouseResource, chunk_asset, chunk_partitions, replace_chunks

SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("client", pa.int64()), ("value", pa.int64())])
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
CELLS = chunk_partitions("day", "2013-01-01", "2013-02-01", keys={"client": [12, 77]})
FIRST = "12|2013-01-05"


class Meeting:
    """Rows that are given when everybody who is to be there has begun to write."""

    def __init__(self, parties: int) -> None:
        self.barrier = threading.Barrier(parties, timeout=60)

    def rows(self, client: int, day: str, value: int) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            self.barrier.wait()
            at = datetime.fromisoformat(day).replace(hour=7, tzinfo=UTC)
            yield pa.RecordBatch.from_pydict({"at": [at], "client": [client], "value": [value]}, schema=SCHEMA)

        return pa.RecordBatchReader.from_batches(SCHEMA, batches())


@pytest.fixture
def table(address: dict[str, str]) -> Iterator[lakehouse.Table]:
    """A table of the test's own."""
    with lakehouse.connect(**address) as lake:
        yield lake.create_table("events", SCHEMA, time="at", cluster_by=["client"])


@pytest.fixture
def start(address: dict[str, str]) -> Iterator[Callable[..., Future[Any]]]:
    """Materialize a cell in a thread of its own; ``wait_seconds`` is how long it waits for a lock."""
    with ThreadPoolExecutor(4) as pool:

        def run(meeting: Meeting, key: str, value: int, wait_seconds: float) -> Any:
            @chunk_asset(partitions_def=CELLS)
            def events(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> dg.MaterializeResult[None]:
                client, day = context.partition_key.split("|")
                with lakehouse.get_lake(spark=False) as lake:
                    return replace_chunks(context, lake.table("events"), meeting.rows(int(client), day, value))

            with dg.DagsterInstance.ephemeral() as instance:
                return dg.materialize(
                    [events],
                    instance=instance,
                    partition_key=key,
                    resources={"lakehouse": LakehouseResource(**address, wait_seconds=wait_seconds)},
                    run_config=QUIET,
                    raise_on_error=False,
                )

        yield lambda *given: pool.submit(run, *given)


@pytest.mark.parametrize("other", ["12|2013-01-06", "77|2013-01-05"], ids=["another chunk", "another key of one chunk"])
def test_two_runs_of_different_cells_write_at_the_same_time(
    other: str, start: Callable[..., Future[Any]], table: lakehouse.Table
) -> None:
    meeting = Meeting(2)  # both hold their locks when they meet: if one waited for the other, nobody would come
    runs = [start(meeting, key, 1, 0.0) for key in (FIRST, other)]
    assert [run.result(timeout=90).success for run in runs] == [True, True]
    assert table.scan().count() == 2
    assert len(table.log()) == 2


def test_two_runs_of_one_cell_go_one_after_the_other(start: Callable[..., Future[Any]], table: lakehouse.Table) -> None:
    with table.begin_replace("2013-01-05", keys={"client": 12}) as holder:
        refused = start(Meeting(1), FIRST, 1, 0.0).result(timeout=90)
        waiting = start(Meeting(1), FIRST, 2, 60.0)
        assert not refused.success
        assert "LockTimeout" in str(refused.failure_data_for_node("events"))
        assert not waiting.done()
        holder.abort()
    assert waiting.result(timeout=90).success
    assert table.scan().to_arrow()["value"].to_pylist() == [2]
