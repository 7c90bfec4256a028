"""How Spark writes: one pass, no shuffle, no sort, only the files of winning attempts, and clear errors."""

from __future__ import annotations

import datetime as dt
import errno
import os
import pickle
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.sql import functions as F  # noqa: N812

from lakehouse.engine import WriteTarget
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.engine.spark import SparkEngine, to_spark_type
from lakehouse.engine.spark.settings import held
from lakehouse.engine.task import TaskWriter
from lakehouse.errors import InternalError, InvalidInput
from lakehouse.storage.files import Folder
from tests.unit.engine.harness import Store, comparable, spec_of
from tests.unit.engine.test_duckdb import SCHEMA, UTC, events

Framed = Callable[[pa.Table], Any]
TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


def last_plan(spark: Any) -> str:
    """The physical plan of the last query that ran, as Spark's own page would show it."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    plan: str = executions.apply(executions.size() - 1).physicalPlanDescription()
    return plan


def test_ingest_is_one_pass_without_shuffle_and_sort(
    spark: Any, store: Store, engine: SparkEngine, tmp_path: Path, frame: Framed
) -> None:
    frame(events(5000)).write.parquet(str(tmp_path / "source"))
    rows = spark.read.parquet(str(tmp_path / "source"))
    for spec in (spec_of(SCHEMA), spec_of(SCHEMA, properties={"ragged": True}), spec_of(SCHEMA, grain="month")):
        assert sum(segment.rows for segment in store.write(engine, rows, spec)) == 5000
        plan = last_plan(spark)
        assert "MapInArrow" in plan
        assert "Exchange" not in plan
        assert "Sort" not in plan


def test_files_are_filled_to_the_target_and_split_by_chunk(
    store: Store, engine: SparkEngine, duck: DuckDBEngine, frame: Framed
) -> None:
    rows = events(2000)
    spec = spec_of(SCHEMA, properties={"target_rows": 150})
    segments = store.write(engine, frame(rows).coalesce(1), spec)
    assert max(segment.rows for segment in segments) == 150
    assert {segment.start.date() for segment in segments} == {segment.max["ts"].date() for segment in segments}
    assert len(segments) <= 2000 // 150 + 5
    ragged = spec_of(SCHEMA, properties={"target_rows": 1500, "ragged": True})
    assert [one.rows for one in store.write(engine, frame(rows).coalesce(1), ragged)] == [1500, 500]
    assert comparable(duck.read(store.query(spec, segments)).to_arrow()) == comparable(rows)


def test_only_data_files_stay_and_their_footers_say_what_they_are(
    store: Store, engine: SparkEngine, frame: Framed
) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(engine, frame(events(100)), spec, batch=3)
    on_disk = {str(path.relative_to(store.warehouse)) for path in store.warehouse.rglob("*") if path.is_file()}
    assert on_disk == {segment.path for segment in segments}
    for segment in segments:
        _, operation, batch, _ = segment.path.split("/")
        assert batch == "00003"
        footer = pq.read_metadata(store.warehouse / segment.path)
        schema = footer.schema.to_arrow_schema()
        assert [field.metadata[b"PARQUET:field_id"] for field in schema] == [b"1", b"2", b"3", b"4"]
        assert footer.metadata[b"lakehouse.table"].decode() == spec.folder
        assert footer.metadata[b"lakehouse.operation"].decode() == operation
        inside = segment.interval
        assert footer.metadata[b"lakehouse.interval_us"].decode() == f"{inside.start_us},{inside.end_us}"
        assert footer.schema.column(0).physical_type == "INT64"


class _Attempt:
    """A task attempt, as its worker sees it."""

    def taskAttemptId(self) -> int:  # noqa: N802
        return 7

    def partitionId(self) -> int:  # noqa: N802
        return 0

    def attemptNumber(self) -> int:  # noqa: N802
        return 0

    def stageId(self) -> int:  # noqa: N802
        return 0


@pytest.fixture
def in_task(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[[pa.Table], dict[str, Any]]:
    """Store rows as a task does, in this process; return its report."""
    monkeypatch.setattr(TaskContext, "get", _Attempt)

    def run(rows: pa.Table) -> dict[str, Any]:
        (report,) = TaskWriter(WriteTarget(spec_of(SCHEMA), store.warehouse / "op" / "00000", "op"))(rows.to_batches())
        (row,) = report.to_pylist()
        return row

    return run


def test_every_file_and_folder_is_flushed(
    store: Store, engine: SparkEngine, frame: Framed, in_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    genuine = os.fsync

    def watched(handle: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{handle}").readlink()))
        genuine(handle)

    monkeypatch.setattr(os, "fsync", watched)
    report = in_task(events(100))
    folder, written = store.warehouse / "op" / "00000", pickle.loads(report["written"])
    assert {str(folder / one.name) for one in written} | {str(folder), str(store.warehouse)} <= synced
    assert (len(written), report["error"]) == (5, None)
    for segment in store.write(engine, frame(events(100)), spec_of(SCHEMA)):
        path = (store.warehouse / segment.path).parent.parent
        while path != store.warehouse.parent:
            assert str(path) in synced, path
            path = path.parent


def test_a_failed_fsync_is_an_error_of_the_task(in_task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = os.fsync

    def refuse(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink().suffix == ".parquet":
            raise OSError(errno.EIO, "Input/output error")
        genuine(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    report = in_task(events(100))
    assert pickle.loads(report["written"]) == []
    assert pickle.loads(report["error"]).errno == errno.EIO


def test_an_error_of_the_disk_in_a_task_fails_the_write_as_itself(
    store: Store, engine: SparkEngine, frame: Framed, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = Folder.make_folder

    def blocked(home: Folder, folder: Path) -> None:
        genuine(home, folder.parent)
        folder.write_bytes(b"no folder")

    monkeypatch.setattr(Folder, "make_folder", blocked)
    with pytest.raises(OSError, match="00000"):
        store.write(engine, frame(events(100)), spec_of(SCHEMA))


def test_a_file_with_fewer_rows_than_were_given_is_an_error_of_the_task(
    in_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = pq.ParquetWriter.write_table
    monkeypatch.setattr(pq.ParquetWriter, "write_table", lambda self, rows, **rest: genuine(self, rows[1:], **rest))
    error = pickle.loads(in_task(events(100))["error"])
    assert isinstance(error, InternalError)
    assert (error.expected, error.found) == (100, 95)


def test_files_of_attempts_that_lost_are_deleted(
    store: Store, engine: SparkEngine, frame: Framed, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = Folder.make_folder

    def left_behind(home: Folder, folder: Path) -> None:
        genuine(home, folder)
        (folder / "99999-00000.parquet").write_bytes(b"PAR1")

    monkeypatch.setattr(Folder, "make_folder", left_behind)
    segments = store.write(engine, frame(events(100)), spec_of(SCHEMA))
    on_disk = {str(path.relative_to(store.warehouse)) for path in store.warehouse.rglob("*") if path.is_file()}
    assert on_disk == {segment.path for segment in segments}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda rows: rows.drop("client"), "missing column.*column=client"),
        (lambda rows: rows.withColumn("extra", F.lit(1)), "unknown column.*column=extra"),
        (lambda rows: rows.withColumnRenamed("client", "CLIENT"), "missing column.*column=client"),
        (lambda rows: rows.select("*", "client"), "twice.*column=client"),
        (lambda rows: rows.withColumn("client", F.lit("1")), "column=client expected=int64 found=string"),
        (lambda rows: rows.withColumn("value", F.lit(True)), "column=value expected=double found=bool"),
        (lambda rows: rows.withColumn("ts", F.col("id")), "column=ts"),
        (lambda rows: rows.withColumn("value", F.expr("INTERVAL 1 DAY")), "column=value"),
    ],
)
def test_wrong_columns_are_refused_before_any_job(
    spark: Any, store: Store, engine: SparkEngine, frame: Framed, change: Any, named: str
) -> None:
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    with pytest.raises(InvalidInput, match=named):
        store.write(engine, change(frame(events(10))), spec_of(SCHEMA))
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == jobs


NOON = dt.datetime(2013, 1, 5, 12, tzinfo=dt.UTC)
HELD = [
    ("CAST(5 AS TINYINT)", pa.int64(), 5),
    ("200L", pa.int16(), 200),
    ("3.0D", pa.int32(), 3),
    ("9007199254740992L", pa.float64(), float(1 << 53)),
    ("0.5D", pa.float32(), 0.5),
    ("CAST('NaN' AS DOUBLE)", pa.float32(), float("nan")),
    ("CAST('-Infinity' AS DOUBLE)", pa.float32(), float("-inf")),
    ("5", pa.decimal128(5, 2), Decimal("5.00")),
    ("5.10BD", pa.decimal128(20, 4), Decimal("5.1000")),
    ("5.00BD", pa.int64(), 5),
    ("5.10BD", pa.decimal128(3, 1), Decimal("5.1")),
    ("NULL", pa.string(), None),
    ("CAST(NULL AS BIGINT)", pa.int8(), None),
    ("DATE '2013-01-05'", UTC, NOON.replace(hour=0)),
    ("TIMESTAMP_NTZ '2013-03-10 02:30:00.123456'", UTC, dt.datetime(2013, 3, 10, 2, 30, 0, 123456, tzinfo=dt.UTC)),
    ("TIMESTAMP_NTZ '0001-01-01 00:00:00'", UTC, dt.datetime(1, 1, 1, tzinfo=dt.UTC)),
    ("DATE '9999-12-31'", pa.timestamp("us"), dt.datetime(9999, 12, 31, tzinfo=dt.UTC).replace(tzinfo=None)),
    ("array(1, 2)", pa.list_(pa.int64()), [1, 2]),
    ("named_struct('a', 1)", pa.struct([("a", pa.float64())]), {"a": 1.0}),
    ("map('a', CAST(NULL AS INT))", pa.map_(pa.string(), pa.int32()), [("a", None)]),
]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_that_a_column_holds_are_stored_exactly(
    spark: Any, store: Store, engine: SparkEngine, duck: DuckDBEngine, ansi: str
) -> None:
    schema = pa.schema([("ts", UTC), *((f"c{number}", kind) for number, (_, kind, _) in enumerate(HELD))])
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        columns = ", ".join(f"{written} AS c{number}" for number, (written, _, _) in enumerate(HELD))
        rows = spark.sql(f"SELECT timestamp_micros(0) AS ts, {columns}")
        spec = spec_of(schema)
        (row,) = duck.read(store.query(spec, store.write(engine, rows, spec))).to_arrow().to_pylist()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    expected = [repr(pa.array([value], kind)[0].as_py()) for _, kind, value in HELD]
    assert [repr(row[f"c{number}"]) for number in range(len(HELD))] == expected


REFUSED = [
    ("128", pa.int8()),
    ("1.5D", pa.int64()),
    ("CAST('NaN' AS DOUBLE)", pa.int64()),
    ("1e300D", pa.int64()),
    ("9223372036854775808D", pa.int64()),
    ("CAST(2147483648 AS FLOAT)", pa.int32()),
    ("2147483647", pa.float32()),
    ("9223372036854775807L", pa.float64()),
    ("9007199254740993L", pa.float64()),
    ("9223372036854775807L", pa.float32()),
    ("1e300D", pa.float32()),
    ("1000", pa.decimal128(4, 2)),
    ("5.123BD", pa.decimal128(5, 2)),
    ("5.1BD", pa.int64()),
    ("99999999999999999999BD", pa.int64()),
]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_that_a_column_cannot_hold_fail_the_write_by_name(
    spark: Any, store: Store, engine: SparkEngine, ansi: str
) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for written, kind in REFUSED[ansi == "true" :: 2]:  # a job each, so half of them in either mode
            rows = spark.sql(
                f"SELECT timestamp_micros(id) AS ts, IF(id = 1, {written}, NULL) AS `odd one` FROM range(3)"
            )
            with pytest.raises(InvalidInput, match="column=odd one"):
                store.write(engine, rows, spec_of(pa.schema([("ts", UTC), ("odd one", kind)])))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_null_times_and_null_keys_are_counted(store: Store, engine: SparkEngine, frame: Framed) -> None:
    rows = frame(events(10))
    with pytest.raises(InvalidInput, match=r"null in a column.*column=ts count=3"):
        store.write(engine, rows.withColumn("ts", F.when(F.col("id") < 7, F.col("ts"))), spec_of(SCHEMA))
    spec = spec_of(SCHEMA, primary_key="client")
    with pytest.raises(InvalidInput, match="column=client count="):
        store.write(engine, rows.withColumn("client", F.lit(None).cast("bigint")), spec)


def test_a_time_outside_the_calendar_is_refused(spark: Any, store: Store, engine: SparkEngine) -> None:
    rows = spark.sql("SELECT timestamp_micros(253402300800000000) AS ts")
    with pytest.raises(InvalidInput, match="years 1 to 9999"):
        store.write(engine, rows, spec_of(pa.schema([("ts", UTC)])))


def test_an_error_of_the_frame_itself_comes_through(store: Store, engine: SparkEngine, frame: Framed) -> None:
    with pytest.raises(Exception, match="the user's own error"):
        store.write(
            engine, frame(events(10)).withColumn("value", F.raise_error("the user's own error")), spec_of(SCHEMA)
        )


def test_a_streaming_frame_is_refused(spark: Any, store: Store, engine: SparkEngine) -> None:
    with pytest.raises(InvalidInput, match="writeStream"):
        store.write(engine, spark.readStream.format("rate").load(), spec_of(SCHEMA))


def test_text_with_a_collation_is_a_string(spark: Any, store: Store, engine: SparkEngine) -> None:
    rows = spark.sql("SELECT timestamp_micros(0) AS ts, 'x' COLLATE UTF8_LCASE AS text")
    (segment,) = store.write(engine, rows, spec_of(pa.schema([("ts", UTC), ("text", pa.string())])))
    assert segment.max["text"] == "x"


def test_settings_are_held_by_the_first_and_put_back_by_the_last(spark: Any) -> None:
    before = spark.conf.get(TIMESTAMPS)
    entered, leave = threading.Barrier(4), threading.Event()
    seen: list[str] = []

    def hold() -> None:
        with held(spark, {TIMESTAMPS: "TIMESTAMP_MICROS", "spark.sql.shuffle.partitions": "7"}):
            entered.wait(30)
            leave.wait(30)
            seen.append(spark.conf.get(TIMESTAMPS))

    threads = [threading.Thread(target=hold) for _ in range(3)]
    for thread in threads:
        thread.start()
    entered.wait(30)
    assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
    leave.set()
    for thread in threads:
        thread.join()
    assert seen == ["TIMESTAMP_MICROS"] * 3
    assert spark.conf.get(TIMESTAMPS) == before
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("lakehouse.settings.held", None) is None


def test_threads_write_side_by_side(store: Store, engine: SparkEngine, duck: DuckDBEngine, frame: Framed) -> None:
    spec = spec_of(SCHEMA)
    written: list[Any] = []

    def work(seed: int) -> None:
        written.extend(store.write(engine, frame(events(100, seed=seed)), spec))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert duck.read(store.query(spec, written)).to_arrow().num_rows == 400
    assert engine.session.conf.get("lakehouse.settings.held", None) is None


def test_rows_that_lie_in_the_driver_are_stored_there_like_those_of_tasks(
    spark: Any, store: Store, engine: SparkEngine, duck: DuckDBEngine, frame: Framed
) -> None:
    rows, spec = events(200), spec_of(SCHEMA)
    here = spark.createDataFrame(rows, to_spark_type(rows.schema))
    local = store.write(engine, here, spec)
    assert {segment.path.rpartition("/")[2].split("-")[0] for segment in local} == {"00000"}
    tasks = store.write(engine, frame(rows), spec)
    read = [duck.collect(store.query(spec, one)).sort_by("value") for one in (local, tasks)]
    assert read[0].equals(read[1])
    assert len(local) < len(tasks)


def test_a_value_that_a_column_cannot_hold_is_named_for_rows_in_the_driver_too(
    spark: Any, store: Store, engine: SparkEngine
) -> None:
    rows = spark.sql("SELECT timestamp'2013-01-05 00:00:00' AS ts, 3000000000 AS client, 1 AS value")
    schema = pa.schema(
        [pa.field("ts", pa.timestamp("us", "UTC"), False), ("client", pa.int32()), ("value", pa.int64())]
    )
    with pytest.raises(InvalidInput, match="column=client"):
        store.write(engine, rows, spec_of(schema))
