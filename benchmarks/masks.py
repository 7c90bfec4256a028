"""Reads under row and key tombstones, each beside the same read without them in the same run.

``python benchmarks/masks.py`` writes 5,000,000 rows over 30 days, to a table by day and to one of a single segment, and
sums one column and averages another: clean, with 0.1 % of the rows deleted at random, and under a key tombstone of
10,000 random keys. It prints the shortest time of several rounds, all in turn, and its ratio to the clean read;
``--spark`` does so for Spark too. Every read is checked to leave out as many rows as it should.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from figures import keep
from pyroaring import BitMap64
from rich.console import Console
from rich.table import Table

from lakehouse.core.plan import plan_read
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine import Query, WriteTarget
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.schema import define_table
from lakehouse.storage.files import Folder
from lakehouse.storage.footer import read_footers

DAYS = 30
DAY_US = 86_400_000_000
FIRST_US = 1_704_067_200_000_000
"""2024-01-01."""
KEYS = 10_000
TOTALS = ("count(*)", "sum(value)", "avg(other)")


def make_rows(rows: int) -> pa.Table:
    """Events in order of time, their ids at random."""
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


def store(folder: Path, rows: pa.Table, *, is_ragged: bool) -> Query:
    """A table of these rows, as a query of all of them."""
    properties = {"ragged": is_ragged}
    spec = define_table("t", rows.schema, time="ts", primary_key="id", folder=folder.name, properties=properties)
    names = [one.name for one in DuckDBEngine().write(rows, WriteTarget(spec, folder / "1", "1"))]
    segments, first = [], 0
    for number, one in enumerate(read_footers(folder / "1", names, spec)):
        there = replace(one, path=f"{folder.name}/1/{one.path}")
        segments.append(there.added(number, ordinal=1, first_row_id=first))
        first += one.rows
    return Query(plan_read(segments, [], version=1), spec, Folder(folder.parent))


def under(query: Query, kind: Any, matched: BitMap64 | pa.Table) -> Query:
    """The query under one tombstone."""
    tombstone = Tombstone(id=-1, kind=kind, ordinal=2)
    plan = plan_read(query.plan.segments, [tombstone], version=2)
    return replace(query, plan=plan, sets={-1: matched})


def in_process(query: Query) -> tuple[Any, ...]:
    """The totals by DuckDB."""
    relation = _duckdb.read(query).relation()
    return tuple(relation.aggregate(", ".join(TOTALS)).fetchall()[0])


_duckdb = DuckDBEngine()


def spark_totals() -> Callable[[Query], tuple[Any, ...]]:
    """The totals by Spark."""
    from lakehouse.engine.spark import SparkEngine  # noqa: PLC0415 - only where it is asked for
    from lakehouse.engine.spark.session import start_session  # noqa: PLC0415

    os.environ["LAKEHOUSE_SPARK_MASTER"] = "local[2]"
    engine = SparkEngine(start_session({"spark.driver.memory": "3g"}))
    return lambda query: tuple(engine.read(query).selectExpr(*TOTALS).collect()[0])


def measure(
    result: Table,
    figures: dict[str, float],
    how: str,
    totals: Callable[[Query], tuple[Any, ...]],
    works: Any,
    rounds: int,
) -> None:
    """The shortest time of each work, all in turn, the first two rounds not counted."""
    best = dict.fromkeys(works, float("inf"))
    for turn in range(rounds + 2):
        for name, (query, expected) in works.items():
            started = time.perf_counter()
            found = totals(query)
            if turn > 1:
                best[name] = min(best[name], time.perf_counter() - started)
            assert found[0] == expected, (name, found, expected)
    clean = next(iter(best.values()))
    for name, seconds in best.items():
        result.add_row(how, name, f"{1000 * seconds:.0f}", f"{seconds / clean:.2f}")
        figures[f"{how}, {name}, to clean"] = seconds / clean
    result.add_section()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--spark", action="store_true")
    asked = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    random = np.random.default_rng(9)
    rows = make_rows(asked.rows)
    gone = BitMap64(random.choice(asked.rows, asked.rows // 1000, replace=False).astype(np.uint64))
    keys = pa.table({"id": random.choice(asked.rows, min(KEYS, asked.rows), replace=False)})
    ways = {"in process": in_process} | ({"Spark": spark_totals()} if asked.spark else {})
    result = Table("how", "read", "least ms", "to clean")
    figures: dict[str, float] = {}
    folder = Path(tempfile.mkdtemp())
    try:
        for is_ragged in (False, True):
            query = store(folder / str(is_ragged), rows, is_ragged=is_ragged)
            works = {
                "clean": (query, asked.rows),
                f"{len(gone):,} rows deleted": (under(query, "row", gone), asked.rows - len(gone)),
                f"{keys.num_rows:,} keys upserted": (under(query, "key", keys), asked.rows - keys.num_rows),
            }
            for how, totals in ways.items():
                measure(result, figures, f"{how}, {len(query.plan.segments)} segments", totals, works, asked.rounds)
    finally:
        shutil.rmtree(folder)
    Console().print(result)
    keep(__file__, figures)


if __name__ == "__main__":
    main()
