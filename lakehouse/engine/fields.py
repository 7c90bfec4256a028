"""Structs of rows brought to those of a table's columns, field by field by name, where other fields are accepted."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakehouse.engine.castable import as_list, castable, offsets
from lakehouse.errors import InvalidRows
from lakehouse.schema import default_of


def has_other_fields(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a struct somewhere in a type has other fields than the column's, or in another order.

    >>> has_other_fields(pa.list_(pa.struct([("x", pa.int8())])), pa.list_(pa.struct([("x", pa.int64())])))
    False
    """
    match _parts(found, wanted):
        case None:
            return False
        case [*pairs]:
            names = [part.name for part in wanted] if pa.types.is_struct(wanted) else None
            is_other = names is not None and names != [part.name for part in found]
            return is_other or any(has_other_fields(*pair) for pair in pairs)


def fitted_type(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """What `fitted` makes of a type: fields by name, of the types that they have in the rows.

    >>> str(fitted_type(pa.struct([("z", pa.int8()), ("x", pa.int8())]), pa.struct([("x", pa.int64())])))
    'struct<x: int8>'
    """
    if _parts(found, wanted) is None:
        return found
    if pa.types.is_struct(wanted):
        held = {part.name: part.type for part in found}
        parts = ((one.name, held.get(one.name, one.type), one.type) for one in wanted)
        return pa.struct([pa.field(name, fitted_type(kind, to)) for name, kind, to in parts])
    if pa.types.is_map(wanted):
        return pa.map_(fitted_type(found.key_type, wanted.key_type), fitted_type(found.item_type, wanted.item_type))
    return pa.list_(fitted_type(found.value_type, wanted.value_type))


def fitted(values: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Values whose structs have the fields of a column's type, by name, and their own types.

    A field that a struct lacks has its default, else it is null; others are left out. Cost: offsets and nulls anew, no
    copy of what fields hold.

    >>> rows = pa.array([{"z": 1, "x": 2}, None])
    >>> fitted(rows, pa.struct([("x", pa.int64()), ("y", pa.string())])).to_pylist()
    [{'x': 2, 'y': None}, None]
    """
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [_fitted(part, wanted) for chunk in chunks for part in castable(chunk)]
    return pa.chunked_array(parts, None if parts else fitted_type(values.type, wanted))


def _parts(found: pa.DataType, wanted: pa.DataType) -> list[tuple[pa.DataType, pa.DataType]] | None:
    """The pairs of types that are inside two of one kind; None for all other pairs.

    Raises `InvalidRows` for a struct with one field twice.
    """
    if pa.types.is_struct(wanted):
        if not pa.types.is_struct(found):
            return None
        held = {part.name: part.type for part in found}
        if len(held) < found.num_fields:
            raise InvalidRows("a struct has a field twice; drop or rename one", type=str(found)[:200])
        return [(held[part.name], part.type) for part in wanted if part.name in held]
    if pa.types.is_map(wanted):
        return [(found.key_type, wanted.key_type), (found.item_type, wanted.item_type)] if _is_map(found) else None
    is_list = pa.types.is_list(wanted) and hasattr(found, "value_type")
    if not is_list or _is_map(found) or pa.types.is_dictionary(found) or pa.types.is_run_end_encoded(found):
        return None
    return [(found.value_type, wanted.value_type)]


def _is_map(kind: pa.DataType) -> bool:
    return bool(pa.types.is_map(kind))


def _fitted(values: Any, wanted: pa.DataType) -> Any:
    """An array that `castable` gave."""
    if _parts(values.type, wanted) is None:
        return values
    nulls = values.is_null()
    if pa.types.is_struct(wanted):
        parts = [_field(values, one) for one in wanted]
        return pa.StructArray.from_arrays(parts, names=[one.name for one in wanted], mask=nulls)
    if pa.types.is_map(wanted):
        keys, items = (as_list(values, part) for part in (values.keys, values.items))
        return pa.MapArray.from_arrays(
            offsets(keys),
            _fitted(keys.flatten(), wanted.key_type),
            _fitted(items.flatten(), wanted.item_type),
            mask=nulls,
        )
    return pa.ListArray.from_arrays(offsets(values), _fitted(values.flatten(), wanted.value_type), mask=nulls)


def _field(structs: pa.StructArray, wanted: pa.Field) -> pa.Array:
    place = structs.type.get_field_index(wanted.name)
    if place >= 0:
        return _fitted(structs.field(place), wanted.type)
    return pa.repeat(pa.scalar(default_of(wanted), wanted.type), len(structs))
