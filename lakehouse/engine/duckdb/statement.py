"""Run the text of a query over relations, in a database of its own that can reach nothing but the warehouse."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from lakehouse.engine.duckdb import literals as sql
from lakehouse.errors import InvalidInput

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_file_cache": "false",
    "python_enable_replacements": "false",
}
Bind = Callable[[duckdb.DuckDBPyConnection], duckdb.DuckDBPyRelation]
_BATCH_ROWS = 2048
_MEMORY = "1GB"


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What a query may cost at most; rows and bytes beyond are left out, time beyond stops it."""

    rows: int
    bytes: int
    seconds: float


def run_query(text: str, relations: Mapping[str, Bind], warehouse: Path) -> duckdb.DuckDBPyRelation:
    """The rows of a query, lazily. ``text`` names each relation by its key, in double quotes.

    Raises `InvalidInput` for what DuckDB refuses. Sums of integers are 64 bits wide, as in Spark.
    """
    return _bound(duckdb.connect(":memory:", config=_SETTINGS), text, relations, warehouse)


def run_limited(
    text: str, relations: Mapping[str, Bind], warehouse: Path, limits: QueryLimits
) -> tuple[pa.Table, bool]:
    """The first rows of a query, and whether there are more. It gets a gigabyte of memory and no place on the disk.

    Raises `InvalidInput` for what DuckDB refuses, and where the time is over.
    """
    connection = duckdb.connect(":memory:", config={**_SETTINGS, "memory_limit": _MEMORY, "temp_directory": ""})
    is_over = threading.Event()

    def stop() -> None:
        is_over.set()
        connection.interrupt()

    clock = threading.Timer(limits.seconds, stop)
    clock.daemon = True
    clock.start()
    try:
        found = _bound(connection, text, relations, warehouse).limit(limits.rows + 1)
        return _first(found.to_arrow_reader(_BATCH_ROWS), limits)
    except (duckdb.Error, pa.ArrowException, InvalidInput) as error:
        if is_over.is_set():
            raise InvalidInput(
                "the query was stopped, for it took too long; ask for less time or fewer columns, or run it with Spark",
                most_seconds=limits.seconds,
            ) from error
        raise explained(error) if isinstance(error, duckdb.Error) else error from error
    finally:
        clock.cancel()
        connection.close()


def _first(reader: pa.RecordBatchReader, limits: QueryLimits) -> tuple[pa.Table, bool]:
    batches: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in reader:
        batches.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows > limits.rows or size > limits.bytes:
            break
    found = pa.Table.from_batches(batches, reader.schema)
    if size > limits.bytes:
        return found.slice(0, min(limits.rows, int(rows * limits.bytes / size))), True
    return found.slice(0, limits.rows), rows > limits.rows


def _bound(
    connection: duckdb.DuckDBPyConnection, text: str, relations: Mapping[str, Bind], warehouse: Path
) -> duckdb.DuckDBPyRelation:
    connection.execute("SET TimeZone = 'UTC'")
    for name, bind in relations.items():
        bind(connection).create_view(name)
    connection.execute(f"SET allowed_directories = [{sql.text(str(warehouse))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    try:
        statements = duckdb.extract_statements(text)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InvalidInput("one query at a time")
        rows = connection.sql(text)
        return _narrowed(rows)
    except duckdb.Error as error:
        raise explained(error) from error


def explained(error: duckdb.Error) -> InvalidInput:
    """What DuckDB refuses, as an error of ours."""
    cause = str(error).split("\n", maxsplit=1)[0][:300]
    return InvalidInput('the in-process engine refuses the statement; correct it, or use engine="spark"', cause=cause)


def read_relation(rows: duckdb.DuckDBPyRelation) -> pa.Table:
    """All rows of a query. Raises `InvalidInput` where the query fails on some row."""
    try:
        return rows.to_arrow_table()
    except duckdb.Error as error:
        raise explained(error) from error


def _narrowed(rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    wide = [str(kind) == "HUGEINT" for kind in rows.types]
    if not any(wide):
        return rows
    columns = [f"#{place}" for place in range(1, len(wide) + 1)]
    listed = [
        f"CAST({column} AS BIGINT) AS {sql.name(name)}" if is_wide else column
        for column, name, is_wide in zip(columns, rows.columns, wide, strict=True)
    ]
    return rows.project(sql.listed(listed))
