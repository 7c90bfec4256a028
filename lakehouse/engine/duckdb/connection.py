"""Opening DuckDB: in memory, and with what is the same wherever the library runs it."""

from __future__ import annotations

from typing import Any

import duckdb

_SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_file_cache": "false",
    "python_enable_replacements": "false",
    # Of an outer join under IS NULL it makes an anti join that loses rows (duckdb/duckdb#24623, #25211; open in 2.0.0).
    "disabled_optimizers": "outer_join_simplification",
}


def open_memory(**more: Any) -> duckdb.DuckDBPyConnection:
    """A database of its own in memory, in UTC, that loads no extension and sees no Python variable.

    ``more`` are settings besides, by DuckDB's names.
    """
    connection = duckdb.connect(":memory:", config={**_SETTINGS, **more})
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection
