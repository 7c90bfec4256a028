"""Columns of the change feed: what became of a row, in which commit, and both forms of updated rows in turn."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

CHANGE_TYPE, VERSION, TIME = "_change_type", "_commit_version", "_commit_timestamp"
COMMIT_TIME = pa.timestamp("us", "UTC")
CHANGE_COLUMNS = (pa.field(CHANGE_TYPE, pa.string()), pa.field(VERSION, pa.int64()), pa.field(TIME, COMMIT_TIME))


def changes_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a table's changes.

    >>> changes_schema(pa.schema([("id", pa.int64())])).names
    ['id', '_change_type', '_commit_version', '_commit_timestamp']
    """
    return pa.schema([*schema, *CHANGE_COLUMNS])


class Constants:
    """Arrays of one value each, made once for many batches."""

    def __init__(self) -> None:
        self._held: dict[tuple[Any, pa.DataType], pa.Array] = {}

    def of(self, value: Any, kind: pa.DataType, count: int) -> pa.Array:
        """A value so often; of a time, its microseconds."""
        held = self._held.get((value, kind))
        if held is None or len(held) < count:
            made = pa.scalar(value, pa.int64()).cast(pa.timestamp("us")) if kind == COMMIT_TIME else pa.scalar(value)
            held = self._held[value, kind] = pa.repeat(made.cast(kind), count)
        return held.slice(0, count)


def in_turn(one: pa.Array, other: pa.Array) -> pa.Array:
    """The values of two arrays of one type that are as long as each other: the first of each, then the second ones.

    >>> in_turn(pa.array([1, 2]), pa.array([3, 4])).to_pylist()
    [1, 3, 2, 4]
    """
    kind, count = one.type, len(one)
    if _is_plain_number(kind) and not one.null_count and not other.null_count:
        made = pa.allocate_buffer(2 * count * kind.bit_width // 8)
        values = np.frombuffer(made, dtype=f"i{kind.bit_width // 8}").reshape(count, 2)
        for place, given in enumerate((one, other)):
            held = np.frombuffer(given.buffers()[1], dtype=values.dtype)
            values[:, place] = held[given.offset : given.offset + count]
        return pa.Array.from_buffers(kind, 2 * count, [None, made])
    places = np.repeat(np.arange(count, dtype=np.int32), 2)
    places[1::2] += count
    return pa.concat_arrays([one, other]).take(pa.array(places))


def _is_plain_number(kind: pa.DataType) -> bool:
    """Whether a value is a number of one to eight whole bytes."""
    return pa.types.is_primitive(kind) and kind.bit_width in (8, 16, 32, 64)


def both_kinds(count: int) -> pa.Array:
    """``update_before`` and ``update_after``, so often in turn."""
    return _kinds_of(1 << max(count - 1, 0).bit_length()).slice(0, 2 * count)


@lru_cache(maxsize=1)
def _kinds_of(count: int) -> pa.Array:
    """The same, made once for batches of one size: a million of them are longer than the rest of a row."""
    names = ("update_before", "update_after")
    starts = np.empty(2 * count + 1, dtype=np.int32)
    starts[0::2] = np.arange(count + 1) * len("".join(names))
    starts[1::2] = starts[:-1:2] + len(names[0])
    return pa.StringArray.from_buffers(2 * count, pa.py_buffer(starts), pa.py_buffer("".join(names).encode() * count))
