"""What it costs to be sure of bytes: writing files with checksums, and reading them at each level of ``verify``.

``python benchmarks/verify.py`` writes 3,000,000 rows over 30 days to a table, with checksums and without, in turn, and
then reads them in process (``--spark``: by Spark too), all columns and one, at each level, in turn, from files that the
operating system still has in memory. It prints the least processor time of several rounds, all threads together, and
its ratio to that of the least: writing without checksums, reading under ``size``. Under ``content`` files are looked
through once a process; ``first`` is that read, with nothing remembered. ``small`` files are of 2,000 rows each, where
the footer is a great part.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from figures import keep
from rich.console import Console
from rich.table import Table

import lakehouse
from lakehouse.engine import Query, WriteTarget
from lakehouse.engine import write as writing
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.schema import define_table
from lakehouse.storage import verify as verifying

DAYS = 30
DAY_US = 86_400_000_000
FIRST_US = 1_704_067_200_000_000
"""2024-01-01."""
LEVELS = ("size", "pages", "content", "first")


def make_rows(rows: int) -> pa.Table:
    """Events in order of time."""
    random = np.random.default_rng(7)
    payload = random.bytes(10 * rows).hex()
    columns = {
        "ts": pa.array(np.arange(rows) * (DAYS * DAY_US // rows) + FIRST_US, pa.timestamp("us", tz="UTC")),
        "id": pa.array(random.permutation(rows)),
        "value": pa.array(random.integers(0, 4_000, rows) / 4.0),
        "other": pa.array(random.normal(size=rows)),
        "payload": pa.array([payload[start : start + 20] for start in range(0, 20 * rows, 20)]),
    }
    return pa.table(columns)


class Unsummed:
    """A sink that writes and makes no checksum."""

    checksum = b""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=256 << 10)
        self.write, self.flush, self.close = self._file.write, self._file.flush, self._file.close

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._file.closed

    def end_blocks(self) -> bytes:
        """No blocks."""
        return b""


def writes(rows: pa.Table, rounds: int) -> dict[str, float]:
    """Processor seconds of writing all rows, with checksums and without."""
    spec = define_table("t", rows.schema, time="ts", folder="t")
    summed = writing.HashedFile

    def once(sink: Any) -> None:
        folder = Path(tempfile.mkdtemp(prefix="lakehouse-bench-"))
        writing.HashedFile = sink  # type: ignore[misc]
        try:
            DuckDBEngine().write(rows, WriteTarget(spec, folder, "1"))
        finally:
            writing.HashedFile = summed  # type: ignore[misc]
            shutil.rmtree(folder)

    return shortest({"without": lambda: once(Unsummed), "with": lambda: once(summed)}, rounds)


def shortest(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least processor seconds of each of some works, which take turns."""
    found = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            began = time.process_time()
            work()
            found[name] = min(found[name], time.process_time() - began)
    return found


def reads(query: Query, read: Callable[[Query], object], rounds: int) -> dict[str, float]:
    """Processor seconds of a read at each level."""

    def at(level: str) -> Callable[[], object]:
        def work() -> object:
            if level == "first":
                verifying._verified._held.clear()
            return read(replace(query, verify="content" if level == "first" else level))

        return work

    return shortest({level: at(level) for level in LEVELS}, rounds)


def shown(title: str, found: dict[str, dict[str, float]]) -> Table:
    """Seconds, and ratios to the first of each row."""
    table = Table("what", *next(iter(found.values())), title=title)
    for name, seconds in found.items():
        least = next(iter(seconds.values()))
        table.add_row(name, *(f"{1000 * one:,.1f} ms ({one / least:.3f})" for one in seconds.values()))
    return table


def main() -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--spark", action="store_true")
    asked = parser.parse_args()
    rows = make_rows(asked.rows)
    written = {"write": writes(rows, max(3, asked.rounds // 3))}
    Console().print(shown("writing", written))
    folder = Path(tempfile.mkdtemp(prefix="lakehouse-bench-"))
    found: dict[str, dict[str, float]] = {}
    try:
        with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
            large, small = (lake.create_table(name, rows.schema, time="ts") for name in ("large", "small"))
            large.append(rows)
            for first in range(0, 200 * 2000, 2000):
                small.append(rows.slice(first, 2000))
            engine = lake.session.local_engine
            for name, table in (("large", large), ("small", small)):
                query = table.scan()._query("duckdb")
                found[f"{name}, sum of one column"] = reads(
                    replace(query, columns=("value",)),
                    lambda query: engine.read(query).relation().aggregate("sum(value)").fetchall(),
                    asked.rounds,
                )
                found[f"{name}, all columns"] = reads(query, engine.collect, asked.rounds)
            if asked.spark:
                spark = lake.session.spark_engine
                query = replace(large.scan()._query("spark"), columns=("value",))
                found["large by Spark, sum of one column"] = reads(
                    query, lambda query: spark.read(query).agg({"value": "sum"}).collect(), asked.rounds
                )
    finally:
        shutil.rmtree(folder)
    Console().print(shown("reading", found))
    ratios = {
        f"{name}, {level}": seconds[level] / next(iter(seconds.values()))
        for name, seconds in {**written, **found}.items()
        for level in list(seconds)[1:]
    }
    keep(__file__, {"ratios": ratios})


if __name__ == "__main__":
    main()
