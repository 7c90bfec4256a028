"""Rows of the catalog turned into core values, and back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic_core import from_json

from lakehouse.catalog.store.encoding import (
    decode_keys,
    decode_statistics,
    encode_keys,
    encode_statistics,
)
from lakehouse.core.chunk import Grain
from lakehouse.core.codec import codec_number
from lakehouse.core.column import Held
from lakehouse.core.interval import from_us, to_us, to_utc
from lakehouse.core.segment import Segment
from lakehouse.core.segment_columns import BUCKETS, FIELDS, HIGH, LOW, NULLS
from lakehouse.core.spec import ROW_ID, TableId, TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.widening import is_held
from lakehouse.schema import history_fields, history_value, schema_from_json, schema_to_json
from lakehouse.schema.json_values import decode_value

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
        "schema_number": segment.schema_number,
        "codec": codec_number(segment.codec) or None,
    }


def tombstone_from_row(row: Values, current: Mapping[str, str]) -> Tombstone:
    """A tombstone from a row with the columns of `models.tombstone`; older pages lack those of its set.

    ``current``: names of columns by those that the catalog knows them by, if they differ.
    """
    low, high, buckets = (_named(one, current) for one in decode_statistics(row.get("statistics") or "{}"))
    return Tombstone(
        id=row["id"],
        kind=row["kind"],
        start=from_us(row["start_us"]),
        end=from_us(row["end_us"]),
        ordinal=row["ordinal"],
        keys=decode_keys(row["keys"], current),
        rows=row["rows"],
        path=row.get("path") or "",
        bytes=row.get("bytes") or 0,
        checksum=bytes(row.get("checksum") or b""),
        min=low,
        max=high,
        buckets=buckets,
    )


def _named(statistics: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """Statistics under other names, where columns have one."""
    return {names.get(name, name): value for name, value in statistics.items()} if names else statistics


def tombstone_values(
    tombstone: Tombstone, table: TableId, operation: int, version: int, stored: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """The columns of `models.tombstone`; ``stored`` are other names of columns in the catalog, if it has others."""
    return {
        **_tombstone_page_values(tombstone, stored),
        "table_id": table,
        "operation": operation,
        "added_version": version,
        "dropped_version": None,
    }


def _tombstone_page_values(tombstone: Tombstone, stored: Mapping[str, str]) -> dict[str, Any]:
    low, high, buckets = (_named(one, stored) for one in (tombstone.min, tombstone.max, tombstone.buckets))
    return {
        "id": tombstone.id,
        "kind": tombstone.kind,
        "start_us": tombstone.interval.start_us,
        "end_us": tombstone.interval.end_us,
        "ordinal": tombstone.ordinal,
        "keys": encode_keys(tombstone.keys, stored),
        "rows": tombstone.rows,
        "path": tombstone.path,
        "bytes": tombstone.bytes,
        "checksum": tombstone.checksum or None,
        "statistics": encode_statistics(low, high, {}, buckets),
    }


@dataclass(frozen=True)
class SegmentsForm:
    """The columns of a table's segments in memory, see `lakehouse.core.segment_columns`, and their names in key frames.

    ``stored`` are names of the table's columns in the catalog, by their own, where it has others.
    """

    schema: pa.Schema
    stored: Mapping[str, str]
    current: Mapping[str, str]
    spec: TableSpec | None = None

    @classmethod
    def of(cls, spec: TableSpec) -> SegmentsForm:
        """That of a table."""
        fields = list(FIELDS)
        for field in spec.schema:
            if not pa.types.is_nested(field.type):
                fields += [(LOW + field.name, field.type), (HIGH + field.name, field.type)]
                fields.append((NULLS + field.name, pa.int64()))
            if spec.cluster_by.get(field.name):
                fields.append((BUCKETS + field.name, pa.binary()))
        fields += [(LOW + ROW_ID, pa.int64()), (HIGH + ROW_ID, pa.int64())]
        return cls(pa.schema(fields), spec.stored_names, spec.current_names, spec)

    def is_known(self, column: str, numbers: Sequence[int | None]) -> list[bool] | None:
        """Of bounds of a column, whether its type holds those of segments of some schema numbers; None: all.

        A restore may have made it narrower again. So for buckets: those of a date are not those of its midnight.
        """
        prefix, _, name = column.partition(":")
        if self.spec is None or not self.spec.columns or f"{prefix}:" not in (LOW, HIGH, BUCKETS):
            return None
        place = self.spec.schema.get_field_index(name)
        if place < 0:
            return None
        found = {number: self.spec.layout(number or 0)[place] for number in set(numbers)}
        is_bucket = f"{prefix}:" == BUCKETS

        def holds_all(one: Held) -> bool:
            if one.type is None or one.type == one.wanted:
                return True
            return is_held(one.type, one.wanted) and not (is_bucket and pa.types.is_date(one.type))

        holds = {number: holds_all(one) for number, one in found.items()}
        return None if all(holds.values()) else [holds[number] for number in numbers]

    def is_like(self, other: SegmentsForm) -> bool:
        """Whether states of one form are states of another: tables alike but for properties."""
        columns = [{} if one.spec is None else one.spec.columns for one in (self, other)]
        return self.schema.equals(other.schema) and self.stored == other.stored and columns[0] == columns[1]

    def stored_name(self, column: str) -> str:
        """The name in the catalog of a column of the schema, such as ``min:delay``."""
        prefix, _, name = column.partition(":")
        return f"{prefix}:{self.stored[name]}" if name in self.stored else column

    @cached_property
    def stored_fields(self) -> list[tuple[str, pa.DataType, str]]:
        """Name, type, and name in the catalog of each column of the schema: a read asks for them for every chunk."""
        return [(field.name, field.type, self.stored_name(field.name)) for field in self.schema]

    @cached_property
    def nothing(self) -> pa.Table:
        """No segments. Not `Schema.empty_table`, which imports pandas."""
        return pa.Table.from_arrays([pa.nulls(0, field.type) for field in self.schema], schema=self.schema)


def segments_from_rows(form: SegmentsForm, rows: Sequence[Values]) -> pa.Table:
    """Segments as columns, from rows of `models.segment`."""
    if not rows:
        return form.nothing
    held = from_json(f"[{','.join(row['statistics'] for row in rows)}]")
    arrays = []
    for column, kind, stored_name in form.stored_fields:
        prefix, _, name = stored_name.partition(":")
        if not name:
            values = [row[column] for row in rows]
            if column in ("rewrites", "schema_number"):
                values = [one or None for one in values]
            elif column == "checksum":
                values = [None if one is None else bytes(one) for one in values]
            arrays.append(pa.array([bool(one) for one in values] if column == "has_row_ids" else values, kind))
            continue
        place = _PLACES[prefix]
        stored = [one[name][place] if name in one and len(one[name]) > place else None for one in held]
        known = form.is_known(column, [row["schema_number"] for row in rows])
        if known is not None:
            stored = [one if is_known else None for one, is_known in zip(stored, known, strict=True)]
        if place == _PLACES[BUCKETS[:-1]]:
            stored = [None if one is None else bytes.fromhex(one) for one in stored]
        arrays.append(_typed(stored, kind))
    return pa.Table.from_arrays(arrays, schema=form.schema)


_PLACES = {LOW[:-1]: 0, HIGH[:-1]: 1, NULLS[:-1]: 2, BUCKETS[:-1]: 3}
"""Where each statistic is in the JSON of `lakehouse.catalog.store.encoding.encode_statistics`."""


def _typed(stored: list[Any], kind: pa.DataType) -> pa.Array:
    """Stored values of one column as its type; times are not converted to Python objects."""
    if pa.types.is_timestamp(kind):
        instants = pa.timestamp("us", kind.tz)
        return pa.array([None if one is None else _instant(one) for one in stored], instants).cast(kind)
    try:
        return pa.array(stored, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # some are stored with their type
        return pa.array([decode_value(one) for one in stored], kind)


def _instant(stored: Any) -> int:
    """Microseconds of a stored time, or of a date in a column that was widened to times."""
    return to_us(to_utc(decode_value(stored))) if stored[0] == "date" else stored[1]


def encode_page(body: pa.Table, tombstones: Sequence[Tombstone], stored: Mapping[str, str]) -> bytes:
    """A key frame's page: segments in columns, then tombstones if there are any, as Arrow streams, and a checksum.

    ``body`` has the columns of `SegmentsForm`, which are stored under the names that it gives. Compressed as a whole if
    that pays: buffer by buffer, as Arrow does it, starting a codec takes longer than the bytes. Columns of only nulls
    are left out.
    """
    body = body.select([name for name in body.column_names if body.column(name).null_count < max(1, len(body))])
    if stored:
        form = SegmentsForm(body.schema, stored, {})
        body = body.rename_columns([stored_name for _, _, stored_name in form.stored_fields])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, body.schema) as to:
        to.write_table(body.combine_chunks())
    if tombstones:
        held = pa.Table.from_pylist([_tombstone_page_values(one, stored) for one in tombstones], schema=_TOMBSTONE)
        with pa.ipc.new_stream(sink, _TOMBSTONE) as to:
            to.write_table(held)
    written: bytes = sink.getvalue().to_pybytes()
    if len(body) >= _WORTH_COMPRESSING:
        written = len(written).to_bytes(_SIZE_BYTES, "big") + _CODEC.compress(written, asbytes=True)
    return written + zlib.crc32(written).to_bytes(_CHECKSUM_BYTES, "big")


class DamagedPage(Exception):
    """A key frame's page is not what was written."""


def decode_page(form: SegmentsForm, page: bytes) -> tuple[pa.Table, list[Tombstone]]:
    """The inverse of `encode_page`: segments in the columns of a form, and tombstones.

    Raises `DamagedPage` for any other bytes.
    """
    try:
        return named_tables(form, *page_tables(page))
    except pa.ArrowException as error:
        raise DamagedPage(str(error)) from error


def page_tables(page: bytes) -> tuple[pa.Table, pa.Table | None]:
    """A key frame's page as it is stored: segments, and tombstones if there are any. Raises `DamagedPage`."""
    page, checksum = page[:-_CHECKSUM_BYTES], page[-_CHECKSUM_BYTES:]
    if zlib.crc32(page).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise DamagedPage("its checksum is another one")
    whole = pa.py_buffer(page)
    if not page.startswith(_STREAM):
        whole = _CODEC.decompress(whole[_SIZE_BYTES:], decompressed_size=int.from_bytes(page[:_SIZE_BYTES], "big"))
    source = pa.BufferReader(whole)
    held = pa.ipc.open_stream(source).read_all()
    return held, None if source.tell() == len(whole) else pa.ipc.open_stream(source).read_all()


def named_tables(form: SegmentsForm, held: pa.Table, masks: pa.Table | None) -> tuple[pa.Table, list[Tombstone]]:
    """What `page_tables` gives, with the names and types that columns have in a form."""
    columns = dict(zip(held.column_names, held.columns, strict=True))
    arrays = []
    for name, kind, stored_name in form.stored_fields:
        column = columns.get(stored_name)
        if column is None:
            column = pa.nulls(len(held), kind)
        elif column.type != kind:
            numbers = columns["schema_number"].to_pylist() if "schema_number" in columns else [0] * len(held)
            known = form.is_known(name, numbers)
            if known is not None:
                column = pc.if_else(pa.array(known), column, pa.scalar(None, column.type))
            column = column.cast(kind)
        arrays.append(column)
    body = pa.Table.from_arrays(arrays, schema=form.schema)
    rows = [] if masks is None else masks.to_pylist()
    return body, [tombstone_from_row(row, form.current) for row in rows]


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
        **history_fields(held),
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
            **history_value(spec),
        }
    )
