"""One lake through one kind of Spark, in a process of its own: ``python child.py cluster|connect <folder>``.

Prints one line of JSON for the test that started it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import lakehouse

ROWS = 20_000
DDL = "ts TIMESTAMP NOT NULL, id BIGINT, client BIGINT, chance DOUBLE"


def open_session(kind: str, folder: Path) -> SparkSession:
    """A session on two worker processes, or one that talks to a Connect server."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(kind)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.log.level": "ERROR",
    }
    if kind == "connect":
        builder = builder.remote("local[2]")
    else:
        builder = builder.master("local-cluster[2,1,1024]")
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.local.dir": str(folder / "local"),
        }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def failing_once(marker: str) -> Any:
    """Rows pass through; the second task's first attempt dies after it has handed out most of them."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - runs in a worker

        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == 1 and context.attemptNumber() == 0:
            Path(marker).write_text("failed once")
            raise RuntimeError("this attempt fails on purpose")

    return pass_on


def source(spark: SparkSession) -> Any:
    """Rows over three days, one column of which is another one in every attempt."""
    return spark.range(ROWS, numPartitions=4).select(
        F.timestamp_micros(F.col("id") * 12_960_000).alias("ts"),
        F.col("id"),
        (F.col("id") % 10).alias("client"),
        F.rand().alias("chance"),
    )


def statements(lake: lakehouse.Lake, spark: SparkSession) -> dict[str, Any]:
    """What a query gives, now and when it is run again after a commit; the views it leaves; what another zone gives."""
    query = "SELECT count(*), max(hour(ts)) FROM events WHERE client = 3 AND ts < '1970-01-01 12:00'"
    found: dict[str, Any] = {}
    try:
        found["at_once"] = [list(row) for row in lake.sql(query, engine="spark").collect()]
    except lakehouse.InvalidInput as error:
        found["zone"] = str(error)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = lake.sql(query.replace("FROM events", "FROM events e"), engine="spark")
    found["first"] = [list(row) for row in frame.collect()]
    lake.sql("INSERT INTO events (ts, client) VALUES ('1970-01-01 11:00', 3)")
    found["again"] = [list(row) for row in frame.collect()]
    found["inserted"] = lake.sql(
        "INSERT INTO events SELECT * FROM events WHERE client = 3 AND id < 50", engine="spark"
    ).rows_added
    found["views"] = len(spark.catalog.listTables())
    return found


def changes(lake: lakehouse.Lake, spark: SparkSession) -> list[list[bool | int]]:
    """Rows and the sum of their ids, by both engines, after each of several row-level writes by Spark."""
    table = lake.create_table("changed", DDL.replace("id BIGINT", "id BIGINT NOT NULL"), time="ts", primary_key=["id"])
    rows = source(spark)
    table.append(rows)
    found = []
    for write in (
        lambda: table.delete("id % 100 = 7", engine="spark"),
        lambda: table.update({"client": "client + 1"}, "id < 100", engine="spark"),
        lambda: table.upsert(rows.where("id < 50")),
        lambda: table.delete_keys(rows.where("id < 20")),
        lambda: table.merge(rows.where("id < 40"), ["id"], when_matched_update={"client": "0"}, engine="spark"),
        table.resolve,
    ):
        write()
        frame, local = table.scan().to_spark(), table.scan().to_arrow()
        counted = frame.agg(F.count("id"), F.sum("id"), F.sum("client")).collect()[0]
        sums = [len(local), *(sum(local.column(name).to_pylist()) for name in ("id", "client"))]
        found.append([list(counted) == sums, len(local)])
    return found


def main(kind: str, folder: Path) -> dict[str, Any]:
    """Append, replace, read, and lose a file."""
    spark = open_session(kind, folder)
    lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", str(folder / "ware house"), spark=spark)
    table = lake.create_table("events", DDL, time="ts", cluster_by=["client"])
    marker = folder / "failed"
    rows = source(spark)
    schema = rows.schema
    if kind == "cluster":
        rows = rows.mapInArrow(failing_once(str(marker)), schema)
    table.append(rows)
    found: dict[str, Any] = {"failed_once": marker.exists()}
    counted = table.scan().to_spark().select(F.count("id"), F.countDistinct("id"), F.countDistinct("chance")).collect()
    found["appended"] = list(counted[0])
    found["in_process"] = table.scan().count()
    table.replace(source(spark).where("client = 3 AND id < 6000"), "1970-01-01", keys={"client": 3})
    where = "client = 3 AND date(ts) = '1970-01-01'"
    found["replaced"] = [table.scan(where=where).to_spark().count(), len(table.scan(where=where).to_arrow())]
    found["rows"] = [table.scan().to_spark().count(), table.scan().count()]
    try:
        table.append(source(spark).withColumn("client", F.lit("text")))
    except lakehouse.InvalidInput as error:
        found["wrong_type"] = str(error)
    try:
        table.append(source(spark).withColumn("client", F.col("chance")))
    except lakehouse.InvalidInput as error:
        found["wrong_value"] = str(error)
    found["settings"] = spark.conf.get("spark.sql.parquet.outputTimestampType", "INT96")
    found["sql"] = statements(lake, spark)
    found["changed"] = changes(lake, spark)
    victim = folder / "ware house" / table.segments()[0].path
    frame = table.scan().to_spark()
    victim.unlink()
    try:
        table.scan().to_spark()
    except lakehouse.SegmentUnreadable as error:
        found["missing"] = error.path == str(victim)
    try:
        frame.collect()
    except Exception as error:  # noqa: BLE001 - Spark's own, of several classes
        found["vanished"] = victim.name in str(error)
    lake.close()
    spark.stop()
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
