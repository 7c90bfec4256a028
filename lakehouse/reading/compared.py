"""Where two columns of values differ: null equals only null, not-a-number only itself, and the two zeros each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def differing(one: pa.Table | pa.RecordBatch, other: pa.Table | pa.RecordBatch, names: list[str]) -> Mask:
    """The rows of two tables, which are as long, in which some column differs. No step is taken a row."""
    found = np.zeros(len(one), dtype=np.bool_)
    for name in names:
        found |= ~same(one.column(name), other.column(name))
    return found


def same(one: Any, other: Any) -> Mask:
    """Which values of two arrays of one type are the same.

    >>> a, b = (pa.array([[1.0], [float("nan")], value, [2.0]]) for value in (None, []))
    >>> same(a, b).tolist()
    [True, True, False, True]
    """
    one, other = _plain(one), _plain(other)
    if not len(one):
        return np.zeros(0, dtype=np.bool_)
    kind = one.type
    if pa.types.is_struct(kind):
        return _both_null(one, other) | (_both_valid(one, other) & _same_fields(one, other))
    if pa.types.is_map(kind) or _is_list(kind):
        return _both_null(one, other) | (_both_valid(one, other) & _same_items(one, other))
    if pa.types.is_null(kind):
        return np.ones(len(one), dtype=np.bool_)
    found = pc.equal(one, other).fill_null(False).to_numpy(zero_copy_only=False)
    if one.null_count or other.null_count:
        found = found | _both_null(one, other)
    if pa.types.is_floating(kind):
        nan = pc.and_(pc.is_nan(one), pc.is_nan(other)).fill_null(False)
        found = found | nan.to_numpy(zero_copy_only=False)
    return np.asarray(found, dtype=np.bool_)


def _plain(array: Any) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):  # what is too long for one array
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _valid(array: pa.Array) -> Mask:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _both_valid(one: pa.Array, other: pa.Array) -> Mask:
    return _valid(one) & _valid(other)


def _both_null(one: pa.Array, other: pa.Array) -> Mask:
    return ~_valid(one) & ~_valid(other)


def _same_fields(one: pa.StructArray, other: pa.StructArray) -> Mask:
    found = np.ones(len(one), dtype=np.bool_)
    for a, b in zip(one.flatten(), other.flatten(), strict=True):  # nulls of the struct are nulls of its fields
        found &= same(a, b)
    return found


def _same_items(one: pa.Array, other: pa.Array) -> Mask:
    """Lists, and maps as lists of keys and values, of which no null is looked at."""
    lengths, others = _lengths(one), _lengths(other)
    found = lengths == others
    full = np.flatnonzero(found & (lengths > 0) & _both_valid(one, other))
    if len(full):
        chosen = pa.array(full)
        items = _items_are_same(one.take(chosen), other.take(chosen))
        starts = np.concatenate([[0], np.cumsum(lengths[full])[:-1]])
        found[full] = np.logical_and.reduceat(items, starts)
    return np.asarray(found, dtype=np.bool_)


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    if pa.types.is_fixed_size_list(array.type):
        return np.full(len(array), array.type.list_size, dtype=np.int64)
    found: npt.NDArray[np.int64] = np.diff(array.offsets.to_numpy()).astype(np.int64)
    return found


def _items_are_same(one: pa.Array, other: pa.Array) -> Mask:
    """Of arrays without nulls, whose lists are as long as each other."""
    if not pa.types.is_map(one.type):
        return same(one.flatten(), other.flatten())
    (keys, values), (other_keys, other_values) = _entries(one), _entries(other)
    return same(keys, other_keys) & same(values, other_values)


def _entries(array: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
    return array.keys.slice(first, last - first), array.items.slice(first, last - first)
