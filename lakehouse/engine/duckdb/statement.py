"""Run the text of a query over relations, in a database of its own that can reach nothing but the warehouse."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from lakehouse.engine.duckdb import literals as sql
from lakehouse.engine.duckdb.connection import open_memory
from lakehouse.errors import InvalidInput, InvalidStatement, SegmentUnreadable

Bind = Callable[[duckdb.DuckDBPyConnection], duckdb.DuckDBPyRelation]
_BATCH_ROWS = 2048
_PART_OF_MEMORY = 70
"""Per cent of a query's memory that DuckDB may know of; text and results that it does not count need the rest."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What a query may cost at most; rows and bytes beyond are left out, and for want of memory it fails."""

    rows: int
    bytes: int
    memory: int


def run_query(text: str, relations: Mapping[str, Bind], warehouse: Path) -> duckdb.DuckDBPyRelation:
    """The rows of a query, lazily. ``text`` names each relation by its key, in double quotes.

    Raises `InvalidInput` for what DuckDB refuses. Sums of integers are 64 bits wide, as in Spark.
    """
    return _bound(open_memory(), text, relations, warehouse)


def run_limited(
    text: str, relations: Mapping[str, Bind], warehouse: Path, limits: QueryLimits
) -> tuple[pa.Table, bool]:
    """The first rows of a query, and whether there are more. It gets no place on the disk, and of the memory a part.

    Raises `InvalidInput` for what DuckDB refuses. Nothing here measures time: who has to end it ends the process.
    """
    memory = f"{limits.memory * _PART_OF_MEMORY // 100}B"
    connection = open_memory(memory_limit=memory, temp_directory="")
    try:
        found = _bound(connection, text, relations, warehouse).limit(limits.rows + 1)
        return _first(found.to_arrow_reader(_BATCH_ROWS), limits)
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    except duckdb.Error as error:
        raise explained(error) from error
    finally:
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
    taken = min(rows, limits.rows)
    if size > limits.bytes:
        taken = bisect_right(range(1, taken + 1), limits.bytes, key=lambda count: found.slice(0, count).nbytes)
    return found.slice(0, taken), taken < rows


def _bound(
    connection: duckdb.DuckDBPyConnection, text: str, relations: Mapping[str, Bind], warehouse: Path
) -> duckdb.DuckDBPyRelation:
    for name, bind in relations.items():
        bind(connection).create_view(name)
    connection.execute(f"SET allowed_directories = [{sql.text(str(warehouse))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    try:
        statements = duckdb.extract_statements(text)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InvalidStatement("one query at a time")
        rows = connection.sql(text)
        return _narrowed(rows)
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise explained(error) from error


def explained(error: duckdb.Error) -> InvalidInput | SegmentUnreadable:
    """What DuckDB refuses, or cannot read, as an error of ours. It can reach no file but the tables' own."""
    cause = str(error).split("\n", maxsplit=1)[0][:300]
    if isinstance(error, duckdb.IOException):
        return SegmentUnreadable("data file is missing or malformed; restore it from a copy", cause=cause)
    return InvalidStatement(
        'the in-process engine refuses the statement; correct it, or use engine="spark"', cause=cause
    )


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
