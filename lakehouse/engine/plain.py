"""Rows of files that are read as they are: nothing is hidden, filtered, renamed or of another type.

To decode such files column by column takes half the work that a statement over them takes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse.core.segment import Segment
from lakehouse.core.spec import ROW_ID
from lakehouse.engine import Query
from lakehouse.engine.hidden import Part

BATCH_ROWS = 65_536
_THREADS = min(4, os.cpu_count() or 1)
AHEAD_BYTES = 64 << 20
"""Of how many bytes, before they were packed, row groups are decoded whole, and how many bytes of rows ahead."""


def is_plain(query: Query, parts: Sequence[Part]) -> bool:
    """Whether all rows of a query's files are its rows, as far as the catalog knows."""
    if query.where is not None or query.warehouse.cache is not None or query.plan.interval is not None:
        return False  # a copy of an object may have some of its columns only
    return all(one.condition is None and not one.masks and not one.places and one.layout is None for one in parts)


def footers_that_fit(
    files: Mapping[str, Path], segments: Sequence[Segment], schema: pa.Schema
) -> list[pq.FileMetaData] | None:
    """The footers of files that all have the columns of a schema in exactly its types; None if one has not."""
    footers = []
    for segment in segments:
        with pq.ParquetFile(files[segment.path]) as file:
            footers.append(file.metadata)
            found = file.schema_arrow
        for field in schema:
            place = found.get_field_index(field.name)
            is_alike = place >= 0 and found.field(place).type.equals(field.type)
            if not is_alike and not (field.name == ROW_ID and not segment.has_row_ids):
                return None
    return footers


class _Group(NamedTuple):
    """A row group of a file, and the row id of its first row where it has none."""

    file: Path
    footer: pq.FileMetaData
    place: int
    columns: list[str]
    first: int


def plain_batches(
    files: Mapping[str, Path], segments: Sequence[Segment], footers: Sequence[pq.FileMetaData], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of files that fit, those of one after those of another, in the order that they have there.

    A row group that is large is decoded bit by bit; others some at a time, while those before them are made use of.
    """
    groups = list(_groups(files, segments, footers, schema))
    sizes = [one.footer.row_group(one.place).total_byte_size for one in groups]
    threads = min(_THREADS, len(groups))
    if threads < 2 or max(sizes) > AHEAD_BYTES:
        for group in groups:
            first = group.first
            with pq.ParquetFile(group.file, metadata=group.footer) as file:
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group.place], columns=group.columns):
                    yield _complete(batch, first, schema)
                    first += len(batch)
        return
    with ThreadPoolExecutor(threads, "lakehouse-decode") as pool:
        rest = iter(groups)
        coming = deque((one, pool.submit(_decoded, one)) for one in islice(rest, 1))
        try:
            while coming:
                group, decoded = coming.popleft()
                rows, first = decoded.result(), group.first
                ahead = min(threads, max(1, AHEAD_BYTES // max(rows.nbytes, 1)))  # long texts were told once, maybe
                coming.extend((one, pool.submit(_decoded, one)) for one in islice(rest, max(0, ahead - len(coming))))
                for batch in rows.to_batches(BATCH_ROWS):
                    yield _complete(batch, first, schema)
                    first += len(batch)
        finally:
            for _, decoded in coming:
                decoded.cancel()


def _groups(
    files: Mapping[str, Path], segments: Sequence[Segment], footers: Sequence[pq.FileMetaData], schema: pa.Schema
) -> Iterator[_Group]:
    for segment, footer in zip(segments, footers, strict=True):
        names = [one for one in schema.names if one != ROW_ID or segment.has_row_ids]
        first = segment.first_row_id
        for place in range(footer.num_row_groups):
            yield _Group(files[segment.path], footer, place, names, first)
            first += footer.row_group(place).num_rows


def _decoded(group: _Group) -> pa.Table:
    with pq.ParquetFile(group.file, metadata=group.footer) as file:
        return file.read_row_group(group.place, columns=group.columns, use_threads=False)


def _complete(batch: pa.RecordBatch, first: int, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with row ids, which are those of its places where it has none."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    if ROW_ID in schema.names:
        held = columns.get(ROW_ID)
        if held is None or held.null_count:
            by_place = pa.array(np.arange(first, first + len(batch)))
            columns[ROW_ID] = by_place if held is None else pc.coalesce(held, by_place)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
