"""What the catalog knows, as tables that queries can name: their columns, and which of them have versions."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

CATALOG, SCHEMA = "lakehouse", "default"
"""The lake's one catalog, and the one schema that every table is in: its name may stand before a table's."""
INFORMATION = "information_schema"
_TIME = pa.timestamp("us", "UTC")
_SPAN = [("start", _TIME), ("end", _TIME)]


def _numbers(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.int64()) for name in names]


def _texts(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.string()) for name in names]


OF_TABLES: Mapping[str, pa.Schema] = {
    "segments": pa.schema(
        [*_numbers("id"), *_SPAN, *_numbers("ordinal", "rows", "bytes"), *_texts("path"), *_numbers("first_row_id"),
         ("has_row_ids", pa.bool_()), *_texts("min", "max", "nulls", "buckets"), *_numbers("rewrites"),
         *_texts("codec")]
    ),
    "tombstones": pa.schema(
        [*_numbers("id"), *_texts("kind"), *_SPAN, *_numbers("ordinal"), *_texts("keys"), *_numbers("rows", "bytes"),
         *_texts("path", "min", "max")]
    ),
    "chunks": pa.schema([*_SPAN, *_numbers("version", "segments", "rows", "bytes", "tombstones")]),
    "history": pa.schema(
        [*_numbers("version"), *_texts("operation"), ("committed_at", _TIME), ("tables", pa.list_(pa.string())),
         *_numbers("added", "dropped", "rows_added", "rows_deleted", "tombstones_added", "tombstones_dropped"),
         *_texts("message", "properties", "txn"), *_numbers("bytes_added"), ("is_exact", pa.bool_())]
    ),
    "key_frames": pa.schema([*_SPAN, *_numbers("version", "entries", "bytes")]),
}  # fmt: skip
"""``t.segments`` and such, by what stands after the table's name."""
CHANGES = "changes"
"""``t.changes``, which has the table's columns, too."""
WITH_VERSIONS = ("segments", "tombstones", "chunks", CHANGES)
COMMIT_VERSION, COMMIT_TIMESTAMP = "_commit_version", "_commit_timestamp"
OF_LAKE: Mapping[str, pa.Schema] = {
    "schemata": pa.schema(_texts("catalog_name", "schema_name")),
    "tables": pa.schema(_texts("table_catalog", "table_schema", "table_name", "table_type")),
    "views": pa.schema(
        [*_texts("table_catalog", "table_schema", "table_name", "view_definition", "comment"), *_numbers("version")]
    ),
    "versions": pa.schema(
        [*_numbers("version"), *_texts("operation"), ("committed_at", _TIME), ("tables", pa.list_(pa.string())),
         ("tags", pa.list_(pa.string())), *_numbers("added", "dropped", "rows_added", "rows_deleted"),
         *_texts("message", "properties")]
    ),
    "columns": pa.schema(
        [*_texts("table_catalog", "table_schema", "table_name", "column_name"), ("ordinal_position", pa.int32()),
         *_texts("column_default", "is_nullable", "data_type", "comment")]
    ),
}  # fmt: skip
"""``information_schema.tables`` and such."""


def changes_schema(table: pa.Schema) -> pa.Schema:
    """The columns of a table's changes.

    >>> changes_schema(pa.schema([("client", pa.int64())])).names
    ['client', '_change_type', '_commit_version', '_commit_timestamp']
    """
    added = [*_texts("_change_type"), *_numbers(COMMIT_VERSION), (COMMIT_TIMESTAMP, _TIME)]
    return pa.schema([*table, *map(pa.field, *zip(*added, strict=True))])


def schema_of(system: str) -> pa.Schema:
    """The columns of a system table.

    >>> schema_of("chunks").names[:3], schema_of("information_schema.schemata").names
    (['start', 'end', 'version'], ['catalog_name', 'schema_name'])
    """
    prefix, _, name = system.rpartition(".")
    return OF_LAKE[name] if prefix else OF_TABLES[name]
