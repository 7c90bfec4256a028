"""Streams into tables: rows in are rows visible, once, whatever is lost of a checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakehouse
from lakehouse.errors import CheckpointMismatch
from lakehouse.streaming import changes as applying
from lakehouse.testing.faults import armed, fail, on_count
from lakehouse.testing.rows import DDL, KEYED, arrow, many, values

NOW = {"availableNow": True}


class Files:
    """A folder whose files are a stream, one a batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark, self._folder, self._count = spark, folder, 0
        folder.mkdir()

    def add(self, *parts: pa.Table) -> None:
        for part in parts:
            waiting = self._folder / f".{self._count:05d}"
            pq.write_table(part, waiting)
            waiting.rename(self._folder / f"{self._count:05d}.parquet")
            self._count += 1

    def stream(self, ddl: str = DDL) -> Any:
        reader = self._spark.readStream.schema(ddl).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self._folder))


@pytest.fixture
def lake(sqlite_url: str, warehouse: Path) -> Iterator[Any]:
    with lakehouse.connect(sqlite_url, warehouse) as opened:
        yield opened


@pytest.fixture
def table(lake: Any) -> Any:
    return lake.create_table("flights", DDL, time="time", cluster_by=["client"])


@pytest.fixture
def files(spark: Any, tmp_path: Path) -> Files:
    return Files(spark, tmp_path / "source")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "check point ü"


@pytest.fixture
def run(files: Files, place: Path) -> Callable[..., Any]:
    """Write what is there and end."""

    def once(table: Any, **given: Any) -> Any:
        query = lakehouse.streaming.write(files.stream(), table, **{"checkpoint": place, "trigger": NOW, **given})
        query.awaitTermination()
        return query

    return once


def numbered(spark: Any, rows: int = 10) -> Any:
    """A source whose offsets say all: ten rows a batch, an hour apart from 2013-01-05 on."""
    stream = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", 2)
        .option("startTimestamp", 1357344000000)
        .option("advanceMillisPerBatch", 3_600_000)
        .load()
    )
    return stream.selectExpr("timestamp AS time", "'a' AS client", "value")


def take(spark: Any, table: Any, place: Path, batches: int, **given: Any) -> Any:
    """Write some batches of a source without an end."""
    query = lakehouse.streaming.write(numbered(spark), table, checkpoint=place, **given)
    before = len(table.log())
    while len(table.log()) < before + batches and query.isActive:
        query.awaitTermination(0.05)
    query.stop()
    return query


def test_batches_become_commits_with_their_offsets(table: Any, files: Files, run: Any, place: Path) -> None:
    files.add(many(10), many(10, value=10), many(5, value=20))
    query = run(table)
    assert values(table) == list(range(25))
    log = list(reversed(table.log()))
    assert [one.txn for one in log] == [(query.id, 0), (query.id, 1), (query.id, 2)]
    assert [one.properties["stream.offsets"] for one in log] == [
        (place / "offsets" / str(batch)).read_text() for batch in range(3)
    ]
    run(table)
    assert len(table.log()) == 3


def test_a_batch_whose_commit_file_is_gone_is_recognised(table: Any, files: Files, run: Any, place: Path) -> None:
    files.add(many(10), many(10, value=10))
    run(table)
    for name in ("1", ".1.crc"):
        (place / "commits" / name).unlink()
    files.add(many(10, value=20))
    run(table)
    assert values(table) == list(range(30))


def test_a_table_is_given_by_name_in_the_lake_of_the_environment(
    table: Any, files: Files, run: Any, monkeypatch: pytest.MonkeyPatch, sqlite_url: str, warehouse: Path
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CATALOG", sqlite_url)
    monkeypatch.setenv("LAKEHOUSE_WAREHOUSE", str(warehouse))
    files.add(many(10))
    run("flights")
    assert values(table) == list(range(10))
    with pytest.raises(lakehouse.TableNotFound, match="flights"):
        run("departures")


def test_a_batch_that_was_planned_anew_with_other_rows_is_read_as_the_table_has_it(
    table: Any, files: Files, run: Any, place: Path
) -> None:
    files.add(many(10), many(10, value=10))
    run(table)
    for folder in ("commits", "offsets"):  # a power cut takes back what was not flushed
        for name in ("1", ".1.crc"):
            (place / folder / name).unlink()
    files.add(many(10, value=20))
    run(table)
    assert values(table) == list(range(30))


def test_a_checkpoint_that_is_ahead_of_its_table_is_rolled_back(lake: Any, files: Files, run: Any, place: Path) -> None:
    table = lake.create_table("flights", DDL, time="time")
    files.add(many(10), many(10, value=10), many(10, value=20))
    points = {"write.before": on_count(2, fail())}
    with pytest.raises(Exception, match="injected"), armed(points):
        run(table)
    assert values(table) == list(range(10))
    (place / "commits" / "1").write_text('v1\n{"nextBatchWatermarkMs":0}')  # says done what the table has not
    run(table)
    assert values(table) == list(range(30))


@pytest.mark.parametrize(
    "point", ["begin.registered", "write.before", "write.after", "commit.before", "commit.recorded", "commit.after"]
)
def test_a_batch_that_fails_anywhere_is_written_once(table: Any, files: Files, run: Any, point: str) -> None:
    files.add(many(10), many(10, value=10))
    with pytest.raises(Exception, match="injected"), armed({point: on_count(2, fail())}):
        run(table)
    run(table)
    assert values(table) == list(range(20))


def test_a_lost_checkpoint_is_an_error_and_made_again_on_request(spark: Any, table: Any, place: Path) -> None:
    first = take(spark, table, place, 3)
    count = len(values(table))
    shutil.rmtree(place)
    with pytest.raises(CheckpointMismatch, match='resume="table"'):
        lakehouse.streaming.write(numbered(spark), table, checkpoint=place)
    second = take(spark, table, place, 2, resume="table")
    assert second.id == first.id
    assert values(table) == list(range(len(values(table))))
    assert len(values(table)) > count


def test_a_named_stream_goes_on_elsewhere(spark: Any, table: Any, tmp_path: Path) -> None:
    take(spark, table, tmp_path / "one", 2, stream_id="zürich's")
    with pytest.raises(CheckpointMismatch, match="lost"):
        lakehouse.streaming.write(numbered(spark), table, checkpoint=tmp_path / "two", stream_id="zürich's")
    take(spark, table, tmp_path / "two", 2, stream_id="zürich's", resume="table")
    assert values(table) == list(range(len(values(table))))
    assert {one.txn[0] for one in table.log()} == {"zürich's"}


def test_a_source_whose_checkpoint_holds_more_is_not_resumed(table: Any, files: Files, run: Any, place: Path) -> None:
    files.add(many(10))
    run(table)
    shutil.rmtree(place)
    with pytest.raises(CheckpointMismatch, match="list of the files"):
        run(table, resume="table")
    assert values(table) == list(range(10))


def test_a_checkpoint_of_another_table_or_stream_is_refused(lake: Any, table: Any, files: Files, run: Any) -> None:
    files.add(many(10))
    run(table)
    other = lake.create_table("other", DDL, time="time")
    with pytest.raises(CheckpointMismatch, match="another"):
        run(other)
    with pytest.raises(CheckpointMismatch, match="another"):
        run(table, stream_id="mine")
    assert (values(table), values(other)) == (list(range(10)), [])


def test_upserts_keep_the_newest_of_a_source_with_duplicates(lake: Any, files: Files, run: Any) -> None:
    table = lake.create_table("flights", KEYED, time="time", primary_key=["value"])
    twice = [("2013-01-05T01:00", "a", 1), ("2013-01-05T02:00", "b", 1), ("2013-01-05T03:00", "c", 2)]
    files.add(arrow(twice), arrow([*twice, ("2013-01-06", "d", 1)]))
    run(table, mode="upsert", sequence_by="time")
    assert [(one["value"], one["client"]) for one in table.scan().to_arrow().sort_by("value").to_pylist()] == [
        (1, "d"), (2, "c"),
    ]  # fmt: skip


def test_a_batch_replaces_the_chunks_that_it_has_rows_in(table: Any, files: Files, run: Any) -> None:
    table.append(arrow([("2013-01-05", "a", 1), ("2013-01-06", "a", 2), ("2013-01-07", "a", 3)]))
    files.add(arrow([("2013-01-07T10:00", "b", 4), ("2013-01-05T10:00", "b", 5)]))
    run(table, mode="replace")
    assert values(table) == [2, 4, 5]
    files.add(arrow([("2013-01-07T11:00", "a", 6)]))
    run(table, mode="replace", keys="client")
    assert values(table) == [2, 4, 5, 6]


def test_several_tables_are_written_in_one_transaction(lake: Any, table: Any, files: Files, run: Any) -> None:
    other = lake.create_table("other", DDL, time="time")

    def both(transaction: Any, rows: Any) -> None:
        transaction.table("flights").append(rows)
        transaction.table("other").append(rows.where("value % 2 = 0"))

    files.add(many(10), many(10, value=10))
    with pytest.raises(Exception, match="injected"), armed({"commit.after": on_count(2, fail())}):
        run(table, mode=both)
    run(table, mode=both)
    assert (values(table), values(other)) == (list(range(20)), list(range(0, 20, 2)))
    assert [one.version for one in table.log()] == [one.version for one in other.log()]


def test_changes_of_batches_are_applied_in_their_order(
    lake: Any, files: Files, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("people", "value BIGINT NOT NULL, client STRING", primary_key=["value"])
    later, sooner = ("2013-01-06", "gone", 1), ("2013-01-05", "a", 1)
    files.add(arrow([later, ("2013-01-05", "b", 2)]), arrow([sooner, ("2013-01-07", "c", 2)]))
    monkeypatch.setattr(applying, "PART_ROWS", 1)  # each batch is read in two parts
    changes = {"mode": "apply_changes", "keys": "value", "sequence_by": "time", "deletes": "client = 'gone'"}
    with pytest.raises(Exception, match="injected"), armed({"commit.after": on_count(2, fail())}):
        run(table, **changes)
    run(table, **changes)
    assert table.scan().to_arrow().to_pylist() == [{"value": 2, "client": "c"}]


def test_the_newest_mark_of_a_stream_outlives_the_log(lake: Any, files: Files, run: Any, place: Path) -> None:
    table = lake.create_table("flights", DDL, time="time", properties={"txn_retention": "0s"})
    files.add(many(10), many(10, value=10))
    run(table)
    table.append(many(1, value=99), txn=("other", 1))
    table.append(many(1, value=100))
    lake.expire(keep_last=1)
    (place / "commits" / "1").unlink()
    (place / "commits" / ".1.crc").unlink()
    run(table)
    assert values(table) == [*range(20), 99, 100]
    table.append(many(1, value=99), txn=("other", 1))  # no stream's, so forgotten
    assert values(table) == [*range(20), 99, 99, 100]


@pytest.mark.parametrize(
    "given", [{"mode": "overwrite"}, {"mode": "append", "keys": "client"}, {"resume": True}, {"mode": "upsert"},
              {"mode": "replace", "keys": "value"}],
)  # fmt: skip
def test_arguments_that_cannot_be_are_refused_before_spark_starts(table: Any, run: Any, given: Any) -> None:
    with pytest.raises(lakehouse.InvalidInput):
        run(table, **given)


def test_the_format_writes_batches_once_under_the_name_of_their_stream(
    spark: Any, lake: Any, table: Any, files: Files, place: Path, sqlite_url: str, warehouse: Path
) -> None:
    lakehouse.register(spark)
    files.add(many(10), many(10, value=10))
    options = {"table": "flights", "catalog": sqlite_url, "warehouse": str(warehouse)}

    def run(**more: str) -> None:
        writer = files.stream().writeStream.format("lakehouse").options(**options, **more)
        writer.option("checkpointLocation", str(place)).trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(Exception, match="stream_id"):
        run()
    shutil.rmtree(place, ignore_errors=True)
    run(stream_id="orders")
    for name in ("1", ".1.crc"):
        (place / "commits" / name).unlink()
    run(stream_id="orders")
    assert values(table) == list(range(20))
    assert [one.txn for one in table.log()] == [("orders", 1), ("orders", 0)]
    assert list(lake.operations()) == []
