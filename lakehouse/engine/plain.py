"""Rows of files that are read as they are: nothing is hidden, filtered, renamed or of another type.

To decode such files column by column takes half the work that a statement over them takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse.core.segment import Segment
from lakehouse.core.spec import ROW_ID
from lakehouse.engine import Query
from lakehouse.engine.hidden import Part

BATCH_ROWS = 65_536


def is_plain(query: Query, parts: Sequence[Part]) -> bool:
    """Whether all rows of a query's files are its rows, as far as the catalog knows."""
    if query.where is not None or query.warehouse.cache is not None or query.plan.interval is not None:
        return False  # a copy of an object may have some of its columns only
    return all(one.condition is None and not one.masks and not one.places and one.layout is None for one in parts)


def fits(files: Mapping[str, Path], segments: Sequence[Segment], schema: pa.Schema) -> bool:
    """Whether every file has the columns of a schema in exactly its types. Cost: the footers."""
    for segment in segments:
        with pq.ParquetFile(files[segment.path]) as file:
            found = file.schema_arrow
        for field in schema:
            place = found.get_field_index(field.name)
            is_alike = place >= 0 and found.field(place).type.equals(field.type)
            if not is_alike and not (field.name == ROW_ID and not segment.has_row_ids):
                return False
    return True


def plain_batches(
    files: Mapping[str, Path], segments: Sequence[Segment], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of files that fit, those of one after those of another, in the order that they have there."""
    for segment in segments:
        names = [one for one in schema.names if one != ROW_ID or segment.has_row_ids]
        place = segment.first_row_id
        with pq.ParquetFile(files[segment.path]) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                yield _complete(batch, place, schema)
                place += len(batch)


def _complete(batch: pa.RecordBatch, first: int, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with row ids, which are those of its places where it has none."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    if ROW_ID in schema.names:
        held = columns.get(ROW_ID)
        if held is None or held.null_count:
            by_place = pa.array(np.arange(first, first + len(batch)))
            columns[ROW_ID] = by_place if held is None else pc.coalesce(held, by_place)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
