"""The catalog at scale, on SQLite and PostgreSQL: commits, planning, opening old versions, size.

``python benchmarks/catalog.py`` fills catalogs of 10,000 segments (``--full``: 100,000 and 1,000,000) over 1,000 daily
chunks, one segment a version, with the key frames that such commits leave; no data file exists. PostgreSQL has the
smallest of these only, unless ``--full``. Then it measures commits a second by 1 and 8 processes on an almost empty (by
16, and by 8 threads, too) and on the filled catalog (a commit is begin and commit of an append of one segment), plans
of one chunk and of everything in a new process and again in the same one, a version drawn at random, and the size on
disk.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa
from figures import keep
from rich.console import Console
from rich.table import Table
from sqlalchemy import func, insert, select, text, update

from lakehouse.catalog.catalog import Catalog
from lakehouse.catalog.commit.delta import entry_id
from lakehouse.catalog.locks.operations import new_id
from lakehouse.catalog.store import models
from lakehouse.catalog.store.rows import segment_values
from lakehouse.core.bins import bins_of
from lakehouse.core.chunk import Grain
from lakehouse.core.contribution import AppendContribution
from lakehouse.core.interval import Interval
from lakehouse.core.operation import Kind
from lakehouse.core.plan import plan_read
from lakehouse.core.segment import NewSegment, Segment
from lakehouse.core.spec import TableSpec
from lakehouse.core.version import frame_due
from lakehouse.schema import define_table
from lakehouse.testing.postgres import PostgresServer

_ = pd  # pyarrow imports it at its first conversion: imported here, it is in no figure
CHUNKS = 1000
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
CHECKSUM_BYTES = 25
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("client", pa.int64()),
        ("key", pa.string()),
        ("value", pa.float64()),
        ("payload", pa.string()),
    ]
)


def new_segment(path: str, number: int) -> NewSegment:
    """A segment of one chunk, with statistics of five columns."""
    start = FIRST + number % CHUNKS * DAY + timedelta(seconds=number // CHUNKS % 80_000)
    low = {"ts": start, "client": number % 977, "key": f"k{number:09d}", "value": 0.5, "payload": "0a1b" * 10}
    high = {**low, "client": number % 977 + 20, "key": f"k{number + 999:09d}", "value": 999.75}
    return NewSegment(
        path=path,
        start=start,
        end=start + timedelta(hours=1),
        rows=1000,
        bytes=40_000,
        min=low,
        max=high,
        nulls=dict.fromkeys(low, 0),
        checksum=random.randbytes(CHECKSUM_BYTES),
    )


def make_table(catalog: Catalog, name: str) -> TableSpec:
    """A table by day."""
    spec = define_table(
        name,
        SCHEMA,
        time="ts",
        grain="day",
        primary_key=(),
        cluster_by=("client",),
        write_order="commit",
        properties=None,
        folder=uuid4().hex,
    )
    return catalog.create_table(spec)[0]


def fill(catalog: Catalog, spec: TableSpec, segments: int) -> None:
    """As many versions as segments, a round of all chunks after another, with their key frames."""
    database = catalog._database
    framed = 0
    for turn in range(segments // CHUNKS):
        numbers = range(turn * CHUNKS, (turn + 1) * CHUNKS)
        database.run(lambda connection, numbers=numbers: _insert_round(connection, spec, numbers))
        if frame_due(turn + 1 - framed, is_framed=framed > 0):
            bins = [bins_of(Grain.DAY, Interval(FIRST + n * DAY, FIRST + (n + 1) * DAY))[0] for n in range(CHUNKS)]
            catalog._frames.write(spec, bins, catalog.head())
            framed = turn + 1
    if not database.is_sqlite:
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ANALYZE"))


def _insert_round(connection: Any, spec: TableSpec, numbers: range) -> None:
    count = len(numbers)
    first = connection.execute(select(models.lake.c.counter)).scalar_one() + 1
    operation = (connection.execute(select(func.max(models.operation.c.number))).scalar() or 0) + 1
    clock_us = connection.execute(select(models.lake.c.clock_us)).scalar_one() + 1
    rows: dict[Any, list[dict[str, Any]]] = {
        table: [] for table in (models.operation, models.commit_log, models.commit_table, models.segment, models.delta)
    }
    bins = []
    for place, number in enumerate(numbers):
        version, op, op_id = first + place, operation + place, new_id()
        made = new_segment(f"{spec.folder}/{op_id}/0.parquet", number)
        held = Segment(
            id=entry_id(op, 0), ordinal=version, first_row_id=number * 1000,
            **{name: getattr(made, name)
               for name in ("start", "end", "rows", "bytes", "path", "min", "max", "nulls", "checksum")},
        )  # fmt: skip
        rows[models.operation].append(
            {"number": op, "id": op_id, "table_id": spec.id, "kind": "append", "state": "committed", "ordinal": None,
             "base_version": version - 1, "begun_us": clock_us, "lease_until_us": clock_us, "version": version}
        )  # fmt: skip
        rows[models.commit_log].append(
            {"version": version, "operation": "append", "committed_us": clock_us + place, "message": None,
             "properties": None}
        )  # fmt: skip
        rows[models.commit_table].append(
            {"version": version, "table_id": spec.id, "operation": "append", "segments_added": 1, "segments_dropped": 0,
             "tombstones_added": 0, "tombstones_dropped": 0, "rows_added": 1000, "rows_deleted": 0}
        )  # fmt: skip
        rows[models.segment].append(segment_values(held, spec.id, op, version))
        bins.append({"table_id": spec.id, "bin": bins_of(Grain.DAY, held.interval)[0], "version": version})
        rows[models.delta].append({**bins[-1], "entry": held.id, "action": 1, "is_tombstone": False})
    for table, values in rows.items():
        connection.execute(insert(table), values)
    if numbers.start < CHUNKS:
        connection.execute(insert(models.bin), [{**row, "frame_entries": 0, "chain": 1} for row in bins])
    else:
        touched = (
            update(models.bin)
            .where(models.bin.c.table_id == spec.id, models.bin.c.bin == text(":touched"))
            .values(version=text(":newest"), chain=models.bin.c.chain + 1)
        )
        connection.execute(touched, [{"touched": row["bin"], "newest": row["version"]} for row in bins])
    last = first + count - 1
    connection.execute(update(models.lake).values(counter=last, head=last, clock_us=clock_us + count))
    if connection.dialect.name != "sqlite":
        sequence = func.pg_get_serial_sequence("operation", "number")
        connection.execute(select(func.setval(sequence, operation + count - 1)))


def commit_one(catalog: Catalog, spec: TableSpec) -> float:
    """Begin and commit an append to a chunk at random: its milliseconds."""
    started = time.perf_counter()
    begun = catalog.begin(spec, Kind.APPEND, ahead=True)
    made = new_segment(f"{spec.folder}/{begun.id}/0.parquet", random.randrange(CHUNKS))
    catalog.commit([AppendContribution(begun, segments=(made,))])
    return 1000 * (time.perf_counter() - started)


# Work done in processes of its own


def run_writer(url: str, table: str, commits: int) -> dict[str, Any]:
    """Begin and commit appends on a signal: when that began and ended, and the milliseconds of each."""
    catalog = Catalog(url)
    spec, _ = catalog.table(table)
    for _ in range(5):
        commit_one(catalog, spec)
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.time()
    times = [commit_one(catalog, spec) for _ in range(commits)]
    return {"began": began, "ended": time.time(), "times_ms": times}


def run_reader(url: str, table: str, what: str, rounds: int) -> dict[str, Any]:
    """Milliseconds of the first plan of a new process, of the next ones, and the memory at its end."""
    generator = random.Random(7)
    timed: list[float] = []
    started = time.perf_counter()
    catalog = Catalog(url)
    spec, created = catalog.table(table)
    head = catalog.head()
    for turn in range(rounds + 1):
        number = generator.randrange(CHUNKS)
        if turn:
            started = time.perf_counter()
        if what == "chunk again":
            number = 500
        version = head
        interval = Interval(FIRST + number * DAY, FIRST + (number + 1) * DAY)
        if what == "everything":
            interval = None
        elif what == "old version":
            version = catalog.table_version(spec, created, generator.randrange(created + CHUNKS, head))
        segments, tombstones = catalog.live(spec, version, interval)
        plan = plan_read(segments, tombstones, version=version, interval=interval)
        timed.append(1000 * (time.perf_counter() - started))
    return {
        "cold_ms": timed[0],
        "warm_ms": statistics.median(timed[1:]),
        "segments": len(plan.segments),
        "mebibytes": peak_mebibytes(),
    }


def peak_mebibytes() -> float:
    """Peak memory of this process; `resource` would start from that of the parent process."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def spawned(*arguments: object) -> subprocess.Popen[str]:
    """This script in another process."""
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def commits(url: str, table: str, writers: int, total: int) -> dict[str, float]:
    """Commits a second of some processes together, and their latency."""
    processes = [spawned("--writer", url, table, total // writers) for _ in range(writers)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [json.loads(process.communicate()[0]) for process in processes]
    seconds = max(one["ended"] for one in found) - min(one["began"] for one in found)
    times = sorted(milliseconds for one in found for milliseconds in one["times_ms"])
    return {
        "per_second": len(times) / seconds,
        "p50_ms": statistics.median(times),
        "p99_ms": times[int(len(times) * 0.99)],
        "failures": total // writers * writers - len(times),
    }


def threaded(url: str, table: str, writers: int, total: int) -> dict[str, float]:
    """The same of some threads of this process."""
    catalog = Catalog(url)
    spec, _ = catalog.table(table)
    with ThreadPoolExecutor(writers) as threads:
        list(threads.map(lambda _: commit_one(catalog, spec), range(4 * writers)))
        began = time.perf_counter()
        times = sorted(threads.map(lambda _: commit_one(catalog, spec), range(total)))
        seconds = time.perf_counter() - began
    catalog.close()
    return {"per_second": total / seconds, "p50_ms": statistics.median(times), "p99_ms": times[int(total * 0.99)]}


def reads(url: str, table: str, what: str, rounds: int, colds: int = 3) -> dict[str, Any]:
    """Plans in new processes: medians."""
    found = []
    for _ in range(colds):
        out, _ = spawned("--reader", url, table, what, rounds).communicate()
        found.append(json.loads(out))
    return {name: statistics.median(one[name] for one in found) for name in found[0]}


def catalog_bytes(catalog: Catalog) -> int:
    """Size on disk."""
    database = catalog._database
    if database.is_sqlite:
        database.read(lambda connection: connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").all())
        return Path(str(database.url.database)).stat().st_size
    return int(database.read(lambda c: c.execute(select(func.pg_database_size(func.current_database()))).scalar_one()))


def measure(name: str, url: str, sizes: list[int], total: int) -> list[dict[str, Any]]:
    """Every figure for one kind of catalog."""
    results: list[dict[str, Any]] = []

    def keep(what: str, size: int, figures: dict[str, Any]) -> None:
        results.append({"catalog": name, "what": what, "segments": size, **figures})
        print(results[-1], file=sys.stderr, flush=True)

    catalog = Catalog(url)
    small = make_table(catalog, "small")
    fill(catalog, small, CHUNKS)
    for writers in (1, 8, 16):
        keep(f"commits by {writers}", CHUNKS, commits(url, "small", writers, total))
    keep("commits by 8 threads", CHUNKS, threaded(url, "small", 8, total))
    for size in sizes:
        spec = make_table(catalog, f"t{size}")
        before = catalog_bytes(catalog)
        started = time.perf_counter()
        fill(catalog, spec, size)
        grown = catalog_bytes(catalog) - before
        keep("size", size, {"bytes_per_segment": grown / size, "fill_seconds": time.perf_counter() - started})
        for what, rounds in (("chunk", 50), ("chunk again", 50), ("old version", 50), ("everything", 3)):
            keep(f"plan of {what}", size, reads(url, spec.name, what, rounds))
        for writers in (1, 8):
            keep(f"commits by {writers}", size, commits(url, spec.name, writers, total))
    catalog.close()
    return results


def shown(results: list[dict[str, Any]]) -> Table:
    """The figures as a table."""
    table = Table("catalog", "what", "segments", "figures", title=f"{platform.machine()}, {os.cpu_count()} cores")
    for row in results:
        named = {name: value for name, value in row.items() if name not in ("catalog", "what", "segments")}
        figures = ", ".join(f"{name} {value:,.1f}" for name, value in named.items())
        table.add_row(row["catalog"], row["what"], f"{row['segments']:,}", figures)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="100,000 and 1,000,000 segments too")
    parser.add_argument("--sizes", help="numbers of segments, with commas")
    parser.add_argument("--commits", type=int, default=1600)
    parser.add_argument("--only", choices=("SQLite", "PostgreSQL"))
    parser.add_argument("--writer", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--reader", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.writer:
        print(json.dumps(run_writer(asked.writer[0], asked.writer[1], int(asked.writer[2]))))
        return
    if asked.reader:
        url, table, what, rounds = asked.reader
        print(json.dumps(run_reader(url, table, what, int(rounds))))
        return
    sizes = [10_000, *([100_000, 1_000_000] if asked.full else [])]
    if asked.sizes:
        sizes = [int(one) for one in asked.sizes.split(",")]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        if asked.only != "PostgreSQL":
            results += measure("SQLite", f"sqlite:///{folder}/catalog.db", sizes, asked.commits)
        if asked.only != "SQLite":
            with PostgresServer(fsync=True) as server:
                most = sizes if asked.full or asked.sizes else sizes[:1]
                results += measure("PostgreSQL", server.url(server.create_database()), most, asked.commits)
    Console().print(shown(results))
    named = ("catalog", "what", "segments")
    kept = {
        f"{row['catalog']}, {row['what']}, {row['segments']:,}": {k: v for k, v in row.items() if k not in named}
        for row in results
    }
    keep(__file__, kept)


if __name__ == "__main__":
    main()
