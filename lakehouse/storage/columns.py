"""Reads back a few columns of an operation's own files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.core.spec import ROW_ID, TableSpec
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.footer import DAMAGE
from lakehouse.storage.warehouse import Committed, Warehouse, fetched


def read_columns(warehouse: Warehouse, files: Sequence[Committed], names: Sequence[str], spec: TableSpec) -> pa.Table:
    """Columns of just-written files in the table's types; ``_row_id`` may be among them.

    Those that other machines wrote into a store are fetched, as far as the columns need.
    """
    held = spec.stored_names
    there = [held.get(name, name) for name in names]
    fields = [pa.field(ROW_ID, pa.int64()) if name == ROW_ID else spec.schema.field(name) for name in names]
    schema = pa.schema([field.remove_metadata() for field in fields])
    parts = []
    with fetched(warehouse, files, there):
        for one in files:
            try:
                with pq.ParquetFile(warehouse.root / one.path) as file:
                    parts.append(file.read(there).select(there).rename_columns(list(names)).cast(schema))
            except DAMAGE as error:
                raise SegmentUnreadable(
                    "a file that was just written cannot be read", path=one.path, cause=error
                ) from error
    return pa.concat_tables(parts) if parts else schema.empty_table()
