"""What each codec costs and saves: the size of files, reading all of their columns, and writing them.

``python benchmarks/codec_costs.py`` stores the same rows once with each codec of the property ``compression``. It
prints megabytes and the least processor time, all threads together, of an append of ``--appended`` rows in process and
of a scan that adds up every column: in process and, with ``--spark``, by Spark (its Java process counts too).
Codecs take turns in each round. ``cooling`` is what the service takes, once, to rewrite all rows with the first codec,
where it finds them worth it.
The rows are the flights of New York in 2013 and made up ones (``--rows``): numbers, text of few and of many values,
decimals. The totals of all codecs are compared. Files are in memory: a slow disk adds what it takes for their bytes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from figures import keep
from rich.console import Console
from rich.table import Table

import lakehouse
from lakehouse.demo.source import source_folder

CODECS = ("zstd", "lz4", "snappy")
FIRST_US = 1_704_067_200_000_000
"""2024-01-01."""
SPAN_US = 300 * 86_400_000_000
SPARK = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
_TICK = os.sysconf("SC_CLK_TCK")


def flights() -> pa.Table:
    """The source's flights, by the hour for which they were scheduled."""
    with zipfile.ZipFile(source_folder() / "flights.csv.zip") as packed, packed.open("flights.csv") as file:
        rows = csv.read_csv(file, convert_options=csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True))
    times = rows["time_hour"].cast(pa.timestamp("us", "UTC"))
    return rows.drop_columns(["time_hour"]).add_column(0, "ts", times)


def made_up(rows: int) -> dict[str, pa.Table]:
    """Rows of each kind of value, in order of time."""
    random = np.random.default_rng(7)
    times = pa.array(np.arange(rows) * (SPAN_US // rows) + FIRST_US, pa.timestamp("us", "UTC"))
    words = pa.array([f"word number {number}" for number in range(200)])
    texts = random.bytes(10 * rows).hex()
    kinds: dict[str, dict[str, Any]] = {
        "numbers": {
            "id": random.permutation(rows),
            "value": random.integers(0, 4_000, rows) / 4.0,
            "other": random.normal(size=rows),
            "many": random.poisson(5, rows),
        },
        "text, few values": {name: words.take(pa.array(random.integers(0, 200, rows))) for name in ("a", "b", "c")},
        "text, many values": {
            "word": pa.array([f"user-{one}@example.org" for one in random.integers(0, 10**9, rows)]),
            "code": pa.array([texts[start : start + 20] for start in range(0, 20 * rows, 20)]),
        },
        "decimals": {"price": _cents(random, 10_000_000, rows), "tax": _cents(random, 900, rows)},
    }
    return {kind: pa.table({"ts": times, **columns}) for kind, columns in kinds.items()}


def _cents(random: np.random.Generator, most: int, rows: int) -> pa.Array:
    """Decimals with two places, made of their unscaled values of 16 bytes."""
    held = np.zeros((rows, 2), dtype=np.int64)
    held[:, 0] = random.integers(0, most, rows)
    return pa.Array.from_buffers(pa.decimal128(12, 2), rows, [None, pa.py_buffer(held)])


def totals(schema: pa.Schema) -> str:
    """One expression for each column, so that all of it is read and little is done with it."""
    of = []
    for field in schema:
        if pa.types.is_string(field.type):
            of.append(f"sum(length({field.name}))")
        elif pa.types.is_timestamp(field.type):
            of.append(f"max({field.name})")
        else:
            of.append(f"sum({field.name})")
    return ", ".join(of)


def spent(java: int | None) -> float:
    """Processor seconds of this process so far, and of a Java process."""
    seconds = time.process_time()
    if java is not None:
        fields = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / _TICK
    return seconds


def least(works: Mapping[str, Callable[[], Any]], rounds: int, java: int | None = None) -> dict[str, float]:
    """The least processor milliseconds of each of some works, which take turns; their results have to be equal."""
    found = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        results = []
        for name, work in works.items():
            began = spent(java)
            results.append(work())
            found[name] = min(found[name], 1000 * (spent(java) - began))
        assert all(_equal(one, results[0]) for one in results), results
    return found


def _equal(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Sums of doubles depend on the order of addition."""
    return all(
        abs(a - b) <= 1e-9 * max(abs(a), 1.0) if isinstance(a, float) else a == b
        for a, b in zip(one, other, strict=True)
    )


class Measured:
    """One kind of rows, stored with each codec."""

    def __init__(self, lake: Any, name: str, rows: pa.Table, rounds: int) -> None:
        self.lake, self.rounds, self.schema = lake, rounds, rows.schema
        self.tables = {
            codec: lake.create_table(
                f"{name}_{codec}", rows.schema, time="ts", grain="month", properties={"compression": codec}
            )
            for codec in CODECS
        }
        for table in self.tables.values():
            table.append(rows)
        self.megabytes = {
            codec: sum(one.bytes for one in table.segments()) / 1e6 for codec, table in self.tables.items()
        }

    def scans(self, engine: str, java: int | None = None) -> dict[str, float]:
        """A scan of each by an engine."""

        def scan(codec: str) -> Callable[[], tuple[Any, ...]]:
            text = f"SELECT {totals(self.schema)} FROM {self.tables[codec].name}"

            def work() -> tuple[Any, ...]:
                if engine == "duckdb":
                    return tuple(self.lake.sql(text, engine="duckdb").fetchall()[0])
                return tuple(self.lake.sql(text).collect()[0])

            return work

        extra = 8 if engine == "spark" else 1  # until Java has compiled what is used
        works = {codec: scan(codec) for codec in CODECS}
        least(works, extra, java)
        return least(works, self.rounds, java)

    def cooling(self) -> dict[str, float]:
        """What the service takes to rewrite all with the first codec, where it has something to do."""
        found = {}
        for codec, table in self.tables.items():
            self.lake.maintain()
            if codec != CODECS[0]:
                table.set_properties({"compression": f"{codec}, {CODECS[0]} after 1s"})
            began = spent(None)
            is_done = any(one.kind == "compact" for one in self.lake.maintain().tasks)
            found[codec] = 1000 * (spent(None) - began) if is_done else 0.0
            table.set_properties({"compression": codec})
        return found

    def appends(self, rows: pa.Table) -> dict[str, float]:
        """An append of rows with each codec."""

        def append(codec: str) -> tuple[int]:
            return (self.tables[codec].append(rows).rows_added,)

        return least({codec: lambda codec=codec: append(codec) for codec in CODECS}, max(2, self.rounds // 3))


def started() -> tuple[Any, int]:
    """A Spark session, and the id of its Java process."""
    from lakehouse.engine.spark.session import start_session  # noqa: PLC0415 - only where it is asked for

    spark: Any = start_session(SPARK)
    return spark, int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--appended", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--spark", action="store_true")
    asked = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("LAKEHOUSE_SPARK_MASTER", "local[2]")
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        spark, java = started() if asked.spark else (None, None)
        lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", Path(folder, "warehouse"), spark=spark)
        for name, rows in {"flights": flights(), **made_up(asked.rows)}.items():
            measured = Measured(lake, "".join(filter(str.isalpha, name)), rows, asked.rounds)
            found = {"MB": measured.megabytes, "scan in process, ms": measured.scans("duckdb")}
            if asked.spark:
                found["scan by Spark, ms"] = measured.scans("spark", java)
            cooling = measured.cooling()
            found["append, ms"] = measured.appends(rows.slice(0, asked.appended))
            result = Table(f"{name}: {rows.num_rows:,} rows", *CODECS)
            for what, values in found.items():
                result.add_row(what, *(f"{values[codec]:,.{1 if what == 'MB' else 0}f}" for codec in CODECS))
                ratios = {f"{codec} to {CODECS[0]}": values[codec] / values[CODECS[0]] for codec in CODECS[1:]}
                figures[f"{name}, {what.removesuffix(', ms')}"] = ratios
            result.add_row("cooling, ms", *(f"{cooling[codec]:,.0f}" for codec in CODECS))
            Console().print(result)
        lake.close()
    keep(__file__, figures)


if __name__ == "__main__":
    main()
