"""Telling frames apart without importing what made them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakehouse.arguments import is_of


def is_spark_frame(rows: Any) -> bool:
    """Whether rows are a Spark DataFrame, classic or Connect. Does not import PySpark.

    >>> is_spark_frame([1, 2])
    False
    """
    return is_of(rows, "pyspark.sql", "DataFrame")


def first_rows(batches: pa.RecordBatchReader, most: int) -> pa.Table:
    """The first rows of a stream, of which no more is read than they take.

    >>> first_rows(pa.table({"n": [1, 2, 3]}).to_reader(max_chunksize=2), 1).to_pydict()
    {'n': [1]}
    """
    found: list[pa.RecordBatch] = []
    while most > 0 and (batch := next(batches, None)) is not None:
        found.append(batch.slice(0, most))
        most -= found[-1].num_rows
    return pa.Table.from_batches(found, batches.schema)


def row_count(rows: Any) -> int | None:
    """How many rows there are, where that is known without reading any.

    >>> row_count(pa.table({"n": [1, 2]})), row_count(iter([1, 2]))
    (2, None)
    """
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return int(rows.num_rows)
    is_frame = is_of(rows, "pandas", "DataFrame") or is_of(rows, "polars", "DataFrame")
    return len(rows) if is_frame or isinstance(rows, list) else None
