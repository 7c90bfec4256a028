"""A plan's rows in an order, with bounded memory: DuckDB sorts them in a database of their own that spills to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import duckdb
import pyarrow as pa

from lakehouse.core.spec import ROW_ID
from lakehouse.engine import Query
from lakehouse.engine.duckdb.connection import open_memory
from lakehouse.engine.duckdb.result import DuckDBRows
from lakehouse.engine.duckdb.room import SORTS
from lakehouse.engine.order import SAMPLE_ROWS, plan_order

MEMORY = "1GB"
"""What a sort holds in memory."""
SMALL_BYTES = 16 << 20
"""What is no larger in files is sorted in the engine's own database: to start one takes longer than that."""


def sorted_batches(
    rows: DuckDBRows,
    query: Query,
    by: Sequence[str],
    cursor: Callable[[], duckdb.DuckDBPyConnection],
    *,
    memory: str = MEMORY,
    small_bytes: int = SMALL_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The rows by one column or the Z-order of several; for the latter, their columns are read twice.

    What is spilled goes at the end of the stream, or when it is given up.
    """
    if not len(query.plan.segments):
        return
    if query.plan.segments.bytes <= small_bytes:
        with cursor() as connection:
            yield from _sorted(rows, query, by, connection)
        return
    with _spilling(memory) as connection:
        yield from _sorted(rows, query, by, connection)


def rows_by_id(rows: DuckDBRows) -> Iterator[pa.RecordBatch]:
    """A plan's rows with their ids, in the order of these."""
    with _spilling(MEMORY) as connection:
        yield from rows.ordered([ROW_ID], connection)


@contextmanager
def _spilling(memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    with (
        tempfile.TemporaryDirectory(prefix=SORTS) as folder,
        open_memory(memory_limit=memory, temp_directory=folder) as connection,
    ):
        yield connection


def _sorted(
    rows: DuckDBRows, query: Query, by: Sequence[str], connection: duckdb.DuckDBPyConnection
) -> Iterator[pa.RecordBatch]:
    sample = None
    if len(by) > 1:
        values = DuckDBRows(replace(query, columns=tuple(by), row_ids=False), connection.cursor)
        sample = values.sample(SAMPLE_ROWS, connection)
    order = plan_order(query.spec, query.plan, by, sample)
    yield from rows.ordered(order.duckdb, connection)
