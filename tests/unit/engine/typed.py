"""What docs/types.md says of each type, read from the page, and values of each type in plain Python."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from lakehouse.core.interval import MAX_TIME, MIN_TIME

PAGE = (Path(__file__).resolve().parents[3] / "docs/types.md").read_text()
AT = pa.timestamp("us", "UTC")
_TEXTS = pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string())
ARROW: dict[str, pa.DataType] = {
    str(kind): kind
    for kind in (
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.decimal32(9, 2), pa.decimal64(9, 2), pa.decimal128(9, 2)),
        *(pa.decimal256(9, 2), pa.decimal128(38, 10), pa.decimal256(38, 10), pa.date32(), pa.date64()),
        *(pa.string(), pa.large_string(), pa.string_view(), *_TEXTS, pa.uuid()),
        *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2), pa.dictionary(pa.int8(), pa.binary())),
        *(pa.timestamp(unit, "UTC") for unit in ("us", "ns")),
        *(pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("s", "+02:00")),
        *(pa.timestamp(unit) for unit in ("us", "ns", "ms", "s")),
        *(pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_view(pa.int64())),
        *(pa.large_list_view(pa.int64()), pa.list_(pa.int64(), 2)),
        *(pa.map_(pa.string(), pa.int64()), pa.map_(pa.large_string(), pa.uint32())),
        pa.struct([("x", pa.int64()), ("y", pa.string())]),
        pa.struct([("x", pa.uint32()), ("y", pa.large_string())]),
        *(pa.list_(pa.float32(), 2), pa.list_(pa.float16(), 2)),
    )
}
"""Types by the names that pyarrow prints, which the page uses."""
UNKNOWN: dict[str, pa.DataType] = {
    str(kind): kind
    for kind in (
        *(pa.uint64(), pa.null(), pa.decimal256(50, 2), pa.decimal128(5, -2), pa.duration("s")),
        *(pa.month_day_nano_interval(), pa.dense_union([pa.field("a", pa.int8())])),
        *(pa.run_end_encoded(pa.int32(), pa.int8()), *(pa.time64("us"), pa.time64("ns"), pa.time32("s"))),
    )
}
"""Types that no table holds, by name."""


def _table(first: str, page: str = PAGE) -> dict[str, dict[str, str]]:
    """The rows of the page's table whose second column is called so, by their first cell."""
    lines = [line for block in page.split("\n\n") for line in block.splitlines() if f"| {first} |" in block]
    head, _, *rows = [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in lines]
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


IS = _table("DDL")
DOES = _table("bounds")
REFUSED = _table("given as")


def cells(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]*)`", text)


OUT = {name: ARROW[row["Arrow out"].strip("`")] for name, row in IS.items()}
"""By name, the type that a table's rows have in Arrow."""
KINDS = {**OUT, "uuid": pa.uuid()}
"""By name, the type that a table is made with."""
CONDITIONS = {
    "=": ("x = {}", lambda value, literal: value is not None and value == literal),
    "<": ("x < {}", lambda value, literal: value is not None and value < literal),
    "IN": ("x IN ({}, NULL)", lambda value, literal: value is not None and value == literal),
    "IS NULL": ("x IS NULL", lambda value, literal: value is None),
}
"""What the page says of filters: how it is written, and its meaning."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Values of a type: such as every Arrow type of the page holds, the type's ends, and what its literal means."""

    shared: Sequence[Any]
    own: Sequence[Any]
    literal: Any = None


def _whole(bits: int) -> Samples:
    return Samples([0, 7, None, 100], [-(1 << (bits - 1)), (1 << (bits - 1)) - 1, 7], 7)


_MOST = Decimal("9" * 28 + "." + "9" * 10)
_SEVEN = dt.datetime(2013, 1, 5, 7, tzinfo=dt.UTC)
_BEFORE_1970 = dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
SAMPLES: dict[str, Samples] = {
    "boolean": Samples([True, None, False], [True], True),
    "8 bits": _whole(8),
    "16 bits": _whole(16),
    "32 bits": _whole(32),
    "64 bits": _whole(64),
    "float": Samples([0.5, None, -2.0], [1.5, 2.0**127, -(2.0**127)], 0.5),
    "double": Samples([0.5, None, -2.0], [0.1, 1e300, -1e300], 0.5),
    "decimal": Samples(
        [Decimal("0.05"), None, Decimal("-1.00")], [Decimal("9999999.99"), Decimal("-9999999.99")], Decimal("0.05")
    ),
    "large decimal": Samples(
        [Decimal("0.0500000000"), None], [_MOST, _MOST.copy_negate(), Decimal("1e-10")], Decimal("0.05")
    ),
    "text": Samples(["UA", None, "", "é列\U0001d4b3"], ["a" * 200, "it's", "\uffff" * 3], "UA"),
    "uuid": Samples(
        ["0f8fad5b-d9cb-469f-a165-70867728950e", None, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
        [str(UUID(int=0)), str(UUID(int=(1 << 128) - 1))],
        "0f8fad5b-d9cb-469f-a165-70867728950e",
    ),
    "bytes": Samples([b"\x00\xff", None, b"UA"], [b"", b"\xff" * 200], b"\x00\xff"),
    "date": Samples(
        [dt.date(2013, 1, 5), None, dt.date(1969, 12, 31)],
        [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
        dt.date(2013, 1, 5),
    ),
    "instant": Samples([_SEVEN, None, _BEFORE_1970], [MIN_TIME, MAX_TIME], _SEVEN),
    "local time": Samples(
        [_SEVEN.replace(tzinfo=None), None, _BEFORE_1970.replace(tzinfo=None)],
        [MIN_TIME.replace(tzinfo=None), MAX_TIME.replace(tzinfo=None)],
        _SEVEN.replace(tzinfo=None),
    ),
    "list": Samples([[1, 2], None, [3, None]], [[], [1 << 62], [None]]),
    "map": Samples([[("k", 1)], None, [("", None), ("é", 2)]], [[]]),
    "struct": Samples([{"x": 1, "y": "a"}, None, {"x": None, "y": None}], [{"x": 1 << 62, "y": ""}]),
    "vector": Samples([[1.0, -2.5], None, [0.5, None]], [[2.0**127, -0.0], None]),
}


def same(found: Any, wanted: Any) -> bool:
    """Whether two values are one, whatever order a struct's fields come in; numbers, texts and times by `==`."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[name], wanted[name]) for name in wanted)
    if isinstance(found, list | tuple) and isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return type(found) is type(wanted) and bool(found == wanted)
