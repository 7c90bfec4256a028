"""Rows of a Parquet file in batches of bounded size, however well the file is compressed.

A dictionary stores each text once and compression removes repeats, so a file of some kilobytes can hold gigabytes.
Texts are read as dictionary indices and expanded a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BATCH_BYTES = 32 << 20
"""Approximate size of a batch; a larger row is a batch by itself."""
_BATCH_ROWS = 1 << 16


def open_parquet(path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of a Parquet file, and its rows in batches of at most about `BATCH_BYTES`."""
    schema = pq.read_schema(path)
    texts = [field.name for field in schema if _is_text(field.type) and schema.names.count(field.name) == 1]
    file = pq.ParquetFile(path, read_dictionary=texts)
    rows = min(_BATCH_ROWS, max(1, BATCH_BYTES // max(1, _row_bytes(file.metadata))))
    return schema, _batches(file, schema, rows)


def count_rows(path: Path) -> int:
    """How many rows a Parquet file has, by its footer."""
    return int(pq.read_metadata(path).num_rows)


def _batches(file: pq.ParquetFile, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    with file:
        for batch in file.iter_batches(rows):
            for part in _parts(batch):
                columns = [
                    column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
                    for column in part.columns
                ]
                yield pa.record_batch(
                    [column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
                )


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices of a batch that stay below the size even after dictionary-encoded texts are expanded."""
    ends = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and column.dictionary.nbytes > 0:
            lengths = pc.binary_length(column.dictionary).take(column.indices).fill_null(0)
            ends += lengths.cast(pa.int64()).to_numpy(zero_copy_only=False)
    np.cumsum(ends, out=ends)
    start = 0
    while start < batch.num_rows:
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
        yield batch.slice(start, end - start)
        start = end


def _row_bytes(metadata: pq.FileMetaData) -> int:
    """Bytes of a row, before compression, in the row group with the largest rows."""
    groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
    return max((one.total_byte_size // max(1, one.num_rows) for one in groups), default=1)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
