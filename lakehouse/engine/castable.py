"""Arrays in a form that Arrow casts rightly.

Its casts look at what no row shows, make empty lists of list views, and refuse a part of very long texts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.kinds import is_uuid

_TEXT_BYTES = (1 << 31) - 1
"""The most that one array of texts holds."""
_DIGITS = [place for place in range(36) if place not in (8, 13, 18, 23)]
"""Where a UUID's text has digits."""
_HEXADECIMAL = np.frombuffer(b"".join(b"%02x" % one for one in range(256)), np.uint8).reshape(256, 2)


def castable(values: pa.Array) -> list[pa.Array]:
    """The same values in one or more parts: lists for list views, and no more text in one than a column's array holds.

    >>> castable(pa.array([[1], None], pa.list_view(pa.int64())))[0].type
    ListType(list<item: int64>)
    """
    if pa.types.is_nested(values.type) or is_uuid(values.type):
        return [_shown(values)]
    kind = values.type
    if not (pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)) or not len(values):
        return [values]
    ends = np.frombuffer(values.buffers()[1], np.int64, len(values) + 1, values.offset * 8)
    if ends[-1] <= _TEXT_BYTES:
        return [values]
    parts, start = [], 0
    while start < len(values):
        end = int(np.searchsorted(ends, ends[start] + _TEXT_BYTES, side="right")) - 1
        end = max(end, start + 1)
        parts.append(pa.concat_arrays([values.slice(start, end - start), values.slice(0, 0)]))
        start = end
    return parts


def _shown(values: pa.Array) -> pa.Array:
    """The same values without what is behind nulls and beyond a slice, and with lists where there were list views."""
    kind = values.type
    if is_uuid(kind):
        return _texts(values)
    if not pa.types.is_nested(kind):
        return values
    nulls = values.is_null()
    if pa.types.is_struct(kind):
        parts = [_shown(part) for part in values.flatten()]
        return pa.StructArray.from_arrays(parts, names=[one.name for one in kind], mask=nulls)
    if pa.types.is_map(kind):
        keys, items = (as_list(values, part) for part in (values.keys, values.items))
        return pa.MapArray.from_arrays(offsets(keys), _shown(keys.flatten()), _shown(items.flatten()), mask=nulls)
    return pa.ListArray.from_arrays(offsets(values), _shown(values.flatten()), mask=nulls)


def _texts(uuids: pa.Array) -> pa.StringArray:
    """UUIDs as text of 36 characters."""
    count, held = len(uuids), uuids.storage
    digits = (
        np.frombuffer(held.buffers()[1], np.uint8, count * 16, held.offset * 16) if count else np.empty(0, np.uint8)
    )
    text = np.full((count, 36), ord("-"), np.uint8)
    text[:, _DIGITS] = _HEXADECIMAL[digits].reshape(count, 32)
    found = pa.StringArray.from_buffers(
        count, pa.py_buffer(np.arange(count + 1, dtype=np.int32) * 36), pa.py_buffer(text.tobytes())
    )
    return pc.if_else(uuids.is_valid(), found, pa.scalar(None, pa.string())) if uuids.null_count else found


def offsets(values: pa.Array) -> pa.Int32Array:
    """Where each list begins in what `flatten` gives, and where the last one ends."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def as_list(values: pa.MapArray, part: pa.Array) -> pa.ListArray:
    """A map's keys or its values as lists."""
    kind = pa.list_(part.type)
    return pa.ListArray.from_buffers(kind, len(values), values.buffers()[:2], offset=values.offset, children=[part])
