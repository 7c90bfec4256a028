"""The table service at work: a month of small appends with it on, and a plan of a million segments.

``python benchmarks/maintain.py`` appends 1,000 times 1,000 rows over 30 simulated days (the log's times are moved back
by a day after each) while a service runs beside; then it measures segments a chunk, a scan against a freshly written
table, bytes rewritten for each byte appended, and how long appends took against a lake without a service. The plan is
that of a new process over 100,000 segments (``--full``: 1,000,000), of which nothing is worth doing, and again in the
same process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import catalog as scale
import numpy as np
import pyarrow as pa
from figures import keep
from sqlalchemy import text

import lakehouse
from lakehouse.catalog.catalog import Catalog
from lakehouse.core.task import TaskKind
from lakehouse.service import Limits, Service
from lakehouse.service.planning import plan_table

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
DAYS, APPENDS, ROWS = 30, 1_000, 1_000
SCHEMA = "at TIMESTAMP NOT NULL, client BIGINT, value DOUBLE, note STRING"
A_DAY_EARLIER = text("UPDATE commit_log SET committed_us = committed_us - 86400000000")


def rows(day: int, number: int) -> pa.Table:
    """A thousand rows of one day."""
    chance = np.random.default_rng(number)
    start = int((FIRST + day * DAY).timestamp() * 1_000_000)
    at = np.sort(chance.integers(start, start + 86_400_000_000, ROWS))
    client = chance.integers(0, 1000, ROWS)
    return pa.table(
        {
            "at": pa.array(at, pa.timestamp("us", tz="UTC")),
            "client": client,
            "value": chance.random(ROWS),
            "note": [f"note {one % 50}" for one in client],
        }
    )


def month(lake: Any) -> tuple[Any, list[float]]:
    """The appends of a month, and how long each took."""
    table = lake.create_table("events", SCHEMA, time="at", cluster_by=["client"])
    took = []
    for number in range(APPENDS):
        day = number * DAYS // APPENDS
        if number and day > (number - 1) * DAYS // APPENDS:
            lake.catalog._database.run(lambda connection: connection.execute(A_DAY_EARLIER))
        data = rows(day, number)
        started = time.perf_counter()
        table.append(data)
        took.append(time.perf_counter() - started)
    return table, took


def rest(lake: Any) -> None:
    """Two days later, with nothing written: the service does what is left."""
    for _ in range(2):
        lake.catalog._database.run(lambda connection: connection.execute(A_DAY_EARLIER))
        lake.plan_tasks()
        lake.maintain()


def timed(run: Callable[[], Any], times: int = 15) -> float:
    """The median of some runs in seconds, after one that is not counted."""
    run()
    took = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        took.append(time.perf_counter() - started)
    return statistics.median(took)


def ratio(run: Callable[[], Any], base: Callable[[], Any]) -> float:
    """How much longer one takes than the other, in turn."""
    return statistics.median(timed(run, 5) / timed(base, 5) for _ in range(3))


def live(folder: str) -> dict[str, float]:
    """A month with the service on, against the same without, and against a fresh table."""
    with lakehouse.connect(f"sqlite:///{folder}/off.db", f"{folder}/off") as lake:
        _, alone = month(lake)
        fresh = lake.create_table("fresh", SCHEMA, time="at", cluster_by=["client"])
        fresh.append(lake.table("events").scan().to_arrow().sort_by("at"))

        stop, ended = threading.Event(), []
        with lakehouse.connect(f"sqlite:///{folder}/on.db", f"{folder}/on") as kept:
            other = lakehouse.connect(f"sqlite:///{folder}/on.db", f"{folder}/on")
            service = threading.Thread(
                target=Service(other.session, Limits(), every_seconds=0.05, on_end=ended.append).run, args=(stop,)
            )
            service.start()
            table, beside = month(kept)
            stop.set()
            service.join()
            rest(kept)
            other.close()
            by_chunk = [one.segments for one in table.chunks()]
            assert table.scan().count() == APPENDS * ROWS
            grouped = "count(*), sum(value), max(client)"
            scan = ratio(
                lambda: table.scan().to_duckdb().aggregate(grouped).fetchall(),
                lambda: fresh.scan().to_duckdb().aggregate(grouped).fetchall(),
            )
            small = ratio(
                lambda: lake.table("events").scan().to_duckdb().aggregate(grouped).fetchall(),
                lambda: fresh.scan().to_duckdb().aggregate(grouped).fetchall(),
            )
            return {
                "segments a chunk, at most": max(by_chunk),
                "scan over a fresh table's": round(scan, 2),
                "scan without the service over a fresh table's": round(small, 2),
                "bytes rewritten for each appended": round(table.amplification().ratio, 2),
                "compactions": sum(one.kind is TaskKind.COMPACT for one in kept.tasks()),
                "append beside it, median ms": round(statistics.median(beside) * 1000, 2),
                "append without it, median ms": round(statistics.median(alone) * 1000, 2),
            }


def plan(segments: int) -> dict[str, float]:
    """What a plan of so many segments takes, in a new process and again."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/catalog.db"
        filled = Catalog(url)
        scale.fill(filled, scale.make_table(filled, "big"), segments)
        filled.close()
        command = [sys.executable, __file__, "--plan", url, folder]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    first, again, proposed = json.loads(printed.splitlines()[-1])
    size = f"{segments:,} segments"
    return {
        f"plan of {size}, new process, s": round(first, 2),
        f"plan of {size}, again, s": round(again, 2),
        f"tasks proposed for {size}": proposed,
    }


def plan_once(url: str, folder: str) -> None:
    """Plan in this process, twice, and print how long it took."""
    took = []
    with lakehouse.connect(url, f"{folder}/warehouse") as lake:
        table = lake.table("big")
        for _ in range(2):
            started = time.perf_counter()
            found = plan_table(lake.session, table)
            took.append(time.perf_counter() - started)
    print(json.dumps([*took, len(found.proposals)]))


def main() -> int:
    """Measure, and print a line a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--plan", nargs=2, metavar=("URL", "FOLDER"))
    chosen = parser.parse_args()
    if chosen.plan:
        plan_once(*chosen.plan)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        figures = live(folder)
    figures |= plan(1_000_000 if chosen.full else 100_000)
    for name, figure in figures.items():
        print(f"{figure:>12,}  {name}")
    keep(__file__, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
