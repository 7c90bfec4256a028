"""Look-ups of one value among many segments, with an index of the column and without, and what making indexes takes.

    python benchmarks/indexes.py [--segments 1000] [--rows 1000 10000] [--spark]

Each segment holds ids at random, so that its bounds let every look-up through. A first look-up is by a process that has
just opened the lake and has planned once; later ones look for other ids. Data files are in the machine's cache.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from figures import keep
from rich.console import Console
from rich.table import Table

import lakehouse
from lakehouse.core.summary import SummaryKind
from lakehouse.operations.summarize import build_indexes, build_statistics, missing_indexes

SCHEMA = "ts TIMESTAMP NOT NULL, id BIGINT NOT NULL, name STRING, x DOUBLE"
START_US = 1_356_998_400_000_000
LOOK_UPS = 20


def timed(run: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def fill(table: Any, segments: int, rows: int) -> np.ndarray[Any, Any]:
    """So many segments of so many rows each, as one commit; the ids of every one."""
    random = np.random.default_rng(7)
    ids = random.permutation(segments * rows).astype(np.int64).reshape(segments, rows)
    with table.begin_append() as op:
        for some in ids:
            times = pa.array(START_US + random.integers(0, 86_400_000_000, rows), pa.timestamp("us", "UTC"))
            names = pa.array([f"customer {one:09d}" for one in some.tolist()])
            op.write(pa.table([times, pa.array(some), names, random.random(rows)], names=["ts", "id", "name", "x"]))
    return ids


def look_ups(table: Any, wanted: Any) -> tuple[float, float]:
    """The median time of a look-up, and how many files it opens."""
    seconds, files = [], []
    for one in wanted:
        scan = table.scan(where=f"id = {one}")
        seconds.append(timed(lambda scan=scan: scan.to_arrow()))  # type: ignore[misc]
        files.append(len(scan.plan().files))
        assert scan.to_arrow().num_rows == int(one >= 0), one
    return statistics.median(seconds), statistics.mean(files)


def measure(folder: Path, segments: int, rows: int, engine: str | None) -> dict[str, float]:
    """All figures of one size of segment."""
    found: dict[str, float] = {}
    url, warehouse = f"sqlite:///{folder}/catalog.db", folder / "warehouse"
    with lakehouse.connect(url, warehouse) as lake:
        table = lake.create_table("t", SCHEMA, time="ts", grain="month", properties={"index": "id, name"})
        ids = fill(table, segments, rows)
        random = np.random.default_rng(9)
        wanted = [int(random.choice(ids[random.integers(segments)])) for _ in range(LOOK_UPS)]
        table.scan(where="id < 0").to_arrow()
        seconds, found["without: files opened"] = look_ups(table, wanted[:5])
        found["without: look-up, ms"] = 1000 * seconds
        listed, _ = lake.catalog.live(table.spec, lake.head)
        if engine == "spark":
            lake.spark.range(1).count()
        seconds = timed(
            lambda: build_indexes(lake.session, table.spec, missing_indexes(lake.session, table.spec, listed), engine)
        )
        found["indexes of two columns, million values/s"] = 2 * segments * rows / seconds / 1e6
        held = lake.catalog.summaries.read(SummaryKind.INDEX, listed.ids.tolist())
        found["bytes a value"] = sum(one.bytes or len(one.content) for one in held) / (2 * segments * rows)
        seconds = timed(lambda: build_statistics(lake.session, table.spec, listed.ids.tolist(), engine))
        found["sketches of four columns, million values/s"] = 4 * segments * rows / seconds / 1e6
        found["statistics of all, ms"] = 1000 * timed(table.statistics)
        found["looking for what lacks an index, ms"] = 1000 * timed(
            lambda: missing_indexes(lake.session, table.spec, listed)
        )
    with lakehouse.connect(url, warehouse) as lake:
        table = lake.table("t")
        table.scan(where="id < 0").to_arrow()
        table.scan().plan()
        found["first look-up, ms"] = 1000 * timed(lambda: table.scan(where=f"id = {wanted[0]}").to_arrow())
        seconds, found["files opened"] = look_ups(table, wanted)
        found["look-up, ms"] = 1000 * seconds
        found["look-up, ratio to without"] = found["look-up, ms"] / found["without: look-up, ms"]
        plain = statistics.median(timed(lambda: table.scan(where="x >= 0").plan()) for _ in range(9))
        found["plan that asks no index, ms"] = 1000 * plain
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=1_000)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--spark", action="store_true")
    asked = parser.parse_args()
    found: dict[int, dict[str, float]] = {}
    for rows in asked.rows:
        with tempfile.TemporaryDirectory() as folder:
            found[rows] = measure(Path(folder), asked.segments, rows, "spark" if asked.spark else None)
    shown = Table(f"{asked.segments:,} segments", *(f"of {rows:,} rows" for rows in asked.rows))
    for name in next(iter(found.values())):
        shown.add_row(name, *(f"{of[name]:.3g}" for of in found.values()))
    Console().print(shown)
    keep(__file__, {f"of {rows:,} rows": figures for rows, figures in found.items()})


if __name__ == "__main__":
    sys.exit(main())
