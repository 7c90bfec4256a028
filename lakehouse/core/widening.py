"""Which types hold every value of which others."""

from __future__ import annotations

import pyarrow as pa

from lakehouse.core.column import stored_name

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""Decimal digits that hold every value of an integer type."""


def is_wider(kind: pa.DataType, than: pa.DataType) -> bool:
    """Whether a type holds every value of another one, and a column of that one can become it.

    >>> is_wider(pa.int64(), pa.int8()), is_wider(pa.float32(), pa.int8()), is_wider(pa.decimal128(12, 2), pa.int32())
    (True, False, True)
    """
    if than in INTEGERS:
        if kind in INTEGERS:
            return INTEGERS.index(kind) > INTEGERS.index(than)
        return bool(pa.types.is_decimal(kind)) and kind.precision - kind.scale >= _DIGITS[than]
    if than == pa.float32():
        return bool(kind == pa.float64())
    if pa.types.is_decimal(than):
        if not pa.types.is_decimal(kind) or kind == than:
            return False
        return bool(kind.scale >= than.scale and kind.precision - kind.scale >= than.precision - than.scale)
    return bool(pa.types.is_date(than) and pa.types.is_timestamp(kind))


def is_held(held: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a type holds every value of one that files have: after a restore a column may be narrower than they are.

    >>> is_held(pa.int8(), pa.int64()), is_held(pa.int64(), pa.int8())
    (True, False)
    """
    if pa.types.is_struct(kind):
        parts = {part.name: part.type for part in held}
        shared = [part for part in kind if stored_name(part) in parts]
        return all(is_held(parts[stored_name(part)], part.type) for part in shared)
    if pa.types.is_map(kind):
        return is_held(held.key_type, kind.key_type) and is_held(held.item_type, kind.item_type)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return is_held(held.value_type, kind.value_type)
    return bool(held == kind) or is_wider(kind, held)
