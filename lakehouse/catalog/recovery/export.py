"""Reads the contents of an export from one state of the catalog, as a few streams of Arrow batches.

An export is named parts, each one Arrow table: the catalog's small tables unchanged, and `PAGES`, the states of the
head and of every tagged version as pages of key frames. A page that several versions share is stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy import (
    BigInteger,
    Boolean,
    Connection,
    Integer,
    LargeBinary,
    Select,
    SmallInteger,
    Table,
    Text,
    select,
)

from lakehouse import progress
from lakehouse.catalog.state.bins import BinState, StateReader
from lakehouse.catalog.state.key_frames import frame_of
from lakehouse.catalog.store.models import (
    bin,  # noqa: A004 - the word of the scheme
    commit_log,
    commit_table,
    garbage,
    key_frame,
    lake,
    lake_table,
    lake_view,
    operation,
    table_schema,
    tag,
    tombstone_set,
    txn,
)
from lakehouse.catalog.store.rows import spec_from_row
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import TableSpec
from lakehouse.errors import InternalError

Part = Iterator[pa.RecordBatch]
WritePart = Callable[[str, pa.Schema, Part], None]
"""Stores a part under a name; storing it again replaces it."""

PLAIN = (
    lake, lake_table, table_schema, lake_view, operation, commit_log, commit_table, txn, tag, garbage, tombstone_set,
)  # fmt: skip
"""Tables that an export holds row by row, in order of references."""
PAGES = key_frame.name
_ROWS = 50_000
"""How many rows one batch has."""
_BINS = 512
"""How many bins' states are in memory at once."""
_PAGE_BYTES = 16 << 20
_TYPES: tuple[tuple[type, pa.DataType], ...] = (
    (SmallInteger, pa.int16()),
    (BigInteger, pa.int64()),
    (Integer, pa.int64()),
    (Boolean, pa.bool_()),
    (Text, pa.string()),
    (LargeBinary, pa.binary()),
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was written: the version, the folders of its tables (including dropped ones), and the number of segments."""

    version: int
    folders: tuple[str, ...]
    segments: int


def export(connection: Connection, write: WritePart) -> Snapshot:
    """Write every part of an export from one state of the catalog.

    Cost: what is live at the head and the tags, and a row a version; memory for a few hundred bins of it.
    """
    head: int = connection.execute(select(lake.c.head)).scalar_one()
    tables = connection.execute(select(lake_table).order_by(lake_table.c.id)).all()
    with progress.step("export", "tables", len(PLAIN) + len(tables)) as step:
        for table in progress.counted(PLAIN, step):
            write(table.name, part_schema(table), _batches(connection, table))
        tagged = [one.version for one in connection.execute(select(tag.c.version))]
        counted = _Counted()
        pages = chain.from_iterable(
            _pages(connection, spec_from_row(row), _versions(row, head, tagged), counted)
            for row in progress.counted(tables, step)
        )
        write(PAGES, part_schema(key_frame), _paged(pages))
    return Snapshot(head, tuple(row.folder for row in tables), counted.segments)


def part_schema(table: Table) -> pa.Schema:
    """The columns of a table of the catalog in Arrow's types."""
    return pa.schema([pa.field(column.name, _type(column.type), column.nullable) for column in table.columns])


def _type(kind: Any) -> pa.DataType:
    for known, arrow in _TYPES:
        if isinstance(kind, known):
            return arrow
    raise InternalError("a column of the catalog has a type that exports do not know", type=str(kind))


def _batches(connection: Connection, table: Table) -> Part:
    """A table's rows. Running operations are left out, because their outcome is unknown."""
    query: Select[Any] = select(table).order_by(*table.primary_key.columns)
    if table is operation:
        query = query.where(operation.c.state != "running")
    schema = part_schema(table)
    result = connection.execute(query.execution_options(yield_per=_ROWS))
    for rows in result.partitions():
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _versions(row: Any, head: int, tagged: Sequence[int]) -> list[int]:
    """The versions whose state of a table is exported: tagged ones at which it existed, and the head if it exists."""
    end = row.dropped_version
    kept = {one for one in tagged if one >= row.created_version and (end is None or one < end)}
    return sorted(kept if end is not None else kept | {head})


class _Counted:
    """How many distinct segments were written."""

    def __init__(self) -> None:
        self.segments = 0


def _pages(
    connection: Connection, spec: TableSpec, versions: Sequence[int], counted: _Counted
) -> Iterator[dict[str, Any]]:
    """Rows of `models.key_frame`, each bin's in order of versions."""
    if not versions:
        return
    bins = connection.execute(select(bin.c.bin).where(bin.c.table_id == spec.id).order_by(bin.c.bin)).scalars().all()
    ids: list[IntArray] = []
    for start in range(0, len(bins), _BINS):
        group = bins[start : start + _BINS]
        reader, written = StateReader(), set()
        for version in versions:
            states = reader.read(connection, spec, version, [(group[0], group[-1])])
            for state in states.values():
                if (state.bin, state.version) not in written:
                    written.add((state.bin, state.version))
                    ids.append(state.segments.ids)
                    yield _page(spec, state)
    counted.segments += len(np.unique(np.concatenate(ids))) if ids else 0


def _page(spec: TableSpec, state: BinState) -> dict[str, Any]:
    entries, page = frame_of(state, spec)
    return {"table_id": spec.id, "bin": state.bin, "version": state.version, "entries": entries, "page": page}


def _paged(pages: Iterator[dict[str, Any]]) -> Part:
    """Rows of pages in batches of bounded size."""
    schema = part_schema(key_frame)
    held: list[dict[str, Any]] = []
    held_bytes = 0
    for page in pages:
        held.append(page)
        held_bytes += len(page["page"])
        if held_bytes > _PAGE_BYTES or len(held) >= _ROWS:
            yield pa.RecordBatch.from_pylist(held, schema=schema)
            held, held_bytes = [], 0
    if held:
        yield pa.RecordBatch.from_pylist(held, schema=schema)
