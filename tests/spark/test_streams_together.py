"""Streams beside others: the service, another stream, compactions, a replace, and the end of their process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import lakehouse
from lakehouse.core.task import TaskKind
from lakehouse.service import Limits, Service
from lakehouse.testing.faults import Gate, armed, fail, on_count
from lakehouse.testing.rows import DDL, KEYED, arrow, many, values
from lakehouse.testing.stream_trial import Place, trial
from tests.spark.test_stream_writes import NOW, Files

SOON = 120.0


def start(files: Files, table: Any, place: Path, **given: Any) -> Any:
    return lakehouse.streaming.write(files.stream(), table, checkpoint=place, trigger=NOW, **given)


@contextmanager
def beside(work: Any) -> Iterator[None]:
    """Run something that is given an event, until the block ends and sets that."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(SOON)
    assert not thread.is_alive()


def test_two_streams_into_one_table_of_which_one_fails_while_the_service_works(
    spark: Any, postgres_url: str, warehouse: Path, tmp_path: Path
) -> None:
    sources = [Files(spark, tmp_path / f"source {number}") for number in range(2)]
    places = [tmp_path / f"checkpoint {number}" for number in range(2)]
    compacted = threading.Event()

    def note(task: Any) -> None:
        if task.kind is TaskKind.COMPACT:
            compacted.set()

    fail_once = on_count(5, fail())

    def fail_in_streams() -> None:
        if "_loop" not in threading.current_thread().name:  # those of the service
            fail_once()

    with lakehouse.connect(postgres_url, warehouse) as lake:
        table = lake.create_table("flights", DDL, time="time", properties={"small_files": "2"})
        for number, source in enumerate(sources):
            source.add(*(many(5, value=100 * number + 5 * batch) for batch in range(4)))

        def run() -> list[bool]:
            queries = [start(source, table, place) for source, place in zip(sources, places, strict=True)]
            found = []
            for query in queries:
                try:
                    query.awaitTermination()
                except StreamingQueryException as error:
                    assert "injected" in str(error)  # noqa: PT017 - which of them fails is a matter of chance
                found.append(query.exception() is None)
            return found

        with beside(Service(lake.session, Limits(), every_seconds=0.05, on_end=note).run):
            with armed({"commit.recorded": fail_in_streams}):
                assert sorted(run()) == [False, True]
            assert compacted.wait(SOON)
            for number, source in enumerate(sources):
                source.add(many(5, value=100 * number + 20))
            assert run() == [True, True]
        assert values(table) == [*range(25), *range(100, 125)]
        lake.maintain()
        assert len(table.segments()) < 5  # of 10 batches
        assert values(table) == [*range(25), *range(100, 125)]


def test_upserts_under_a_looping_compaction_keep_the_newest_row_of_each_key(
    spark: Any, sqlite_url: str, warehouse: Path, tmp_path: Path
) -> None:
    files, rounds = Files(spark, tmp_path / "source"), []
    files.add(*(arrow([("2013-01-05", f"{batch}", key) for key in range(batch % 3, 6)]) for batch in range(8)))
    with lakehouse.connect(sqlite_url, warehouse) as lake, lakehouse.connect(sqlite_url, warehouse) as other:
        table = lake.create_table("flights", KEYED, time="time", primary_key=["value"])

        def compact(stop: threading.Event) -> None:
            while not stop.is_set():
                other.table("flights").compact()
                rounds.append(other.head)

        with beside(compact):
            start(files, table, tmp_path / "checkpoint", mode="upsert").awaitTermination()
        found = {one["value"]: one["client"] for one in table.scan().to_arrow().to_pylist()}
        assert found == {0: "6", 1: "7", 2: "7", 3: "7", 4: "7", 5: "7"}
        assert table.count() == 6
        assert len(set(rounds)) > 1


@pytest.mark.parametrize("is_replaced_first", [False, True])
def test_late_rows_stay_beside_a_replace_that_runs_whichever_commits_first(
    spark: Any, sqlite_url: str, warehouse: Path, tmp_path: Path, is_replaced_first: bool
) -> None:
    files = Files(spark, tmp_path / "source")
    files.add(arrow([("2013-01-05T12:00", "late", 7), ("2013-01-06", "new", 8)]))
    with lakehouse.connect(sqlite_url, warehouse) as lake:
        table = lake.create_table("flights", DDL, time="time")
        table.append(arrow([("2013-01-05", "old", 1), ("2013-01-06", "old", 2)]))
        replace = table.begin_replace("2013-01-05")
        replace.write(arrow([("2013-01-05", "replaced", 3)]))
        if is_replaced_first:
            gate = Gate()
            with armed({"commit.before": gate.hold}):
                query = start(files, table, tmp_path / "checkpoint")
                gate.wait_reached()
            replace.commit()
            gate.open()
            query.awaitTermination()
        else:
            start(files, table, tmp_path / "checkpoint").awaitTermination()
            assert values(table) == [1, 2, 7, 8]
            replace.commit()
        assert values(table) == [2, 3, 7, 8]


def test_a_driver_that_is_killed_within_a_batch_goes_on_and_writes_each_row_once(tmp_path: Path) -> None:
    assert trial(Place(tmp_path), ["commit.recorded"]) == "20 rows, each once; killed at commit.recorded"
