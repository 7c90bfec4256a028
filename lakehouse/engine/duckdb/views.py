"""A database of the caller's own, with what the library's queries see as views."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import duckdb

from lakehouse.engine.duckdb import literals as sql
from lakehouse.engine.duckdb.connection import open_memory
from lakehouse.errors import InternalError, SegmentUnreadable

VERSION_FUNCTION = "lake_version"


def connection_with(views: Mapping[str, str], version: Callable[[], int]) -> duckdb.DuckDBPyConnection:
    """A new database in memory with a view for each text of a query, and a function `lake_version`.

    The database keeps ``version``, which that function calls, until the connection is closed or gone. It may do what
    its owner's process may: nothing confines it, but it loads no extension by itself. Raises `SegmentUnreadable` for a
    file that is gone, `InternalError` for another that cannot be read.
    """
    connection = open_memory(python_enable_replacements="true")
    try:
        for name, text in views.items():
            connection.execute(f"CREATE VIEW {sql.name(name)} AS {text}")
        connection.create_function(VERSION_FUNCTION, version, [], "BIGINT")
    except duckdb.Error as error:
        connection.close()
        cause = str(error).split("\n", maxsplit=1)[0][:300]
        if isinstance(error, duckdb.IOException):
            raise SegmentUnreadable("data file is missing; restore it from a copy", cause=cause) from error
        raise InternalError("the in-process engine refuses a view", cause=cause) from error
    return connection
