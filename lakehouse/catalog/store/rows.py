"""Rows of the catalog turned into core values, and back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pydantic_core import from_json

from lakehouse.catalog.store.encoding import (
    decode_keys,
    decode_statistics,
    decode_value,
    encode_keys,
    encode_statistics,
)
from lakehouse.core.chunk import Grain
from lakehouse.core.codec import codec_number
from lakehouse.core.interval import from_us
from lakehouse.core.segment import Segment
from lakehouse.core.segment_columns import BUCKETS, FIELDS, HIGH, LOW, NULLS
from lakehouse.core.spec import ROW_ID, TableId, TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.schema import schema_from_json, schema_to_json

Entry = Segment | Tombstone
Values = Mapping[str, Any]
"""A row by column."""

_TOMBSTONE = pa.schema(
    [
        ("id", pa.int64()),
        ("kind", pa.string()),
        ("start_us", pa.int64()),
        ("end_us", pa.int64()),
        ("ordinal", pa.int64()),
        ("keys", pa.string()),
        ("rows", pa.int64()),
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("statistics", pa.string()),
        ("checksum", pa.binary()),
    ]
)
_CODEC = pa.Codec("lz4_raw")
_CHECKSUM_BYTES, _SIZE_BYTES = 4, 8
_STREAM = b"\xff\xff\xff\xff"
"""The first bytes of an Arrow stream; a compressed page begins with its uncompressed size."""
_WORTH_COMPRESSING = 32
"""Number of segments from which compression pays."""


def segment_values(segment: Segment, table: TableId, operation: int, version: int) -> dict[str, Any]:
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
        "statistics": encode_statistics(segment.min, segment.max, segment.nulls, segment.buckets),
        "added_version": version,
        "dropped_version": None,
        "rewrites": segment.rewrites,
        "checksum": segment.checksum or None,
        "codec": codec_number(segment.codec) or None,
    }


def tombstone_from_row(row: Values) -> Tombstone:
    """A tombstone from a row with the columns of `models.tombstone`; older pages lack those of its set."""
    low, high, buckets = decode_statistics(row.get("statistics") or "{}")
    return Tombstone(
        id=row["id"],
        kind=row["kind"],
        start=from_us(row["start_us"]),
        end=from_us(row["end_us"]),
        ordinal=row["ordinal"],
        keys=decode_keys(row["keys"]),
        rows=row["rows"],
        path=row.get("path") or "",
        bytes=row.get("bytes") or 0,
        checksum=bytes(row.get("checksum") or b""),
        min=low,
        max=high,
        buckets=buckets,
    )


def tombstone_values(tombstone: Tombstone, table: TableId, operation: int, version: int) -> dict[str, Any]:
    """The columns of `models.tombstone`."""
    return {
        **_tombstone_page_values(tombstone),
        "table_id": table,
        "operation": operation,
        "added_version": version,
        "dropped_version": None,
    }


def _tombstone_page_values(tombstone: Tombstone) -> dict[str, Any]:
    return {
        "id": tombstone.id,
        "kind": tombstone.kind,
        "start_us": tombstone.interval.start_us,
        "end_us": tombstone.interval.end_us,
        "ordinal": tombstone.ordinal,
        "keys": encode_keys(tombstone.keys),
        "rows": tombstone.rows,
        "path": tombstone.path,
        "bytes": tombstone.bytes,
        "checksum": tombstone.checksum or None,
        "statistics": encode_statistics(tombstone.min, tombstone.max, {}, tombstone.buckets),
    }


def segments_schema(spec: TableSpec) -> pa.Schema:
    """The columns of a table's segments in memory and in key frames: see `lakehouse.core.segment_columns`."""
    fields = list(FIELDS)
    for field in spec.schema:
        if not pa.types.is_nested(field.type):
            fields += [(LOW + field.name, field.type), (HIGH + field.name, field.type)]
            fields.append((NULLS + field.name, pa.int64()))
        if spec.cluster_by.get(field.name):
            fields.append((BUCKETS + field.name, pa.binary()))
    fields += [(LOW + ROW_ID, pa.int64()), (HIGH + ROW_ID, pa.int64())]
    return pa.schema(fields)


def segments_from_rows(schema: pa.Schema, rows: Sequence[Values]) -> pa.Table:
    """Segments as columns, from rows of `models.segment`."""
    if not rows:  # not `Schema.empty_table`, which imports pandas
        return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    held = from_json(f"[{','.join(row['statistics'] for row in rows)}]")
    arrays = []
    for field in schema:
        prefix, _, name = field.name.partition(":")
        if not name:
            values = [row[field.name] for row in rows]
            if field.name == "rewrites":
                values = [one or None for one in values]
            elif field.name == "checksum":
                values = [None if one is None else bytes(one) for one in values]
            arrays.append(
                pa.array([bool(one) for one in values] if field.name == "has_row_ids" else values, field.type)
            )
            continue
        place = _PLACES[prefix]
        stored = [one[name][place] if name in one and len(one[name]) > place else None for one in held]
        if place == _PLACES[BUCKETS[:-1]]:
            stored = [None if one is None else bytes.fromhex(one) for one in stored]
        arrays.append(_typed(stored, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


_PLACES = {LOW[:-1]: 0, HIGH[:-1]: 1, NULLS[:-1]: 2, BUCKETS[:-1]: 3}
"""Where each statistic is in the JSON of `lakehouse.catalog.store.encoding.encode_statistics`."""


def _typed(stored: list[Any], kind: pa.DataType) -> pa.Array:
    """Stored values of one column as its type; times are not converted to Python objects."""
    if pa.types.is_timestamp(kind):
        instants = pa.timestamp("us", kind.tz)
        return pa.array([None if one is None else one[1] for one in stored], instants).cast(kind)
    try:
        return pa.array(stored, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # some are stored with their type
        return pa.array([decode_value(one) for one in stored], kind)


def encode_page(body: pa.Table, tombstones: Sequence[Tombstone]) -> bytes:
    """A key frame's page: segments in columns, then tombstones if there are any, as Arrow streams, and a checksum.

    ``body`` has the columns of `segments_schema`. Compressed as a whole if that pays: buffer by buffer, as Arrow does
    it, starting a codec takes longer than the bytes. Columns of only nulls are left out.
    """
    body = body.select([name for name in body.column_names if body.column(name).null_count < max(1, len(body))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, body.schema) as to:
        to.write_table(body.combine_chunks())
    if tombstones:
        held = pa.Table.from_pylist([_tombstone_page_values(one) for one in tombstones], schema=_TOMBSTONE)
        with pa.ipc.new_stream(sink, _TOMBSTONE) as to:
            to.write_table(held)
    written: bytes = sink.getvalue().to_pybytes()
    if len(body) >= _WORTH_COMPRESSING:
        written = len(written).to_bytes(_SIZE_BYTES, "big") + _CODEC.compress(written, asbytes=True)
    return written + zlib.crc32(written).to_bytes(_CHECKSUM_BYTES, "big")


class DamagedPage(Exception):
    """A key frame's page is not what was written."""


def decode_page(schema: pa.Schema, page: bytes) -> tuple[pa.Table, list[Tombstone]]:
    """The inverse of `encode_page`: segments in the columns of `segments_schema`, and tombstones.

    Raises `DamagedPage` for any other bytes.
    """
    page, checksum = page[:-_CHECKSUM_BYTES], page[-_CHECKSUM_BYTES:]
    if zlib.crc32(page).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise DamagedPage("its checksum is another one")
    try:
        return _decode(schema, page)
    except pa.ArrowException as error:
        raise DamagedPage(str(error)) from error


def _decode(schema: pa.Schema, page: bytes) -> tuple[pa.Table, list[Tombstone]]:
    whole = pa.py_buffer(page)
    if not page.startswith(_STREAM):
        whole = _CODEC.decompress(whole[_SIZE_BYTES:], decompressed_size=int.from_bytes(page[:_SIZE_BYTES], "big"))
    source = pa.BufferReader(whole)
    held = pa.ipc.open_stream(source).read_all()
    columns = dict(zip(held.column_names, held.columns, strict=True))
    body = pa.Table.from_arrays(
        [columns[field.name] if field.name in columns else pa.nulls(len(held), field.type) for field in schema],
        schema=schema,
    )
    if source.tell() == len(whole):
        return body, []
    return body, [tombstone_from_row(row) for row in pa.ipc.open_stream(source).read_all().to_pylist()]


def spec_from_row(row: Any) -> TableSpec:
    """A table's definition from a row of `models.lake_table`."""
    held = json.loads(row.definition)
    return TableSpec(
        id=TableId(row.id),
        name=row.name,
        folder=row.folder,
        schema=_schema(held["schema"]),
        time=held["time"],
        grain=Grain(held["grain"]),
        primary_key=tuple(held["primary_key"]),
        cluster_by=held["cluster_by"],
        write_order=held["write_order"],
        properties=held["properties"],
    )


_schema = lru_cache(maxsize=256)(schema_from_json)
"""Every access to a table begins with its definition, which seldom changes."""


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
