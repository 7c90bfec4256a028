"""Ingests on a Spark cluster into a bucket, beside Spark's own write of the same rows as plain Parquet.

``python benchmarks/cluster.py`` starts a master and two workers that share no folder, PostgreSQL and an object store,
all on loopback, and writes rows that the workers make themselves: into a table, and by ``DataFrame.write.parquet`` to
the same bucket by ``s3a``, in turn, ``--repeats`` times. Rows of one day, then rows of 30 days in shuffled order, which
Spark writes with ``partitionBy``. It prints the least and the median of each, and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lakehouse.engine.spark.stores import files_in_store
from lakehouse.testing.cluster import trial
from lakehouse.testing.postgres import PostgresServer

COLUMNS = "at TIMESTAMP, id BIGINT, value DOUBLE, payload STRING"
DAYS = 30


def frame(spark: Any, rows: int, days: int, tasks: int) -> Any:
    """Rows of some days, as many in each task, made where they are written."""
    return spark.range(0, rows, 1, tasks).selectExpr(
        f"timestamp_micros(1704067200000000 + id % {days} * 86400000000 + id * 86000000000 div {rows}) AS at",
        "id", "id * 0.25D AS value", "sha2(string(id), 224) AS payload",
    )  # fmt: skip


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> None:
    """Write in turn, and print a line for each kind of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--server", choices=["moto", "versitygw"], default="versitygw")
    asked = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="lakehouse-cluster-") as home,
        PostgresServer() as postgres,
        trial(Path(home), postgres, asked.server) as made,
    ):
        lake, spark = made.lake, made.lake.spark
        warehouse = lake.session.warehouse
        files = files_in_store(spark, warehouse, ())
        bucket = warehouse.address.replace("s3://", "s3a://")
        for days, tasks in ((1, 2), (DAYS, 2)):
            table = lake.create_table(f"rows_{days}", COLUMNS, time="at")
            rows = frame(spark, asked.rows, days, tasks)
            taken: dict[str, list[float]] = {"ours": [], "plain": []}
            for number in range(asked.repeats + 1):
                place = f"{bucket}-plain/{days}/{number}"
                plain = rows.write if days == 1 else rows.selectExpr("*", "date(at) AS day").write.partitionBy("day")
                once = {
                    "plain": seconds(lambda plain=plain, place=place: plain.options(**files.options).parquet(place)),
                    "ours": seconds(lambda table=table, rows=rows: table.append(rows)),
                }
                if number:  # the first one starts Python workers and loads classes
                    for name, one in once.items():
                        taken[name].append(one)
            if table.count() != asked.rows * (asked.repeats + 1):
                raise SystemExit(f"{table.count()} rows, not {asked.rows * (asked.repeats + 1)}")
            least = {name: min(held) for name, held in taken.items()}
            middle = {name: statistics.median(held) for name, held in taken.items()}
            sys.stdout.write(
                f"{asked.rows:,} rows of {days} days: ours {least['ours']:.2f} s ({middle['ours']:.2f}), plain "
                f"{least['plain']:.2f} s ({middle['plain']:.2f}), ratio {least['ours'] / least['plain']:.2f} "
                f"({middle['ours'] / middle['plain']:.2f})\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
