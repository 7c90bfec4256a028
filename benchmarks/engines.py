"""Ingest and full scan by Spark, each beside plain Parquet in the same run.

``python benchmarks/engines.py`` writes 5,000,000 rows over 30 days from Parquet files, in order of time (``--full``:
and at random), to a table by day, to a ragged one, and as plain Parquet with Spark's own codec and with the table's, in
turn; then it sums a column over the table and over the plain files. It prints medians and their ratios to plain
Parquet, beside the most that each may be. Only the ratios mean something on a machine that does other things too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from figures import keep
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import lakehouse

DAYS, FILES = 30, 10
DAY_US = 86_400_000_000
FIRST_US = 1_704_067_200_000_000
"""2024-01-01."""


def make_source(folder: Path, rows: int, *, is_ordered: bool) -> list[str]:
    """Parquet files of events: a time, a client, a key, a value and a payload of 40 characters."""
    folder.mkdir()
    random = np.random.default_rng(7)
    each = rows // FILES
    for number in range(FILES):
        ids = np.arange(number * each, (number + 1) * each)
        times = ids * (DAYS * DAY_US // rows) if is_ordered else random.integers(0, DAYS * DAY_US, each)
        payload = random.bytes(20 * each).hex()
        columns = {
            "ts": pa.array(times + FIRST_US, pa.timestamp("us", tz="UTC")),
            "client": pa.array(random.integers(0, 10_000, each)),
            "key": pa.array([f"k{one}" for one in ids.tolist()]),
            "value": pa.array(random.integers(0, 4_000, each) / 4.0),
            "payload": pa.array([payload[start : start + 40] for start in range(0, 40 * each, 40)]),
        }
        pq.write_table(pa.table(columns), folder / f"{number:02d}.parquet")
    return sorted(str(path) for path in folder.iterdir())


def interleaved(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each work, all in turn, the first round not counted."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            if turn:
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(found) for name, found in times.items()}


def report(result: Table, figures: dict[str, float], what: str, seconds: dict[str, float], most: float) -> None:
    """A line a work, with its ratio to the plain one of each codec; ours may be ``most`` times the first of those."""
    plain = [name for name in seconds if name.startswith("plain")]
    for name, found in seconds.items():
        figures[f"{what}, {name}, s"] = found
        if name not in plain:
            figures[f"{what}, {name}, to plain"] = found / seconds[plain[0]]
        ratios = [f"{found / seconds[base]:.2f}" for base in plain]
        result.add_row(what, name, f"{found:.3f}", *ratios[:1], "" if name in plain else f"{most:.2f}", *ratios[1:])
    result.add_section()


def measure(result: Table, spark: Any, folder: Path, rows: int, rounds: int, *, is_ordered: bool) -> dict[str, float]:
    """Ingest, then scan, of one source; the figures by name."""
    figures: dict[str, float] = {}
    kind = "in order of time" if is_ordered else "at random"
    frame = spark.read.parquet(*make_source(folder / "source", rows, is_ordered=is_ordered))
    lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", str(folder / "warehouse"), spark=spark)
    tables: list[lakehouse.Table] = []

    def ingest(**options: Any) -> None:
        arrow = pq.read_schema(next((folder / "source").iterdir()))
        table = lake.create_table(f"t{len(tables)}", arrow, time="ts", **options)
        table.append(frame)
        tables.append(table)

    plain = str(folder / "plain")
    works: dict[str, Callable[[], object]] = {
        "plain Parquet": lambda: frame.write.mode("overwrite").parquet(plain),
        "plain Parquet, zstd": lambda: frame.write.mode("overwrite").option("compression", "zstd").parquet(plain + "z"),
        "table by day": ingest,
        "ragged table": lambda: ingest(properties={"ragged": "true"}),
    }
    report(result, figures, f"ingest {rows:,} rows {kind}", interleaved(works, rounds), 1.10)
    total = "sum(value)"
    scans: dict[str, Callable[[], object]] = {
        "plain Parquet": lambda: spark.read.parquet(plain).selectExpr(total).collect(),
        "plain Parquet, zstd": lambda: spark.read.parquet(plain + "z").selectExpr(total).collect(),
        "table by day": lambda: tables[-2].read().selectExpr(total).collect(),
        "ragged table": lambda: tables[-1].read().selectExpr(total).collect(),
    }
    report(result, figures, f"full scan {kind}", interleaved(scans, 3 * rounds), 1.02)
    lake.close()
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="rows at random too")
    asked = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g").config("spark.sql.session.timeZone", "UTC")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    result = Table(
        "work", "how", "median s", "to plain", "at most", "to plain zstd", title=f"Spark {spark.version}, local[2]"
    )
    figures: dict[str, float] = {}
    folder = Path(tempfile.mkdtemp())
    try:
        for is_ordered in (True, False) if asked.full else (True,):
            place = folder / str(is_ordered)
            place.mkdir()
            figures |= measure(result, spark, place, asked.rows, asked.rounds, is_ordered=is_ordered)
    finally:
        spark.stop()
        shutil.rmtree(folder)
    Console().print(result)
    keep(__file__, figures)


if __name__ == "__main__":
    main()
