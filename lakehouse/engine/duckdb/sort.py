"""A plan's rows in an order, with bounded memory: DuckDB sorts them in a database of their own that spills to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa

from lakehouse.engine import Query
from lakehouse.engine.duckdb.result import DuckDBRows
from lakehouse.engine.order import SAMPLE_ROWS, plan_order

MEMORY = "1GB"
"""What a sort holds in memory."""


def sorted_batches(
    rows: DuckDBRows, query: Query, by: Sequence[str], *, memory: str = MEMORY
) -> Iterator[pa.RecordBatch]:
    """The rows by one column or the Z-order of several; for the latter, their columns are read twice.

    What is spilled goes at the end of the stream, or when it is given up.
    """
    if not len(query.plan.segments):
        return
    with tempfile.TemporaryDirectory(prefix="lakehouse-sort-") as folder:
        connection = duckdb.connect(
            ":memory:",
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "enable_external_file_cache": "false",
                "python_enable_replacements": "false",
                "memory_limit": memory,
                "temp_directory": folder,
            },
        )
        with connection:
            connection.execute("SET TimeZone = 'UTC'")
            sample = None
            if len(by) > 1:
                values = DuckDBRows(replace(query, columns=tuple(by), row_ids=False), connection.cursor)
                sample = values.sample(SAMPLE_ROWS, connection)
            order = plan_order(query.spec, query.plan, by, sample)
            yield from rows.ordered(order.duckdb, connection)
