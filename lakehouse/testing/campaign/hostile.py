"""Rows of hostile values, and literals near them, for the campaign's filters."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse.testing.campaign.evaluator import Node, plain, quoted

SCHEMA = pa.schema(
    [
        pa.field("at", pa.timestamp("us", "UTC"), nullable=False),
        ("id", pa.int64()),
        ("n", pa.int64()),
        ("int", pa.int32()),
        ("short", pa.int16()),
        ("tiny", pa.int8()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("money", pa.decimal128(10, 2)),
        ("huge", pa.decimal128(38, 18)),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("local", pa.timestamp("us")),
    ]
)
COLUMNS = {
    "int": ("n", "int", "short", "tiny", "id"),
    "double": ("single", "double"),
    "money": ("money",),
    "huge": ("huge",),
    "bool": ("flag",),
    "text": ("text",),
    "bytes": ("bytes",),
    "day": ("day",),
    "at": ("at",),
    "local": ("local",),
}
"""Columns by the family in which their values are compared."""
SEGMENTS, SEGMENT_ROWS = 8, 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BITS = (7, 8, 15, 16, 31, 32, 53, 63, 64)
_WHOLE = [
    *(sign * (1 << bits) + step for bits in _BITS for sign in (1, -1) for step in (-1, 0, 1)),
    *(0, 1, 2, 3, 7, 10, 100),
]
_FRACTIONS = ["0.1", "0.5", "1.5", "-0.25", "2.675", "0.1000000000000000055", "99999999.99", "1e-9", "1e300", "-1e300"]
_DECIMALS = [
    Decimal(one)
    for one in ("0", "0.1", "-0.1", "0.5", "1.5", "2.67", "2.68", "99999999.99", "-99999999.99", "1", "7", "0.01")
]
_TEXTS = [
    "", "a", "A", "ab", "abc", "b", "keep", "keep%", "a_b", "%", "_", "\\", "a\\b", "it's", '"', "${x}", " a", "a ",
    "\x00", "a\x00b", "\t\n", "ß", "é", "e\u0301", "\U0001d4b3", "a\U0001d4b3b", "\uffff", "z" * 40, "[a]", "NULL",
    "\x7f", "!",
]  # fmt: skip
_BYTES = [b"", b"\x00", b"\x00\x01", b"\xff", b"a", b"\xff\xff", b"ab"]
_DAYS = [
    date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1900, 2, 28), date(1969, 12, 31), date(1970, 1, 1),
    date(2000, 2, 29), date(2012, 12, 31), date(2013, 1, 5), date(2013, 1, 6), date(9999, 12, 30), date(9999, 12, 31),
]  # fmt: skip
_CLOCKS = [timedelta(0), timedelta(microseconds=1), timedelta(hours=12, minutes=30, seconds=59), timedelta(hours=23)]
_FAR = [("10000-01-01", 253402300800000000), ("0000-12-31", -62135683200000000), ("-0044-03-15", -63549360000000000)]
"""Times beyond the years 1 to 9999, as they are written and in microseconds since 1970."""


def _time(chance: random.Random) -> datetime:
    return datetime.combine(chance.choice(_DAYS), datetime.min.time(), UTC) + chance.choice(_CLOCKS)


def _held(kind: pa.DataType) -> list[int]:
    return [one for one in _WHOLE if -(1 << (kind.bit_width - 1)) <= one < 1 << (kind.bit_width - 1)]


def _drawing(values: Sequence[Any]) -> Callable[[random.Random], Any]:
    return lambda chance: chance.choice(values)


def _single(chance: random.Random) -> float:
    return chance.choice(
        [0.0, -0.0, 0.1, 0.5, 1.5, -2.675, 3.4028234663852886e38, 1e-45, math.nan, math.inf, -math.inf]
    )


def _double(chance: random.Random) -> float:
    return chance.choice(
        [
            0.0,
            -0.0,
            0.1,
            0.5,
            1.5,
            2.675,
            2.0**53,
            2.0**53 + 2,
            2.0**63,
            1.7976931348623157e308,
            5e-324,
            math.nan,
            math.inf,
        ]
    )


def _huge(chance: random.Random) -> Decimal:
    return chance.choice(
        [*_DECIMALS, Decimal("9" * 20 + "." + "9" * 18), Decimal("0.1") + Decimal("1e-18"), Decimal("-1e-18")]
    )


_DRAWN: dict[str, Callable[[random.Random], Any]] = {
    **{name: _drawing(_held(SCHEMA.field(name).type)) for name in COLUMNS["int"]},
    "single": _single,
    "double": _double,
    "money": lambda chance: chance.choice(_DECIMALS),
    "huge": _huge,
    "flag": lambda chance: chance.random() < 0.5,
    "text": lambda chance: chance.choice(_TEXTS),
    "bytes": lambda chance: chance.choice(_BYTES),
    "day": lambda chance: chance.choice(_DAYS),
    "local": lambda chance: _time(chance).replace(tzinfo=None),
}


def make_rows(chance: random.Random) -> list[pa.Table]:
    """Rows of some segments, each of its own year and sorted by one of the columns, so that they can be pruned."""
    rows = []
    for number in range(SEGMENTS * SEGMENT_ROWS):
        row = {name: None if chance.random() < 0.12 else draw(chance) for name, draw in _DRAWN.items()}
        rows.append({**row, "id": number})
    by = chance.choice(["n", "text", "day", "tiny", "huge"])
    rows.sort(key=lambda row: (row[by] is None, row[by] if row[by] is not None else 0))
    segments = [rows[first : first + SEGMENT_ROWS] for first in range(0, len(rows), SEGMENT_ROWS)]
    for place, segment in enumerate(segments):
        # In the last microsecond of time no interval has an end.
        start = {0: date(1, 1, 1), SEGMENTS - 1: date(9999, 12, 31)}.get(place, date(2006 + place, 1, 5))
        for row in segment:
            row["at"] = datetime.combine(start, datetime.min.time(), UTC) + chance.choice(_CLOCKS)
    return [pa.Table.from_pylist(segment, SCHEMA) for segment in segments]


def plain_rows(tables: Sequence[pa.Table]) -> list[dict[str, Any]]:
    """The rows as the evaluator has them, with single-precision numbers rounded."""
    return [{name: plain(value) for name, value in row.items()} for table in tables for row in table.to_pylist()]


def literal(chance: random.Random, family: str) -> Node:
    """A literal that may be compared with values of a family, often near one of theirs."""
    value, text = _LITERALS[family](chance)
    return Node("literal", family, (value, text))


def whole(chance: random.Random) -> tuple[int, str]:
    """A whole number that 64 bits hold, and how it is written."""
    value = chance.choice(_held(pa.int64()) if chance.random() < 0.4 else [0, 1, 2, 3, -1, -7, 10])
    return value, str(value)


def number(chance: random.Random) -> tuple[Any, str]:
    """Any number: whole, exact or double, also beyond what any column holds."""
    match chance.randrange(8):
        case 0 | 1 | 2:
            value = chance.choice(_WHOLE)
            return value, str(value)
        case 3 | 4:
            exact = chance.choice([*_DECIMALS, Decimal(chance.choice(_WHOLE)) + Decimal("0.5"), Decimal("1e-18")])
            text = f"{exact:f}"
            return (Decimal(text), text) if "." in text else (int(text), text)
        case 5:
            text = chance.choice(_FRACTIONS)
            return (float(text) if "e" in text else Decimal(text)), text
        case 6:
            double = float(chance.choice(_WHOLE))
            return double, f"{double:e}" if float(f"{double:e}") == double else f"CAST('{double!r}' AS DOUBLE)"
    return chance.choice(
        [
            (math.nan, "CAST('NaN' AS DOUBLE)"),
            (math.inf, "CAST('Infinity' AS DOUBLE)"),
            (-math.inf, "CAST('-Infinity' AS DOUBLE)"),
            (0.10000000149011612, "CAST(0.1 AS FLOAT)"),
            (0.10000000149011612, "0.1F"),
            (1.5, "1.5D"),
            (Decimal("2.68"), "CAST('2.675' AS DECIMAL(10, 2))"),
            (Decimal("0.10"), "0.10BD"),
            (7, "7L"),
            (-0.0, "-0.0D"),
        ]
    )


def _day_literal(chance: random.Random) -> tuple[int, str]:
    if chance.random() < 0.15:
        text, us = chance.choice(_FAR)
        return us // 86_400_000_000, f"DATE '{text}'"
    day = chance.choice(_DAYS)
    return plain(day), chance.choice(["DATE '{}'", "CAST('{}' AS DATE)", "to_date('{}')"]).format(day.isoformat())


def _at_literal(chance: random.Random) -> tuple[int, str]:
    if chance.random() < 0.15:
        text, us = chance.choice(_FAR)
        return us, f"TIMESTAMP '{text} 00:00:00Z'"
    time = datetime.combine(date(2006 + chance.randrange(9), 1, 5), datetime.min.time(), UTC) + chance.choice(_CLOCKS)
    time = chance.choice([time, time, _time(chance)])
    offset = chance.choice([0, 0, 2, -5])
    shown = time.replace(tzinfo=None)
    if datetime(2, 1, 1) < shown < datetime(9999, 1, 1):  # noqa: DTZ001 the clock of an offset
        shown += timedelta(hours=offset)
    else:
        offset = 0
    return plain(time), f"TIMESTAMP '{shown.isoformat(' ')}{offset:+03d}:00'"


def _local_literal(chance: random.Random) -> tuple[int, str]:
    if chance.random() < 0.15:
        text, us = chance.choice(_FAR)
        return us, f"TIMESTAMP_NTZ '{text} 00:00:00'"
    time = _time(chance).replace(tzinfo=None)
    return plain(time), f"TIMESTAMP_NTZ '{time.isoformat(' ')}'"


def _text_literal(chance: random.Random) -> tuple[str, str]:
    value = chance.choice(_TEXTS)
    return value, quoted(value)


def _bytes_literal(chance: random.Random) -> tuple[bytes, str]:
    value = chance.choice(_BYTES)
    return value, f"X'{value.hex()}'"


_LITERALS: dict[str, Callable[[random.Random], tuple[Any, str]]] = {
    "int": number,
    "double": number,
    "money": number,
    "huge": number,
    "bool": lambda chance: chance.choice([(True, "TRUE"), (False, "FALSE")]),
    "text": _text_literal,
    "bytes": _bytes_literal,
    "day": _day_literal,
    "at": _at_literal,
    "local": _local_literal,
}
TEXTS: Sequence[str] = _TEXTS
