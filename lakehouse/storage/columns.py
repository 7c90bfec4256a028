"""Reads back a few columns of an operation's own files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.core.spec import ROW_ID, TableSpec
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.footer import DAMAGE
from lakehouse.storage.warehouse import Warehouse


def read_columns(warehouse: Warehouse, paths: Sequence[str], names: Sequence[str], spec: TableSpec) -> pa.Table:
    """Columns of just-written files in the table's types; ``_row_id`` may be among them."""
    held = spec.stored_names
    there = [held.get(name, name) for name in names]
    fields = [pa.field(ROW_ID, pa.int64()) if name == ROW_ID else spec.schema.field(name) for name in names]
    schema = pa.schema([field.remove_metadata() for field in fields])
    parts = []
    for stored in paths:
        try:
            with pq.ParquetFile(warehouse.root / stored) as file:
                parts.append(file.read(there).select(there).rename_columns(list(names)).cast(schema))
        except DAMAGE as error:
            raise SegmentUnreadable("a file that was just written cannot be read", path=stored, cause=error) from error
    return pa.concat_tables(parts) if parts else schema.empty_table()
