"""Small writes: a 1,000-row append on each catalog, many appends at once, and how long ``import lakehouse`` takes.

``python benchmarks/append.py`` prints a table of medians and 95th percentiles. SQLite syncs every commit
and PostgreSQL too (``fsync=on``), on the disk of the temporary folder.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
from figures import keep
from rich.console import Console
from rich.table import Table

import lakehouse
from lakehouse.testing.postgres import PostgresServer
from lakehouse.testing.rows import SCHEMA, many

ROWS = 1000
THREADS, TURNS = 8, 25


def timed_ms(work: Callable[[int], object], rounds: int) -> list[float]:
    """Milliseconds of each of many rounds, after three to warm up."""
    for turn in range(3):
        work(-1 - turn)
    times = []
    for turn in range(rounds):
        started = time.perf_counter()
        work(turn)
        times.append(1000 * (time.perf_counter() - started))
    return times


class Result:
    """What was measured, as a table and by name."""

    def __init__(self) -> None:
        self.table = Table("work", "median", "p95", "unit")
        self.figures: dict[str, float] = {}

    def times(self, what: str, times_ms: list[float]) -> None:
        """Median and 95th percentile of some times."""
        median, most = statistics.median(times_ms), statistics.quantiles(times_ms, n=20)[-1]
        self.table.add_row(what, f"{median:.1f}", f"{most:.1f}", "ms")
        self.figures |= {f"{what}, median ms": median, f"{what}, p95 ms": most}

    def number(self, what: str, found: float, unit: str) -> None:
        """One number."""
        self.table.add_row(what, f"{found:.0f}", "", unit)
        self.figures[f"{what}, {unit}"] = found


def import_ms(rounds: int) -> list[float]:
    """Milliseconds that ``import lakehouse`` takes in fresh processes, the first of which is not counted."""
    code = "import time; s = time.perf_counter(); import lakehouse; print(1000 * (time.perf_counter() - s))"
    found = []
    for _ in range(rounds + 1):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        found.append(float(done.stdout))
    return found[1:]


def measure(result: Result, name: str, url: str, folder: Path, rounds: int) -> None:
    """Appends to one catalog: alone, from many threads, and from many processes."""
    data = many(ROWS, step_us=1000)
    with lakehouse.connect(url, folder / f"{name}-warehouse") as lake:
        table = lake.create_table("alone", SCHEMA, time="time")
        result.times(f"{ROWS}-row append, {name}", timed_ms(lambda _: table.append(data), rounds))
        shared = lake.create_table("shared", SCHEMA, time="time")
        first = shared.version
        started = time.perf_counter()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda _: [shared.append(data) for _ in range(TURNS)], range(THREADS)))
        seconds = time.perf_counter() - started
        made = shared.version - first
        result.number(f"{THREADS} x {TURNS} appends, {name}", made / seconds, "commits/s")
        result.number(f"of {THREADS * TURNS} appends visible, {name}", made, "versions")
        before = len(shared.log())
        rate = by_processes(url, folder / f"{name}-warehouse")
        result.number(f"the same by {THREADS} processes, {name}", rate, "commits/s")
        result.number(f"of those of processes visible, {name}", len(shared.log()) - before, "versions")


def by_processes(url: str, warehouse: Path) -> float:
    """Whole appends a second by processes that start together, each with its own files."""
    command = [sys.executable, __file__, "--writer", url, str(warehouse)]
    writers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(THREADS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    spans = [json.loads(writer.communicate()[0]) for writer in writers]
    return THREADS * TURNS / (max(end for _, end in spans) - min(begin for begin, _ in spans))


def write(url: str, warehouse: str) -> None:
    """One of the processes: appends on a signal, and prints when it began and ended."""
    data = many(ROWS, step_us=1000)
    with lakehouse.connect(url, warehouse) as lake:
        table, warm = lake.table("shared"), lake.table("alone")
        warm.append(data)
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.time()
        for _ in range(TURNS):
            table.append(data)
        print(json.dumps([began, time.time()]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--sqlite-only", action="store_true")
    parser.add_argument("--writer", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.writer:
        write(*chosen.writer)
        return
    result = Result()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = many(ROWS, step_us=1000)
        plain = timed_ms(lambda turn: pq.write_table(data, folder / f"plain{turn}.parquet"), chosen.rounds)
        result.times(f"{ROWS} rows as plain Parquet, no sync", plain)
        measure(result, "SQLite", f"sqlite:///{folder}/catalog.db", folder, chosen.rounds)
        if not chosen.sqlite_only:
            with PostgresServer(fsync=True) as server:
                measure(result, "PostgreSQL", server.url(server.create_database()), folder, chosen.rounds)
    result.times("import lakehouse", import_ms(10))
    Console().print(result.table)
    keep(__file__, result.figures)


if __name__ == "__main__":
    main()
