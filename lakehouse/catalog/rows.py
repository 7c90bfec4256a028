"""Rows of the catalog turned into core values, and back."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from lakehouse.catalog.encoding import (
    decode_keys,
    decode_statistics,
    encode_keys,
    encode_statistics,
)
from lakehouse.core.chunk import Grain
from lakehouse.core.interval import from_us
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.schema import schema_from_json, schema_to_json

Entry = Segment | Tombstone

_PAGE = pa.schema(
    [
        ("kind", pa.string()),
        ("id", pa.int64()),
        ("path", pa.string()),
        ("start_us", pa.int64()),
        ("end_us", pa.int64()),
        ("ordinal", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("first_row_id", pa.int64()),
        ("has_row_ids", pa.bool_()),
        ("text", pa.string()),
    ]
)
_PLAIN = pa.ipc.IpcWriteOptions()
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_WORTH_COMPRESSING = 32
"""Entries from which compression saves more than it costs."""


def segment_from_row(row: Any) -> Segment:
    """A segment from a row with the columns of `models.segment`."""
    return _segment(
        row.id,
        row.path,
        row.start_us,
        row.end_us,
        row.ordinal,
        row.rows,
        row.bytes,
        row.first_row_id,
        row.has_row_ids,
        row.statistics,
    )


def _segment(
    entry: int,
    path: str,
    start_us: int,
    end_us: int,
    ordinal: int,
    rows: int,
    size: int,
    first: int,
    stored: bool,
    text: str,
) -> Segment:
    low, high, nulls = decode_statistics(text)
    return Segment(
        id=entry,
        start=from_us(start_us),
        end=from_us(end_us),
        ordinal=ordinal,
        rows=rows,
        bytes=size,
        path=path,
        first_row_id=first,
        has_row_ids=bool(stored),
        min=low,
        max=high,
        nulls=nulls,
    )


def segment_values(segment: Segment, table: TableId, operation: int) -> dict[str, Any]:
    """The columns of `models.segment`."""
    return {
        "id": segment.id,
        "table_id": table,
        "operation": operation,
        "path": segment.path,
        "start_us": segment.interval.start_us,
        "end_us": segment.interval.end_us,
        "ordinal": segment.ordinal,
        "rows": segment.rows,
        "bytes": segment.bytes,
        "first_row_id": segment.first_row_id,
        "has_row_ids": segment.has_row_ids,
        "statistics": encode_statistics(segment.min, segment.max, segment.nulls),
    }


def tombstone_from_row(row: Any) -> Tombstone:
    """A tombstone from a row with the columns of `models.tombstone`."""
    return Tombstone(
        id=row.id,
        kind=row.kind,
        start=from_us(row.start_us),
        end=from_us(row.end_us),
        ordinal=row.ordinal,
        keys=decode_keys(row.keys),
        rows=row.rows,
    )


def tombstone_values(tombstone: Tombstone, table: TableId, operation: int) -> dict[str, Any]:
    """The columns of `models.tombstone`."""
    return {
        "id": tombstone.id,
        "table_id": table,
        "operation": operation,
        "kind": tombstone.kind,
        "start_us": tombstone.interval.start_us,
        "end_us": tombstone.interval.end_us,
        "ordinal": tombstone.ordinal,
        "keys": encode_keys(tombstone.keys),
        "rows": tombstone.rows,
    }


def encode_page(entries: list[Entry]) -> bytes:
    """A key frame's page: its entries as one Arrow table, compressed where that pays."""
    columns: list[list[Any]] = [[] for _ in _PAGE]
    for entry in entries:
        span = entry.interval
        if isinstance(entry, Segment):
            text: str | None = encode_statistics(entry.min, entry.max, entry.nulls)
            values: tuple[Any, ...] = (
                "segment",
                entry.id,
                entry.path,
                span.start_us,
                span.end_us,
                entry.ordinal,
                entry.rows,
                entry.bytes,
                entry.first_row_id,
                entry.has_row_ids,
                text,
            )
        else:
            text = encode_keys(entry.keys)
            values = (
                entry.kind,
                entry.id,
                None,
                span.start_us,
                span.end_us,
                entry.ordinal,
                entry.rows,
                None,
                None,
                None,
                text,
            )
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    sink = pa.BufferOutputStream()
    options = _COMPRESSED if len(entries) >= _WORTH_COMPRESSING else _PLAIN
    with pa.ipc.new_stream(sink, _PAGE, options=options) as writer:
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _PAGE, strict=True)]
        writer.write_batch(pa.record_batch(arrays, schema=_PAGE))
    return bytes(sink.getvalue())


def decode_page(page: bytes) -> list[Entry]:
    """The inverse of `encode_page`."""
    table = pa.ipc.open_stream(page).read_all()
    entries: list[Entry] = []
    for kind, entry, path, start, end, ordinal, rows, size, first, stored, text in zip(
        *(column.to_pylist() for column in table.columns), strict=True
    ):
        if kind == "segment":
            entries.append(_segment(entry, path, start, end, ordinal, rows, size, first, stored, text))
        else:
            entries.append(
                Tombstone(
                    id=entry,
                    kind=kind,
                    start=from_us(start),
                    end=from_us(end),
                    ordinal=ordinal,
                    keys=decode_keys(text),
                    rows=rows,
                )
            )
    return entries


def spec_from_row(row: Any) -> TableSpec:
    """A table's definition from a row of `models.lake_table`."""
    held = json.loads(row.definition)
    return TableSpec(
        id=TableId(row.id),
        name=row.name,
        folder=row.folder,
        schema=schema_from_json(held["schema"]),
        time=held["time"],
        grain=Grain(held["grain"]),
        primary_key=tuple(held["primary_key"]),
        cluster_by=held["cluster_by"],
        write_order=held["write_order"],
        properties=held["properties"],
    )


def spec_definition(spec: TableSpec) -> str:
    """The JSON column of `models.lake_table`."""
    return json.dumps(
        {
            "schema": schema_to_json(spec.schema),
            "time": spec.time,
            "grain": spec.grain.value,
            "primary_key": list(spec.primary_key),
            "cluster_by": dict(spec.cluster_by),
            "write_order": spec.write_order,
            "properties": dict(spec.properties),
        }
    )
