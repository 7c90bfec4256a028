"""Apache Iceberg in process, by pyiceberg, with a catalog in SQLite."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import manifest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from benchmarks.peers.data import Totals, day_text, value_sum
from benchmarks.peers.fabricate import iceberg_catalog, iceberg_create, iceberg_files, iceberg_versions
from benchmarks.peers.systems.base import Groups, System, by_group, folder_bytes


class PyIceberg(System):
    """Tables partitioned by the day of the time; what it has no operation for is left out."""

    packages = ("pyiceberg", "pyarrow")

    def __init__(self, root: Path, shared: Path) -> None:
        super().__init__(root, shared)
        logging.getLogger("pyiceberg").setLevel(logging.ERROR)
        iceberg_catalog(root).create_namespace_if_not_exists("db")
        self._warm: dict[str, Table] = {}

    def catalog(self) -> SqlCatalog:
        return iceberg_catalog(self.root)

    def opened(self, table: str) -> Table:
        return self.catalog().load_table(f"db.{table}")

    def create(self, table: str) -> None:
        iceberg_create(self.catalog(), table)

    def drop(self, table: str) -> None:
        folder = Path(self.opened(table).location().removeprefix("file://"))
        self.catalog().drop_table(f"db.{table}")
        shutil.rmtree(folder)

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        if scatter:
            for path in files:
                self.append(table, pq.read_table(path))
        else:
            self.append(table, pa.concat_tables([pq.read_table(path) for path in files]))

    def append(self, table: str, batch: Any) -> None:
        self.opened(table).append(_nullable(batch))

    def delete(self, table: str, clients: list[int], days: tuple[int, int] | None = None) -> None:
        self.opened(table).delete(_where(clients, days))

    def overwrite(self, table: str, day: int, batch: Any) -> None:
        self.opened(table).overwrite(_nullable(batch), overwrite_filter=_between(day, day + 1))

    def merge(self, table: str, batch: Any) -> None:
        self.opened(table).upsert(_nullable(batch), join_cols=["key"])

    def compact(self, table: str) -> None:
        """There is no compaction: a rewrite of the table is what a user can do."""
        opened = self.opened(table)
        opened.overwrite(opened.scan().to_arrow())

    def maintain(self, table: str) -> None:
        """Nothing: there is no maintenance of data files."""

    def begin(self, table: str, kind: str, argument: Any) -> Callable[[], None]:
        """A table that was opened before, and not looked at again."""
        opened = self.opened(table)
        if kind == "delete":
            return lambda: opened.delete(_where(*argument))
        if kind == "append":
            return lambda: opened.append(_nullable(argument))
        day, batch = argument
        return lambda: opened.overwrite(_nullable(batch), overwrite_filter=_between(day, day + 1))

    def totals(self, table: str, *, keys: bool = False) -> Totals:
        read = self.opened(table).scan(selected_fields=("value", "key") if keys else ("value",)).to_arrow()
        return Totals(read.num_rows, value_sum(read), len(read["key"].unique()) if keys else None)

    def scan(self, table: str) -> Groups:
        read = self.opened(table).scan(selected_fields=("client", "value")).to_arrow()
        return by_group(read["client"], read["value"])

    def look(self, table: str, day: int, client: int) -> tuple[int, float]:
        chosen = f"{_between(day, day + 1)} and client = {client}"
        read = self.opened(table).scan(chosen, selected_fields=("value",)).to_arrow()
        return read.num_rows, value_sum(read)

    def files(self, table: str) -> dict[str, int]:
        tasks = self.opened(table).scan().plan_files()
        return {one.file.file_path: one.file.file_size_in_bytes for one in tasks}

    def metadata_bytes(self, table: str) -> int:
        return folder_bytes(Path(self.opened(table).location().removeprefix("file://")) / "metadata")

    def fabricate(self, table: str, files: int, days: int) -> None:
        self.catalog().register_table(f"db.{table}", iceberg_files(self.shared, files, days))

    def plan(self, table: str, day: int, *, cold: bool) -> int | None:
        if cold or table not in self._warm:
            _forget_manifests()
            self._warm[table] = self.opened(table)
        return len(list(self._warm[table].scan(_between(day, day + 1)).plan_files()))

    def fabricate_versions(self, table: str, count: int) -> None:
        place, self._snapshots = iceberg_versions(self.shared, count)
        self.catalog().register_table(f"db.{table}", place)

    def open_version(self, table: str, number: int) -> int:
        _forget_manifests()
        return len(list(self.opened(table).scan(snapshot_id=self._snapshots[number - 1]).plan_files()))


def _forget_manifests() -> None:
    """The package keeps manifest lists for the whole process."""
    for name in ("_manifest_cache", "_manifests"):
        held = getattr(manifest, name, None)
        for clear in ("clear", "cache_clear"):
            if hasattr(held, clear):
                getattr(held, clear)()


def _nullable(batch: pa.Table) -> pa.Table:
    """The rows under a schema without required columns, as the table has it."""
    return batch.cast(pa.schema([field.with_nullable(True) for field in batch.schema]))


def _between(first: int, last: int) -> str:
    return f"ts >= '{day_text(first)}T00:00:00+00:00' and ts < '{day_text(last)}T00:00:00+00:00'"


def _where(clients: list[int], days: tuple[int, int] | None) -> str:
    wanted = f"client in ({', '.join(map(str, clients))})"
    return wanted if days is None else f"{_between(*days)} and {wanted}"
