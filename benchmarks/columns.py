"""What changes of columns cost: one on a table of many segments, and scans over segments of many schemas.

``python benchmarks/columns.py`` fills a catalog with 10,000 segments (``--full``: 1,000,000) and prints the median
time of adding, renaming and dropping a column there, on SQLite and PostgreSQL. Then it stores the same rows twice, in
``--schemas`` appends each: in one table a column is renamed or another one added before each of them, and once a
third one widened, in the other one nothing changes. It prints the median of scans that sum these columns, in turn,
and their ratio, in process and, with ``--spark``, by Spark. The sums are compared.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from catalog import fill, make_table
from figures import keep
from rich.console import Console
from rich.table import Table

import lakehouse
from lakehouse.testing.postgres import PostgresServer

FIRST_US = 1_704_067_200_000_000
"""2024-01-01."""
DAY_US = 86_400_000_000
DEFAULT, WIDENED = 7, 9
CHANGES = 20
"""How often each change is timed."""


def changes(url: str, folder: str, segments: int) -> dict[str, float]:
    """Median milliseconds of each change on a table of so many segments."""
    with lakehouse.connect(url, folder) as lake:
        lake.session.require_home()  # the files of its segments are nowhere
        fill(lake.catalog, make_table(lake.catalog, "t"), segments)
        table = lake.table("t")
        works: dict[str, Callable[[int], object]] = {
            "add": lambda turn: table.add_column(f"c{turn}", "INT", default=turn),
            "rename": lambda turn: table.rename_column(f"c{turn}", f"d{turn}"),
            "drop": lambda turn: table.drop_column(f"d{turn}"),
        }
        return {name: median(work) for name, work in works.items()}


def median(work: Callable[[int], object]) -> float:
    """Milliseconds of a work, done with the numbers from 0 on; the first is not counted."""
    found = []
    for turn in range(CHANGES + 1):
        started = time.perf_counter()
        work(turn)
        found.append(1000 * (time.perf_counter() - started))
    return statistics.median(found[1:])


def rows_of(part: int, rows: int, names: dict[str, str]) -> pa.Table:
    """Rows of one day, with columns of some names."""
    random = np.random.default_rng(part)
    columns = {
        "ts": pa.array(np.arange(rows) * (DAY_US // rows) + FIRST_US + part * DAY_US, pa.timestamp("us", tz="UTC")),
        "value": pa.array(random.integers(0, 4_000, rows) / 4.0),
        "number": pa.array(random.integers(0, 1_000, rows).astype(np.int32)),
        "other": pa.array(random.normal(size=rows)),
    }
    return pa.table({names.get(name, name): column for name, column in columns.items()})


def stored(lake: Any, schemas: int, rows: int) -> tuple[Any, Any]:
    """A table under one schema, and one with the same rows under many."""
    ddl = "ts TIMESTAMP, value DOUBLE, number {}, other DOUBLE"
    more = ", ".join(f"c{part} INT" for part in range(2, schemas, 3))
    one = lake.create_table("one", f"{ddl.format('BIGINT')}, {more}" if more else ddl.format("BIGINT"), time="ts")
    many = lake.create_table("many", ddl.format("INT"), time="ts")
    name, added = "value", []
    for part in range(schemas):
        match part % 3:
            case 1:
                many.rename_column(name, f"value{part}")
                name = f"value{part}"
            case 2:
                many.add_column(f"c{part}", "INT", default=DEFAULT)
                added.append(f"c{part}")
            case 0 if part == WIDENED:
                many.widen_column("number", "BIGINT")
        many.append(rows_of(part, rows, {"value": name}))
        plain = rows_of(part, rows, {})
        for held in range(2, schemas, 3):
            plain = plain.append_column(f"c{held}", pa.array(np.full(rows, DEFAULT, np.int32)))
        one.append(plain)
    many.rename_column(name, "value")
    return one, many


def scans(lake: Any, schemas: int, rounds: int, *, spark: bool) -> dict[str, float]:
    """Median seconds of a scan of each table, and their ratio."""
    added = "".join(f", sum(c{part})" for part in range(2, schemas, 3))
    text = "SELECT sum(value), sum(number), sum(other)" + added + " FROM {}"
    engine = "spark" if spark else "duckdb"

    def scan(table: str) -> Any:
        found = lake.sql(text.format(table), engine=engine)
        return [tuple(one) for one in found.collect()] if spark else found.fetchall()

    times: dict[str, list[float]] = {"one": [], "many": []}
    for turn in range(rounds + 2):
        results = {}
        for table, taken in times.items():
            started = time.perf_counter()
            results[table] = scan(table)
            if turn > 1:
                taken.append(time.perf_counter() - started)
        assert np.allclose(*(np.array(found[0], dtype=float) for found in results.values())), results
    found = {f"{table}, s": statistics.median(taken) for table, taken in times.items()}
    return {**found, "many to one": found["many, s"] / found["one, s"]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="1,000,000 segments")
    parser.add_argument("--schemas", type=int, default=20)
    parser.add_argument("--rows", type=int, default=250_000, help="of each schema")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--spark", action="store_true")
    asked = parser.parse_args()
    segments = 1_000_000 if asked.full else 10_000
    figures: dict[str, float] = {}
    result = Table("work", "figure")
    with tempfile.TemporaryDirectory() as folder:
        figures |= {
            f"SQLite, {name}, ms": one
            for name, one in changes(f"sqlite:///{folder}/catalog.db", f"{folder}/w", segments).items()
        }
        with PostgresServer(fsync=True) as server:
            url = server.url(server.create_database())
            figures |= {f"PostgreSQL, {name}, ms": one for name, one in changes(url, f"{folder}/p", segments).items()}
        with lakehouse.connect(f"sqlite:///{folder}/rows.db", f"{folder}/rows") as lake:
            stored(lake, asked.schemas, asked.rows)
            for spark in (False, True) if asked.spark else (False,):
                how = "Spark" if spark else "in process"
                for name, one in scans(lake, asked.schemas, asked.rounds, spark=spark).items():
                    figures[f"{how}, {asked.schemas} schemas, {name}"] = one
    for name, one in figures.items():
        result.add_row(name, f"{one:.3f}")
    Console().print(f"{segments:,} segments; scans of {asked.schemas * asked.rows:,} rows", result)
    keep(__file__, figures)


if __name__ == "__main__":
    main()
