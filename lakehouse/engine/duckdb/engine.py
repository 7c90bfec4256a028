"""The in-process engine: pyarrow writes, DuckDB reads. No server, no Spark."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import duckdb

from lakehouse.engine import Query, WriteTarget
from lakehouse.engine.duckdb.result import DuckDBRows
from lakehouse.engine.duckdb.source import tables
from lakehouse.engine.write import stored_schema, write_tables


class DuckDBEngine:
    """Writes anything that speaks Arrow, and reads plans lazily. Safe to share between threads."""

    dialect = "duckdb"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None

    def write(self, rows: Any, target: WriteTarget) -> Sequence[str]:
        """Write rows as durable Parquet files below the target's folder; return their names.

        Memory is bounded whatever the source's size. Raises `InvalidInput` for rows that the table cannot hold and
        `OSError` where the disk fails.
        """
        return write_tables(tables(rows, stored_schema(target).names), target)

    def read(self, query: Query) -> DuckDBRows:
        """The rows of the plan that pass; nothing is opened yet."""
        return DuckDBRows(query, self._cursor)

    def close(self) -> None:
        """Free what reads have kept. The engine can be used again."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of the caller's own to the engine's database, in UTC."""
        with self._lock:
            if self._database is None:
                self._database = duckdb.connect(
                    ":memory:",
                    config={
                        "autoinstall_known_extensions": "false",
                        "autoload_known_extensions": "false",
                        "enable_external_file_cache": "false",
                        "python_enable_replacements": "false",
                    },
                )
                self._database.execute("SET GLOBAL TimeZone = 'UTC'")
            return self._database.cursor()
