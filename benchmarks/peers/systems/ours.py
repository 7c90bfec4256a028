"""This lakehouse: in process, and by Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pysqlite3

import lakehouse
from benchmarks.peers.data import SCHEMA, Totals, day_text
from benchmarks.peers.systems.base import SCAN, Groups, System, groups_of
from lakehouse.core.contribution import AppendContribution
from lakehouse.core.operation import Kind
from lakehouse.core.segment import NewSegment

BATCH_ROWS = 131_072
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
_UPDATED = {"value": "source.value", "payload": "source.payload"}


class InProcess(System):
    """Written and read in process: rows by Arrow, queries by DuckDB, a catalog in SQLite."""

    packages = ("duckdb", "pyarrow")
    engine = "duckdb"
    shares_catalog = True

    def __init__(self, root: Path, shared: Path) -> None:
        super().__init__(root, shared)
        self.lake = self._connect()

    def _connect(self) -> Any:
        return lakehouse.connect(f"sqlite:///{self.root}/catalog.db", self.root / "warehouse")

    def close(self) -> None:
        self.lake.close()

    def versions(self) -> dict[str, str]:
        return {"lakehouse": lakehouse.__version__, "sqlite": pysqlite3.sqlite_version, **super().versions()}

    # Tables

    def create(self, table: str) -> None:
        self.lake.create_table(table, SCHEMA, time="ts", grain="day", primary_key=["key"])

    def drop(self, table: str) -> None:
        folder = self.lake.warehouse / self.lake.table(table).spec.folder
        self.lake.drop_table(table)
        shutil.rmtree(folder)

    # Writes

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        if scatter:
            for path in files:
                self.append(table, pq.read_table(path))
        else:
            self.append(table, _stream(files))

    def append(self, table: str, batch: Any) -> None:
        self.lake.table(table).append(batch)

    def delete(self, table: str, clients: list[int], days: tuple[int, int] | None = None) -> None:
        self.lake.table(table).delete(_where(clients, days), engine=self.engine)

    def overwrite(self, table: str, day: int, batch: Any) -> None:
        self.lake.table(table).replace(batch, day_text(day))

    def merge(self, table: str, batch: Any) -> None:
        self.lake.table(table).merge(batch, ["key"], when_matched_update=_UPDATED, engine=self.engine)

    def upsert(self, table: str, batch: Any) -> None:
        self.lake.table(table).upsert(batch)

    def compact(self, table: str) -> None:
        self.lake.table(table).compact(engine=self.engine)

    def maintain(self, table: str) -> None:
        self.lake.maintain(table=table, engine=self.engine)

    def begin(self, table: str, kind: str, argument: Any) -> Callable[[], None]:
        held = self.lake.table(table)
        if kind == "delete":
            clients, days = argument
            op = held.begin_delete(_where(clients, days), engine=self.engine)
            op.run()
        elif kind == "append":
            op = held.begin_append()
            op.write(argument)
        else:
            day, batch = argument
            op = held.begin_replace(day_text(day))
            op.write(batch)

        def finish() -> None:
            with op:
                op.commit()

        return finish

    # Reads

    def totals(self, table: str, *, keys: bool = False) -> Totals:
        columns = ["value", "key"] if keys else ["value"]
        wanted = "count(*), sum(value)" + (", count(DISTINCT key)" if keys else "")
        found = self.lake.table(table).scan(columns=columns).to_duckdb().aggregate(wanted).fetchall()[0]
        return Totals(int(found[0]), float(found[1] or 0), int(found[2]) if keys else None)

    def scan(self, table: str) -> Groups:
        read = self.lake.table(table).scan(columns=["client", "value"]).to_duckdb()
        return groups_of(read.aggregate("client % 10 AS g, sum(value), count(*)", "client % 10").fetchall())

    def look(self, table: str, day: int, client: int) -> tuple[int, float]:
        read = self.lake.table(table).scan(columns=["value"], interval=day_text(day), where=f"client = {client}")
        found = read.to_duckdb().aggregate("count(*), sum(value)").fetchall()[0]
        return int(found[0]), float(found[1] or 0)

    # Looks

    def files(self, table: str) -> dict[str, int]:
        return {one.path: one.bytes for one in self.lake.table(table).segments()}

    def metadata_bytes(self, table: str) -> int:
        """The whole catalog: take the difference of two looks."""
        path = self.root / "catalog.db"
        with pysqlite3.connect(str(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return path.stat().st_size

    # Metadata at scale

    def fabricate(self, table: str, files: int, days: int) -> None:
        self.create(table)
        for turn in range(20):
            numbers = range(files * turn // 20, files * (turn + 1) // 20)
            self._commit(table, [(number, number * days // files) for number in numbers])

    def fabricate_versions(self, table: str, count: int) -> None:
        self.create(table)
        for number in range(count):
            self._commit(table, [(number, number % 30)])

    def _commit(self, table: str, numbered: list[tuple[int, int]]) -> None:
        """One append of segments without files, as numbers and days."""
        catalog, spec = self.lake.catalog, self.lake.table(table).spec
        begun = catalog.begin(spec, Kind.APPEND)
        made = tuple(_segment(f"{spec.folder}/{begun.id}/{number}.parquet", day) for number, day in numbered)
        catalog.commit([AppendContribution(begun, segments=made)])

    def plan(self, table: str, day: int, *, cold: bool) -> int | None:
        if not cold:
            return len(self.lake.table(table).scan(interval=day_text(day)).plan().segments)
        with self._connect() as lake:
            return len(lake.table(table).scan(interval=day_text(day)).plan().segments)

    def open_version(self, table: str, number: int) -> int:
        with self._connect() as lake:
            opened = lake.table(table)
            first = opened._created_version
            return len(opened.scan(as_of=first + number).plan().segments)


class BySpark(InProcess):
    """Written and read by Spark, with the same catalog."""

    engine = "spark"

    def __init__(self, root: Path, shared: Path) -> None:
        from benchmarks.peers.systems.spark import start  # noqa: PLC0415 - the other one runs without Spark

        self.spark = start(root, {})
        super().__init__(root, shared)

    def _connect(self) -> Any:
        return lakehouse.connect(f"sqlite:///{self.root}/catalog.db", self.root / "warehouse", spark=self.spark)

    def close(self) -> None:
        super().close()
        self.spark.stop()

    def versions(self) -> dict[str, str]:
        return {**super().versions(), "spark": self.spark.version}

    def batch(self, rows: pa.Table) -> Any:
        return self.spark.createDataFrame(rows)

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        if scatter:
            for path in files:
                self.append(table, self.spark.read.parquet(path))
        else:
            self.append(table, self.spark.read.parquet(*files))

    def totals(self, table: str, *, keys: bool = False) -> Totals:
        wanted = ["count(*)", "sum(value)", *(["count(DISTINCT key)"] if keys else [])]
        columns = ["value", "key"] if keys else ["value"]
        found = self.lake.table(table).scan(columns=columns).to_spark().selectExpr(*wanted).collect()[0]
        return Totals(int(found[0]), float(found[1] or 0), int(found[2]) if keys else None)

    def scan(self, table: str) -> Groups:
        read = self.lake.table(table).scan(columns=["client", "value"]).to_spark()
        return groups_of(self.spark.sql(SCAN.format(table="{rows}"), rows=read).collect())

    def look(self, table: str, day: int, client: int) -> tuple[int, float]:
        read = self.lake.table(table).scan(columns=["value"], interval=day_text(day), where=f"client = {client}")
        found = read.to_spark().selectExpr("count(*)", "sum(value)").collect()[0]
        return int(found[0]), float(found[1] or 0)


def _stream(files: list[str]) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for path in files:
            yield from pq.read_table(path, schema=SCHEMA).to_batches(max_chunksize=BATCH_ROWS)

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


def _where(clients: list[int], days: tuple[int, int] | None) -> str:
    wanted = f"client IN ({', '.join(map(str, clients))})"
    if days is None:
        return wanted
    first, last = (f"TIMESTAMP '{day_text(day)} 00:00:00'" for day in days)
    return f"ts >= {first} AND ts < {last} AND {wanted}"


def _segment(path: str, day: int) -> NewSegment:
    start = FIRST + day * DAY
    low = {"ts": start, "client": 0, "value": 0.0}
    high = {"ts": start + timedelta(hours=23), "client": 9999, "value": 999.75}
    end = start + timedelta(hours=23, microseconds=1)
    return NewSegment(
        path=path,
        start=start,
        end=end,
        rows=1000,
        bytes=50_000,
        min=low,
        max=high,
        nulls=dict.fromkeys(SCHEMA.names, 0),
    )
