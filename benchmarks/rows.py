"""Row-level writes: deletes and upserts against a plain scan, and beside a compaction that loops.

    python benchmarks/rows.py [--rows 5000000] [--spark]

A scan reads two columns and groups by one: ``SELECT y % 10, sum(x), count(*) ... GROUP BY y % 10``.

Every figure of a scan is a ratio to the scan of the same table before the first delete, taken in turn with it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from figures import keep

import lakehouse

SCHEMA = "ts TIMESTAMP NOT NULL, id BIGINT NOT NULL, x DOUBLE, y BIGINT"
MONTH_US = 30 * 86_400_000_000
START_US = 1_356_998_400_000_000
ROUNDS = 3


def rows(ids: np.ndarray[Any, Any], total: int, seed: int = 1) -> pa.Table:
    """Rows with these ids, spread over thirty days in order of them."""
    random = np.random.default_rng(seed)
    times = pa.array(START_US + ids * (MONTH_US // total), pa.timestamp("us", "UTC"))
    columns = [times, pa.array(ids), random.random(len(ids)), random.integers(0, 1000, len(ids))]
    return pa.table(columns, names=["ts", "id", "x", "y"])


def timed(run: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratio(run: Callable[[], Any], base: Callable[[], Any], times: int = 9) -> float:
    """The least time of a call over that of another, taken in turn."""
    pairs = [(timed(run), timed(base)) for _ in range(times)]
    return min(one for one, _ in pairs) / min(other for _, other in pairs)


def scans(lake: Any, total: int, engine: str) -> dict[str, float]:
    """Scans under row and key tombstones, and the writes that leave them."""
    table = lake.create_table("t", SCHEMA, time="ts", primary_key=["id"])
    clean = table.append(rows(np.arange(total, dtype=np.int64), total)).version
    found: dict[str, float] = {}

    def scan(as_of: Any = None) -> Any:
        made = table.scan(columns=["x", "y"], as_of=as_of)
        if engine == "spark":
            return made.to_spark().selectExpr("y % 10 AS g", "x").groupBy("g").agg({"x": "sum", "g": "count"}).collect()
        return made.to_duckdb().aggregate("y % 10, sum(x), count(*)", "y % 10").fetchall()

    def base() -> Any:
        return scan(clean)

    def chosen(data: pa.Table) -> Any:
        return lake.spark.createDataFrame(data) if engine == "spark" else data

    base()
    table.delete("y = 1000", engine=engine)
    table.upsert(chosen(rows(np.arange(2, dtype=np.int64), total)))
    table.resolve()
    found["delete of 0.1 % scattered, s"] = timed(lambda: table.delete("y = 3", engine=engine))
    scan()
    found["scan with 0.1 % deleted, ratio"] = ratio(scan, base)
    found["delete of 15,000 scattered, s"] = timed(lambda: table.delete("y >= 10 AND y < 13", engine=engine))
    found["scan with 0.4 % deleted, ratio"] = ratio(scan, base)
    few = np.random.default_rng(5).choice(total, 10_000, replace=False).astype(np.int64)
    data = chosen(rows(few, total, seed=2))
    found["upsert of 10,000 keys, s"] = timed(lambda: table.upsert(data))
    found["first scan after it, s"] = timed(scan)
    found["scan after it, ratio"] = ratio(scan, base)
    found["resolve, s"] = timed(table.resolve)
    found["scan after resolve, ratio"] = ratio(scan, base)
    found["compaction, s"] = timed(table.compact)
    scan()
    found["scan after compaction, ratio"] = ratio(scan, base)
    other = np.random.default_rng(6).choice(total, 10_000, replace=False).astype(np.int64)
    source = chosen(rows(other, total, seed=3))
    found["merge of 10,000 keys, s"] = timed(
        lambda: table.merge(source, ["id"], when_matched_update=True, engine=engine)
    )
    return found


def deletes_beside_compaction(lake: Any) -> dict[str, float]:
    """200 deletes from 16 threads while compactions loop: how many succeed."""
    table = lake.create_table("beside", SCHEMA, time="ts", primary_key=["id"])
    for part in range(10):
        table.append(rows(np.arange(part * 10_000, part * 10_000 + 10_000, dtype=np.int64), 100_000))
    done, failed, compactions, stopped = [], [], [], threading.Event()

    def compact() -> None:
        while not stopped.is_set():
            try:
                compactions.append(table.compact() is not None)
            except lakehouse.errors.LakehouseError as error:
                failed.append(error)

    def delete(number: int) -> None:
        try:
            done.append(table.delete(f"id = {number * 37}").rows_deleted)
        except lakehouse.errors.LakehouseError as error:
            failed.append(error)

    looping = threading.Thread(target=compact)
    looping.start()
    took = timed(lambda: list(ThreadPoolExecutor(16).map(delete, range(200))))
    stopped.set()
    looping.join()
    left = table.scan().count()
    assert left == 100_000 - sum(done), (left, sum(done))
    return {
        "deletes of 200 that succeed beside compactions": len(done),
        "failures of deletes and compactions": len(failed),
        "compactions meanwhile": sum(compactions),
        "deletes a second": 200 / took,
    }


def during_compaction(lake: Any, total: int) -> dict[str, float]:
    """What 1,000 deletes by key that land during a compaction add to its time and to its commit's.

    Both are processes with a processor of their own, as if they were on two machines, so that what is measured is what
    they do to each other and not that they share one.
    """
    alone, beside, commits, landed = [], [], [], []
    for turn in range(2 * ROUNDS):
        table = lake.create_table(f"during_{turn}", SCHEMA, time="ts", primary_key=["id"])
        ids = np.arange(total, dtype=np.int64)
        for half in (ids[::2], ids[1::2]):
            table.append(rows(half, total))
        deletes = 1000 * (turn % 2)
        parts = [apart(lake, table.name, "compact", 0, 0), apart(lake, table.name, "delete", deletes, 1)]
        for part in parts:
            part.stdout.readline()
        for part in parts:
            part.stdin.write("go\n")
            part.stdin.flush()
        compacted, deleted = (json.loads(part.communicate()[0]) for part in parts)
        assert table.scan().count() == total - deletes
        (beside if deletes else alone).append(compacted["run"])
        if deletes:
            commits.append(compacted["commit"])
            landed.append(deleted["times"])
        lake.drop_table(table.name)
    during = [np.mean(np.array(times) < run) for times, run in zip(landed, beside, strict=True)]
    return {
        "compaction's run, s": statistics.median(alone),
        "its run beside 1,000 deletes, ratio": statistics.median(beside) / statistics.median(alone),
        "of the deletes, landed during it": float(np.mean(during)),
        "its commit after 1,000 deletes, ms": statistics.median(commits) * 1000,
    }


def apart(lake: Any, table: str, what: str, count: int, processor: int) -> subprocess.Popen[str]:
    """A part of `during_compaction` as a process on one processor; it reports when ready and begins on a signal."""
    mine = sorted(os.sched_getaffinity(0))
    given = (lake.catalog.address, lake.warehouse, table, what, count, mine[processor % len(mine)])
    command = [sys.executable, __file__, "--part", *map(str, given)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_part(catalog: str, warehouse: str, name: str, what: str, count: str, processor: str) -> dict[str, Any]:
    """Compact, or delete so many keys one by one: the seconds of each, deletes' from the start."""
    os.sched_setaffinity(0, {int(processor)})
    with lakehouse.connect(catalog, warehouse) as lake:
        table = lake.table(name)
        keys = [pa.table({"id": [number * 97]}) for number in range(int(count))]
        op = table.begin_compaction() if what == "compact" else None
        print("ready", flush=True)
        sys.stdin.readline()
        started = time.perf_counter()
        if op is not None:
            return {"run": timed(op.run), "commit": timed(op.commit)}
        times = []
        for key in keys:
            table.delete_keys(key)
            times.append(time.perf_counter() - started)
        return {"times": times}


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--spark", action="store_true", help="also by Spark")
    parser.add_argument("--part", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(run_part(*options.part)))
        return 0
    results: dict[str, dict[str, float]] = {}
    for engine in ("duckdb", "spark") if options.spark else ("duckdb",):
        with (
            tempfile.TemporaryDirectory() as folder,
            lakehouse.connect(f"sqlite:///{folder}/c.db", f"{folder}/w") as lake,
        ):
            results[engine] = scans(lake, options.rows, engine)
            if engine == "duckdb":
                results["beside"] = deletes_beside_compaction(lake)
                results["during"] = during_compaction(lake, options.rows * 2)
    for group, figures in results.items():
        sys.stdout.write(f"{group}\n" + "".join(f"  {name:50s} {value:10.3f}\n" for name, value in figures.items()))
    keep(__file__, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
