"""DuckLake in process, with its catalog in a DuckDB file."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_ducklake

from benchmarks.peers.data import Totals, day_text
from benchmarks.peers.systems.base import FIELDS, SCAN, Groups, System, groups_of

_META = "__ducklake_metadata_lake"
_MISSING = re.compile(r"Cannot open file|No files found|No such file")


class DuckLake(System):
    """Tables partitioned by year, month and day; small writes go into the catalog, as is its default."""

    packages = ("duckdb", "duckdb-extension-ducklake")
    options = ""
    shares_catalog = True

    def __init__(self, root: Path, shared: Path) -> None:
        super().__init__(root, shared)
        folder = Path(duckdb_extension_ducklake.__file__).parent / "extensions" / f"v{duckdb.__version__}"
        (extension,) = folder.glob("ducklake*")
        self.connection = duckdb.connect()
        self.connection.execute(f"SET TimeZone = 'UTC'; SET threads = 2; LOAD '{extension}'")
        self._attach()

    def _attach(self) -> None:
        self.connection.execute(
            f"ATTACH 'ducklake:{self.root}/catalog.ducklake' AS lake (DATA_PATH '{self.root}/data/'{self.options})"
        )

    def close(self) -> None:
        self.connection.close()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection for one operation: threads must not share one."""
        made = self.connection.cursor()
        made.execute("SET TimeZone = 'UTC'")
        return made

    def run(self, text: str) -> list[Any]:
        return self.cursor().execute(text).fetchall()

    def create(self, table: str) -> None:
        self.run(
            f"CREATE TABLE lake.{table} (ts TIMESTAMPTZ, client BIGINT, key VARCHAR, value DOUBLE, payload VARCHAR)"
        )
        self.run(f"ALTER TABLE lake.{table} SET PARTITIONED BY (year(ts), month(ts), day(ts))")

    def drop(self, table: str) -> None:
        paths = [Path(path) for path in self.files(table)]
        self.run(f"DROP TABLE lake.{table}")
        for path in paths:
            path.unlink(missing_ok=True)

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        if scatter:
            for path in files:
                self.run(f"INSERT INTO lake.{table} SELECT {FIELDS} FROM read_parquet('{path}')")
        else:
            self.run(f"INSERT INTO lake.{table} SELECT {FIELDS} FROM read_parquet({files})")

    def append(self, table: str, batch: Any) -> None:
        cursor = self.cursor()
        cursor.register("given", batch)
        cursor.execute(f"INSERT INTO lake.{table} SELECT * FROM given")

    def delete(self, table: str, clients: list[int], days: tuple[int, int] | None = None) -> None:
        self.run(f"DELETE FROM lake.{table} WHERE {_where(clients, days)}")

    def overwrite(self, table: str, day: int, batch: Any) -> None:
        cursor = self.cursor()
        cursor.execute("BEGIN")
        _overwrite(cursor, table, day, batch)

    def merge(self, table: str, batch: Any) -> None:
        cursor = self.cursor()
        cursor.register("s", batch)
        cursor.execute(
            f"MERGE INTO lake.{table} t USING s ON t.key = s.key "
            "WHEN MATCHED THEN UPDATE SET value = s.value, payload = s.payload "
            f"WHEN NOT MATCHED THEN INSERT ({FIELDS}) VALUES (s.ts, s.client, s.key, s.value, s.payload)"
        )

    def compact(self, table: str) -> None:
        self.run(f"CALL ducklake_merge_adjacent_files('lake', '{table}')")

    def begin(self, table: str, kind: str, argument: Any) -> Callable[[], None]:
        """A transaction that has looked at the table."""
        cursor = self.cursor()
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT count(*) FROM lake.{table}").fetchall()

        def finish() -> None:
            if kind == "overwrite":
                _overwrite(cursor, table, *argument)
            elif kind == "delete":
                cursor.execute(f"DELETE FROM lake.{table} WHERE {_where(*argument)}")
                cursor.execute("COMMIT")
            else:
                cursor.register("given", argument)
                cursor.execute(f"INSERT INTO lake.{table} SELECT * FROM given")
                cursor.execute("COMMIT")

        return finish

    def totals(self, table: str, *, keys: bool = False) -> Totals:
        wanted = "count(*), sum(value)" + (", count(DISTINCT key)" if keys else "")
        (found,) = self.run(f"SELECT {wanted} FROM lake.{table}")
        return Totals(int(found[0]), float(found[1] or 0), int(found[2]) if keys else None)

    def scan(self, table: str) -> Groups:
        return groups_of(self.run(SCAN.format(table=f"lake.{table}")))

    def look(self, table: str, day: int, client: int) -> tuple[int, float]:
        (found,) = self.run(
            f"SELECT count(*), sum(value) FROM lake.{table} WHERE {_between(day, day + 1)} AND client = {client}"
        )
        return int(found[0]), float(found[1] or 0)

    def files(self, table: str) -> dict[str, int]:
        listed = self.run(f"SELECT data_file, data_file_size_bytes FROM ducklake_list_files('lake', '{table}')")
        return {path: int(size) for path, size in listed if path is not None}

    def metadata_bytes(self, table: str) -> int:
        """The whole catalog, with the rows that it holds: take the difference of two looks."""
        self.run(f"CHECKPOINT {_META}")
        ((size,),) = self.run(
            f"SELECT used_blocks * block_size FROM pragma_database_size() WHERE database_name = '{_META}'"
        )
        return int(size)

    # Metadata at scale: rows written straight into the catalog's own tables

    def fabricate(self, table: str, files: int, days: int) -> None:
        self.create(table)
        ((number,),) = self.run(f"SELECT table_id FROM {_META}.ducklake_table WHERE table_name = '{table}'")
        snapshot, first = self.run(
            f"SELECT snapshot_id, next_file_id FROM {_META}.ducklake_snapshot ORDER BY 1 DESC LIMIT 1"
        )[0]
        ((part,),) = self.run(
            f"SELECT max(partition_id) FROM {_META}.ducklake_partition_info WHERE table_id = {number}"
        )
        made = (
            f"(SELECT {first} + range AS id, range AS i, DATE '{day_text(0)}' + CAST(range * {days} // {files} AS INT) "
            f"AS d FROM range({files}))"
        )
        self.run(
            f"INSERT INTO {_META}.ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative, "
            "file_format, record_count, file_size_bytes, footer_size, row_id_start, partition_id) "
            f"SELECT id, {number}, {snapshot}, 'f' || id || '.parquet', true, 'parquet', 1000, 50000, 500, i * 1000, "
            f"{part} FROM {made}"
        )
        for place, part_of in enumerate(("year", "month", "day")):
            self.run(
                f"INSERT INTO {_META}.ducklake_file_partition_value "
                f"SELECT id, {number}, {place}, CAST({part_of}(d) AS VARCHAR) FROM {made}"
            )
        bounds = {1: ("d || ' 00:00:00+00'", "d || ' 23:00:00+00'"), 2: ("'0'", "'9999'"), 4: ("'0.0'", "'999.75'")}
        for column, (low, high) in bounds.items():
            self.run(
                f"INSERT INTO {_META}.ducklake_file_column_stats (data_file_id, table_id, column_id, "
                "column_size_bytes, value_count, null_count, min_value, max_value) "
                f"SELECT id, {number}, {column}, 8000, 1000, 0, {low}, {high} FROM {made}"
            )
        statistics = f"{number}, {files * 1000}, {files * 1000}, {files * 50000}"
        self.run(f"INSERT INTO {_META}.ducklake_table_stats VALUES ({statistics})")
        self.run(f"UPDATE {_META}.ducklake_snapshot SET next_file_id = {first + files} WHERE snapshot_id = {snapshot}")

    def plan(self, table: str, day: int, *, cold: bool) -> int | None:
        """Files are listed when a scan begins: this ends when the first of them (which is missing) is asked for."""
        if cold:
            self._reattach()
        try:
            self.run(f"SELECT sum(client), min(key) FROM lake.{table} WHERE {_between(day, day + 1)}")
        except duckdb.Error as error:
            if not _MISSING.search(str(error)):
                raise
        return None

    def fabricate_versions(self, table: str, count: int) -> None:
        self.create(table)
        cursor = self.cursor()
        for number in range(count):
            cursor.execute(
                f"INSERT INTO lake.{table} VALUES (TIMESTAMPTZ '{day_text(number % 30)} 01:00:00+00', {number}, "
                f"'k{number}', 1.0, 'p')"
            )
        listed = cursor.execute("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1").fetchall()
        self._snapshots = [row[0] for row in listed][-count:]

    def open_version(self, table: str, number: int) -> int:
        self._reattach()
        (found,) = self.run(f"SELECT count(*) FROM lake.{table} AT (VERSION => {self._snapshots[number - 1]})")
        return int(found[0])

    def _reattach(self) -> None:
        self.connection.execute("DETACH lake")
        self._attach()


class DuckLakeFiles(DuckLake):
    """The same with every row in a file."""

    options = ", DATA_INLINING_ROW_LIMIT 0"


def _between(first: int, last: int) -> str:
    return f"ts >= TIMESTAMPTZ '{day_text(first)} 00:00:00+00' AND ts < TIMESTAMPTZ '{day_text(last)} 00:00:00+00'"


def _where(clients: list[int], days: tuple[int, int] | None) -> str:
    wanted = f"client IN ({', '.join(map(str, clients))})"
    return wanted if days is None else f"{_between(*days)} AND {wanted}"


def _overwrite(cursor: duckdb.DuckDBPyConnection, table: str, day: int, batch: Any) -> None:
    """In the transaction that is open; a failure leaves none."""
    cursor.register("given", batch)
    try:
        cursor.execute(f"DELETE FROM lake.{table} WHERE {_between(day, day + 1)}")
        cursor.execute(f"INSERT INTO lake.{table} SELECT * FROM given")
        cursor.execute("COMMIT")
    except duckdb.Error:
        with suppress(duckdb.TransactionException):  # a commit that failed has rolled back
            cursor.execute("ROLLBACK")
        raise
