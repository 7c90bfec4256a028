"""Values that a file could hold and nobody could read again: refused, by column and row."""

from __future__ import annotations

import mmap

import numpy as np
import pyarrow as pa
import pytest

from lakehouse.engine.conform import conform
from lakehouse.engine.validate import Origin
from lakehouse.errors import InvalidInput

TEXTS = [b"ok", b"\xff\xfe and too long to lie in a view itself", b"x"]


def texts(kind: pa.DataType, of: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, 3, [None, *pa.array(TEXTS, of).buffers()[1:]])


STRINGS = texts(pa.string(), pa.binary())
OFFSETS = pa.array([0, 1, 2, 3], pa.int32())
NOT_UTF8 = {
    "string": (STRINGS, pa.string()),
    "large_string": (texts(pa.large_string(), pa.large_binary()), pa.string()),
    "string_view": (texts(pa.string_view(), pa.binary_view()), pa.string()),
    "dictionary": (pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), STRINGS), pa.string()),
    "struct": (pa.StructArray.from_arrays([STRINGS], ["a"]), pa.struct([("a", pa.string())])),
    "list": (pa.ListArray.from_arrays(OFFSETS, STRINGS), pa.list_(pa.string())),
    "fixed size list": (pa.FixedSizeListArray.from_arrays(STRINGS, 1), pa.list_(pa.string())),
    "map key": (pa.MapArray.from_arrays(OFFSETS, STRINGS, pa.array([1, 2, 3])), pa.map_(pa.string(), pa.int64())),
    "map value": (pa.MapArray.from_arrays(OFFSETS, pa.array([1, 2, 3]), STRINGS), pa.map_(pa.int64(), pa.string())),
}


@pytest.mark.parametrize(("values", "kind"), NOT_UTF8.values(), ids=NOT_UTF8)
def test_text_that_is_not_utf8_is_refused_by_column_and_row_however_deep_it_lies(
    values: pa.Array, kind: pa.DataType
) -> None:
    rows, schema = pa.table({"x": pa.chunked_array([values.slice(0, 1), values])}), pa.schema([("x", kind)])
    with pytest.raises(InvalidInput, match="not UTF-8") as refused:
        conform(rows, schema, Origin(100))
    assert (refused.value.column, refused.value.row) == ("x", 102)
    assert conform(rows.slice(3), schema).num_rows == 1


def test_what_lies_behind_a_null_does_not_matter() -> None:
    hidden = pa.StringArray.from_buffers(3, *STRINGS.buffers()[1:], pa.py_buffer(b"\x05"))
    schema = pa.schema([("x", pa.string())])
    assert conform(pa.table({"x": hidden}), schema)["x"].to_pylist() == ["ok", None, "x"]


def test_a_dictionary_may_hold_what_no_row_names() -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, 2, None], pa.int8()), STRINGS)
    assert conform(pa.table({"x": values}), pa.schema([("x", pa.string())]))["x"].to_pylist() == ["ok", "x", None]


def numbers(kind: pa.DataType, stored: list[int], width: int) -> pa.Array:
    data = b"".join(one.to_bytes(width, "little", signed=True) for one in stored)
    return pa.Array.from_buffers(kind, len(stored), [None, pa.py_buffer(data)])


WILD = numbers(pa.int32(), [0, 1, 1_000_000, 2], 4).buffers()[1]
"""Offsets of which one lies far beyond what there is."""
BROKEN = {
    "digits": (numbers(pa.decimal128(5, 2), [1, 100_000], 16), pa.decimal128(5, 2), "more digits"),
    "date": (numbers(pa.date32(), [1, 2**31 - 1], 4), pa.date32(), "years 1 to 9999"),
    "date before": (numbers(pa.date32(), [1, -719_163], 4), pa.date32(), "years 1 to 9999"),
    "date64": (numbers(pa.date64(), [0, 5], 8), pa.date32(), "no whole day"),
    "time": (numbers(pa.timestamp("us"), [1, 2**63 - 1], 8), pa.timestamp("us"), "years 1 to 9999"),
    "time before": (numbers(pa.timestamp("us"), [1, -(2**63)], 8), pa.timestamp("us"), "years 1 to 9999"),
    "seconds": (numbers(pa.timestamp("s"), [1, 2**62], 8), pa.timestamp("us"), "years 1 to 9999"),
    "nanoseconds": (numbers(pa.timestamp("ns"), [0, 1], 8), pa.timestamp("us"), "cannot hold a value"),
    "index": (
        pa.DictionaryArray.from_arrays(pa.array([0, 9], pa.int8()), pa.array(["a"]), safe=False),
        pa.string(),
        "beyond its dictionary",
    ),
    "offset": (
        pa.Array.from_buffers(pa.string(), 3, [None, WILD, pa.py_buffer(b"abc")]),
        pa.string(),
        "malformed",
    ),
    "list offset": (
        pa.Array.from_buffers(pa.list_(pa.int8()), 3, [None, WILD], children=[pa.array([1, 2, 3], pa.int8())]),
        pa.list_(pa.int8()),
        "malformed",
    ),
    "a key twice": (
        pa.MapArray.from_arrays(pa.array([0, 1, 3], pa.int32()), pa.array(["b", "a", "a"]), pa.array([1, 2, 3])),
        pa.map_(pa.string(), pa.int64()),
        "one key twice",
    ),
    "keys that become one": (
        pa.MapArray.from_arrays(pa.array([0, 1, 3], pa.int32()), pa.array([0.5, 0.1, 0.1 + 1e-16]), OFFSETS[1:]),
        pa.map_(pa.float32(), pa.int32()),
        "one key twice",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("values", "kind", "why"), BROKEN.values(), ids=BROKEN)
def test_what_arrow_holds_and_nobody_can_read_is_refused_by_row(values: pa.Array, kind: pa.DataType, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        conform(pa.table({"x": values}), pa.schema([("x", kind)]))
    assert (refused.value.column, refused.value.row) == ("x", 1)


def test_a_null_where_none_may_be_names_the_first_row() -> None:
    with pytest.raises(InvalidInput, match="takes none") as refused:
        conform(pa.table({"x": [1, None, None]}), pa.schema([pa.field("x", pa.int64(), False)]), Origin(10, 3))
    assert (refused.value.row, refused.value.count, refused.value.partition) == (11, 2, 3)


@pytest.mark.parametrize("of", [pa.list_view, pa.large_list_view])
@pytest.mark.parametrize("first", [0, 1])
def test_list_views_keep_their_elements(of: type, first: int) -> None:
    values = [None, [1, 2], [], [3]]
    plain, view = pa.list_(pa.int64()), of(pa.int64())
    for rows, kind in (
        (pa.array(values, view), plain),
        (pa.array([[one] for one in values], pa.list_(view)), pa.list_(plain)),
        (pa.array([{"a": one} for one in values], pa.struct([("a", view)])), pa.struct([("a", plain)])),
        (pa.array([[("a", one)] for one in values], pa.map_(pa.string(), view)), pa.map_(pa.string(), plain)),
    ):
        held = conform(pa.table({"x": rows.slice(first)}), pa.schema([("x", kind)]))["x"]
        held.validate(full=True)
        assert held.to_pylist() == rows.to_pylist()[first:]


def test_texts_that_begin_beyond_two_gibibytes_of_others_are_stored() -> None:
    size = (1 << 31) + 100
    with mmap.mmap(-1, size) as memory:
        memory[-6:] = b"abcdef"
        ends = np.array([0, size - 6, size - 4, size], np.int64)
        values = pa.Array.from_buffers(
            pa.large_string(),
            3,
            [None, pa.py_buffer(ends.tobytes()), pa.foreign_buffer(_address(memory), size, memory)],
        )
        schema = pa.schema([("x", pa.string())])
        assert conform(pa.table({"x": values.slice(1)}), schema)["x"].to_pylist() == ["ab", "cdef"]
        del values


def _address(memory: mmap.mmap) -> int:
    return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0])
