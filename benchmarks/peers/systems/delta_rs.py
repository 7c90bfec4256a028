"""Delta Lake in process, by delta-rs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder, Schema, write_deltalake

from benchmarks.peers.data import Totals, day_text, empty, with_day
from benchmarks.peers.fabricate import delta_files, delta_versions
from benchmarks.peers.systems.base import SCAN, Groups, System, folder_bytes, groups_of
from benchmarks.peers.systems.plain import reader


class DeltaRs(System):
    """Tables by path, partitioned by a column of days; queries by its own DataFusion."""

    packages = ("deltalake", "pyarrow")

    def __init__(self, root: Path, shared: Path) -> None:
        super().__init__(root, shared)
        self._warm: dict[str, DeltaTable] = {}

    def folder(self, table: str) -> Path:
        return self.root / table

    def opened(self, table: str, version: int | None = None) -> DeltaTable:
        return DeltaTable(str(self.folder(table)), version=version)

    def create(self, table: str) -> None:
        DeltaTable.create(str(self.folder(table)), Schema.from_arrow(with_day(empty()).schema), partition_by=["day"])

    def drop(self, table: str) -> None:
        shutil.rmtree(self.folder(table))

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        if scatter:
            for path in files:
                self.append(table, pq.read_table(path))
        else:
            write_deltalake(str(self.folder(table)), reader(files), mode="append")

    def append(self, table: str, batch: Any) -> None:
        write_deltalake(str(self.folder(table)), with_day(batch), mode="append")

    def delete(self, table: str, clients: list[int], days: tuple[int, int] | None = None) -> None:
        self.opened(table).delete(_where(clients, days))

    def overwrite(self, table: str, day: int, batch: Any) -> None:
        _overwrite(self.opened(table), day, batch)

    def merge(self, table: str, batch: Any) -> None:
        merge = self.opened(table).merge(with_day(batch), predicate="t.key = s.key", source_alias="s", target_alias="t")
        merge.when_matched_update({"value": "s.value", "payload": "s.payload"}).when_not_matched_insert_all().execute()

    def compact(self, table: str) -> None:
        self.opened(table).optimize.compact()

    def begin(self, table: str, kind: str, argument: Any) -> Callable[[], None]:
        """A table that was opened before, and not looked at again."""
        opened = self.opened(table)
        if kind == "delete":
            return lambda: opened.delete(_where(*argument)) and None
        if kind == "append":
            return lambda: write_deltalake(opened, with_day(argument), mode="append")
        return lambda: _overwrite(opened, *argument)

    def _query(self, table: str, text: str) -> pa.Table:
        found = QueryBuilder().register("t", self.opened(table)).execute(text)
        return pa.table(found.read_all() if hasattr(found, "read_all") else found)

    def totals(self, table: str, *, keys: bool = False) -> Totals:
        wanted = "count(*) AS a, sum(value) AS b" + (", count(DISTINCT key) AS c" if keys else "")
        (found,) = self._query(table, f"SELECT {wanted} FROM t").to_pylist()
        return Totals(int(found["a"]), float(found["b"] or 0), int(found["c"]) if keys else None)

    def scan(self, table: str) -> Groups:
        return groups_of(tuple(row.values()) for row in self._query(table, SCAN.format(table="t")).to_pylist())

    def look(self, table: str, day: int, client: int) -> tuple[int, float]:
        text = f"SELECT count(*) AS a, sum(value) AS b FROM t WHERE day = '{day_text(day)}' AND client = {client}"
        (found,) = self._query(table, text).to_pylist()
        return int(found["a"]), float(found["b"] or 0)

    def files(self, table: str) -> dict[str, int]:
        paths = [Path(path) for path in self.opened(table).file_uris()]
        return {str(path): path.stat().st_size for path in paths}

    def metadata_bytes(self, table: str) -> int:
        return folder_bytes(self.folder(table) / "_delta_log")

    def fabricate(self, table: str, files: int, days: int) -> None:
        delta_files(self.folder(table), files, days)

    def plan(self, table: str, day: int, *, cold: bool) -> int | None:
        if cold or table not in self._warm:
            self._warm[table] = self.opened(table)
        return len(self._warm[table].file_uris([("day", "=", day_text(day))]))

    def fabricate_versions(self, table: str, count: int) -> None:
        delta_versions(self.folder(table), count)

    def open_version(self, table: str, number: int) -> int:
        return len(self.opened(table, number).file_uris())


def _where(clients: list[int], days: tuple[int, int] | None) -> str:
    wanted = f"client IN ({', '.join(map(str, clients))})"
    if days is None:
        return wanted
    return f"day >= '{day_text(days[0])}' AND day < '{day_text(days[1])}' AND {wanted}"


def _overwrite(opened: DeltaTable, day: int, batch: pa.Table) -> None:
    write_deltalake(opened, with_day(batch), mode="overwrite", predicate=f"day = '{day_text(day)}'")
