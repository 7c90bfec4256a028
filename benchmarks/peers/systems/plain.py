"""The floor: the same rows as plain Parquet, a folder a day, without commits."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from benchmarks.peers.data import FIRST_DAY, SCHEMA, Totals, day_text, value_sum, with_day
from benchmarks.peers.systems.base import SCAN, Groups, System, by_group, groups_of

BATCH_ROWS = 131_072
_DAYS = pads.partitioning(pa.schema([("day", pa.date32())]), flavor="hive")


def batches(files: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of Parquet files with their days, in order."""
    for path in files:
        yield from with_day(pq.read_table(path)).to_batches(max_chunksize=BATCH_ROWS)


def reader(files: list[str]) -> pa.RecordBatchReader:
    """The same as a stream."""
    return pa.RecordBatchReader.from_batches(with_day(SCHEMA.empty_table()).schema, batches(files))


class _Plain(System):
    def folder(self, table: str) -> Path:
        return self.root / table

    def create(self, table: str) -> None:
        self.folder(table).mkdir(parents=True)

    def drop(self, table: str) -> None:
        shutil.rmtree(self.folder(table))

    def append(self, table: str, batch: Any) -> None:
        """A file more in its day's folder, not synced."""
        folder = self.folder(table) / f"day={batch['ts'][0].as_py().date()}"
        folder.mkdir(exist_ok=True)
        pq.write_table(batch, folder / f"{uuid.uuid4().hex}.parquet")

    def files(self, table: str) -> dict[str, int]:
        return {str(path): path.stat().st_size for path in self.folder(table).rglob("*.parquet")}


class ByDuckDB(_Plain):
    """Written and read by DuckDB's own commands."""

    packages = ("duckdb",)

    def __init__(self, root: Path, shared: Path) -> None:
        super().__init__(root, shared)
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'; SET threads = 2")

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        self.connection.execute(
            f"COPY (SELECT *, CAST(ts AS DATE) AS day FROM read_parquet({files})) TO '{self.folder(table)}' "
            "(FORMAT parquet, PARTITION_BY (day), OVERWRITE)"
        )

    def _all(self, table: str) -> str:
        return f"read_parquet('{self.folder(table)}/*/*.parquet', hive_partitioning = true)"

    def totals(self, table: str, *, keys: bool = False) -> Totals:
        (found,) = self.connection.execute(
            f"SELECT count(*), sum(value), count(DISTINCT key) FROM {self._all(table)}"
        ).fetchall()
        return Totals(int(found[0]), float(found[1] or 0), int(found[2]) if keys else None)

    def scan(self, table: str) -> Groups:
        return groups_of(self.connection.execute(SCAN.format(table=self._all(table))).fetchall())

    def look(self, table: str, day: int, client: int) -> tuple[int, float]:
        (found,) = self.connection.execute(
            f"SELECT count(*), sum(value) FROM {self._all(table)} WHERE day = DATE '{day_text(day)}' "
            f"AND client = {client}"
        ).fetchall()
        return int(found[0]), float(found[1] or 0)


class ByArrow(_Plain):
    """Written and read by PyArrow's datasets."""

    packages = ("pyarrow",)

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        pads.write_dataset(reader(files), self.folder(table), format="parquet", partitioning=_DAYS)

    def _dataset(self, table: str) -> pads.Dataset:
        return pads.dataset(self.folder(table), partitioning=_DAYS)

    def totals(self, table: str, *, keys: bool = False) -> Totals:
        read = self._dataset(table).to_table(columns=["value", "key"])
        return Totals(read.num_rows, value_sum(read), len(read["key"].unique()) if keys else None)

    def scan(self, table: str) -> Groups:
        read = self._dataset(table).to_table(columns=["client", "value"])
        return by_group(read["client"], read["value"])

    def look(self, table: str, day: int, client: int) -> tuple[int, float]:
        chosen = (pads.field("day") == pa.scalar(FIRST_DAY + timedelta(days=day))) & (pads.field("client") == client)
        read = self._dataset(table).to_table(columns=["value"], filter=chosen)
        return read.num_rows, value_sum(read)
