"""The sets that row and key tombstones match, as bytes and as bounds.

Row ids are a 64-bit roaring bitmap (Chambi et al., Software: Practice and Experience 46, 2016; its portable form),
primary keys an Arrow stream of the key's columns. Both end in a checksum: a set that was cut short must not hide fewer
rows than it should.
"""

from __future__ import annotations

import zlib
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from lakehouse.core.bucket import BucketSet
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import DROPPED, ROW_ID, TableSpec
from lakehouse.core.tombstone import TombstoneKind
from lakehouse.errors import InternalError, SchemaMismatch

INLINE_BYTES = 32 << 10
"""Sets up to this size are kept in the catalog, larger ones in files."""
_CHECKSUM_BYTES = 4
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
MatchSet: TypeAlias = BitMap64 | pa.Table
"""Row ids, or a table of primary keys."""


def row_ids_of(values: pa.Array | pa.ChunkedArray) -> BitMap64:
    """Row ids of a column as a set. Takes O(n log n).

    >>> sorted(row_ids_of(pa.array([7, 3])))
    [3, 7]
    """
    numbers = values.to_numpy()
    if len(numbers) and numbers[-1] - numbers[0] == len(numbers) - 1 and (np.diff(numbers) == 1).all():
        found = BitMap64()
        found.add_range(int(numbers[0]), int(numbers[-1]) + 1)
        return found
    return BitMap64(np.sort(numbers.astype(np.uint64)))


def encode_set(matched: MatchSet) -> bytes:
    """A set as bytes, its checksum at the end.

    >>> decode_set("row", encode_set(BitMap64([3, 1 << 40]))) == BitMap64([3, 1 << 40])
    True
    """
    if isinstance(matched, BitMap64):
        packed = BitMap64(matched)
        packed.run_optimize()
        content: bytes = packed.serialize()
    else:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, matched.schema, options=_COMPRESSED) as to:
            to.write_table(matched)
        content = bytes(sink.getvalue())
    return content + zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "big")


def decode_set(kind: TombstoneKind, stored: bytes) -> MatchSet:
    """The inverse of `encode_set`. Raises `InternalError` for bytes that are not what was written."""
    content, checksum = stored[:-_CHECKSUM_BYTES], stored[-_CHECKSUM_BYTES:]
    if zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise InternalError("a tombstone's set is not what was written; restore it from a copy", kind=kind)
    if kind == "row":
        return BitMap64.deserialize(content)
    return pa.ipc.open_stream(pa.BufferReader(content)).read_all()


def row_id_array(row_ids: BitMap64) -> IntArray:
    """Row ids in ascending order."""
    return np.asarray(row_ids.to_array(), dtype=np.int64)


def row_id_bounds(row_ids: BitMap64) -> tuple[dict[str, int], dict[str, int], dict[str, bytes]]:
    """Least and greatest of a set that is not empty, and no buckets, as `key_bounds` gives them of keys."""
    return {ROW_ID: row_ids.min()}, {ROW_ID: row_ids.max()}, {}


def stored_keys(keys: pa.Table, spec: TableSpec) -> pa.Table:
    """Primary keys under the names that their columns have in the catalog."""
    stored = spec.stored_names
    return keys.rename_columns([stored.get(name, name) for name in keys.column_names]) if stored else keys


def named_keys(stored: pa.Table, spec: TableSpec) -> pa.Table:
    """Keys of a set, which has the names and types that their columns had, as the table has them.

    Raises `SchemaMismatch` if the table has one of these columns no more.
    """
    current = spec.current_names
    names = [current.get(name, name) for name in stored.column_names]
    wanted = pa.schema([scope_field(name, spec).remove_metadata() for name in names])
    return stored.rename_columns(names) if not spec.columns else stored.rename_columns(names).cast(wanted)


def scope_field(name: str, spec: TableSpec) -> pa.Field:
    """A column by whose values a tombstone hides rows. Raises `SchemaMismatch` if the table has it no more."""
    place = spec.schema.get_field_index(name)
    if place < 0:
        raise SchemaMismatch(
            "rows of that time are hidden by values of a column that the table has no more; read them with "
            'schema="then"',
            table=spec.name,
            column=name.removeprefix(DROPPED),
        )
    return spec.schema.field(place)


def key_bounds(keys: pa.Table, spec: TableSpec) -> tuple[dict[str, Any], dict[str, Any], dict[str, bytes]]:
    """Least and greatest by column of the primary key, and hash buckets of those by which the table is clustered.

    Columns whose values have no order that every engine shares are left out.
    """
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    buckets: dict[str, bytes] = {}
    for name in keys.column_names:
        column = keys.column(name)
        if is_ordered(column.type):
            bounds = pc.min_max(column)
            low[name], high[name] = bounds["min"].as_py(), bounds["max"].as_py()
        if spec.cluster_by.get(name):
            seen = BucketSet(spec.cluster_by[name])
            seen.add(pc.unique(column).to_pylist())
            if not seen.is_full:
                buckets[name] = seen.to_bytes()
    return low, high, buckets


def is_ordered(kind: pa.DataType) -> bool:
    """Whether every engine, and Python, puts a type's values in one order."""
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_decimal(kind))
