"""Arrow columns of every type, with values at the limits of the type and beyond, and the meaning of their rows.

A generated column knows each of its rows as a Python value, or that it is unreadable.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse.core.interval import MAX_TIME, MIN_TIME, to_us

BAD: Any = object()
"""Stands for a value that a table cannot hold."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - some columns have no zone
_FIRST_US, _LAST_US = to_us(MIN_TIME), to_us(MAX_TIME)
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Made:
    """A column as a user could pass it, the type of the table's column, and the rows' meaning."""

    given: pa.Array
    column: pa.DataType
    rows: list[Any]


def holds_bad(value: Any) -> bool:
    """Whether a value is, or contains, one that no table can hold."""
    if isinstance(value, list | tuple):
        return any(holds_bad(one) for one in value)
    return any(holds_bad(one) for one in value.values()) if isinstance(value, dict) else value is BAD


def any_column(chance: random.Random, rows: int, *, depth: int = 2) -> Made:
    """A random column of some rows, of a type up to a depth of nesting; nearly half of all hold a bad value."""
    if depth and chance.random() < 0.4:
        return chance.choice([_structs, _lists, _maps])(chance, rows, depth - 1)
    leaves = [_texts, _views, _bytes, _dates, _times, _decimals, _doubles, _integers, _dictionaries]
    return chance.choice(leaves)(chance, rows)


def _masked(chance: random.Random, rows: int) -> list[bool]:
    """Which rows are null."""
    share = chance.choice([0.0, 0.0, 0.3])
    return [chance.random() < share for _ in range(rows)]


def _fixed(kind: pa.DataType, stored: list[int], nulls: list[bool], width: int) -> pa.Array:
    """An array of raw numbers, whatever the type allows; bytes behind a null are kept."""
    data = b"".join(one.to_bytes(width, "little", signed=True) for one in stored)
    valid = pa.array([not one for one in nulls], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(kind, len(stored), [valid, pa.py_buffer(data)])


def _pick(chance: random.Random, rows: int, good: list[Any], bad: list[Any]) -> tuple[list[Any], list[bool]]:
    """Values, few of them bad, often only behind nulls; and which are null."""
    nulls = _masked(chance, rows)
    worst = chance.choice([0.0, 0.0, 0.15])
    chosen = []
    for is_null in nulls:
        share = 0.5 if is_null else worst
        chosen.append(chance.choice(bad if bad and chance.random() < share else good))
    return chosen, nulls


def _bytes_of(chance: random.Random, rows: int) -> tuple[list[bytes], list[bool]]:
    good = [b"", b"a", "Zürich".encode(), b"nul \0 inside", "𝄞 beyond the first plane".encode(), b"O'Hare", b"x" * 300]
    bad = [b"\xff\xfe", b"a\x80", "\ud800".encode("utf-8", "surrogatepass"), b"cut \xe2\x82", b"\xc0\x80 long enough"]
    return _pick(chance, rows, good, bad)


def _text(value: bytes) -> Any:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return BAD


def _texts(chance: random.Random, rows: int) -> Made:
    values, nulls = _bytes_of(chance, rows)
    of, text = chance.choice([(pa.binary(), pa.string()), (pa.large_binary(), pa.large_string())])
    raw = pa.array(values, of).buffers()
    valid = pa.array([not one for one in nulls], pa.bool_()).buffers()[1]
    given = pa.Array.from_buffers(text, rows, [valid, *raw[1:]])
    return Made(given, pa.string(), [None if gone else _text(one) for one, gone in zip(values, nulls, strict=True)])


def _views(chance: random.Random, rows: int) -> Made:
    values, nulls = _bytes_of(chance, rows)
    shown = [None if gone else one for one, gone in zip(values, nulls, strict=True)]
    raw = pa.array(shown, pa.binary_view())
    given = pa.Array.from_buffers(pa.string_view(), rows, raw.buffers())
    return Made(given, pa.string(), [None if one is None else _text(one) for one in shown])


def _bytes(chance: random.Random, rows: int) -> Made:
    values, nulls = _bytes_of(chance, rows)
    shown = [None if gone else one for one, gone in zip(values, nulls, strict=True)]
    return Made(pa.array(shown, chance.choice([pa.binary(), pa.large_binary()])), pa.binary(), shown)


def _dates(chance: random.Random, rows: int) -> Made:
    first, last = _FIRST_US // _DAY_US, _LAST_US // _DAY_US
    days, nulls = _pick(chance, rows, [0, -1, 15_000, first, last], [first - 1, last + 1, 2**31 - 1, -(2**31)])
    meant = [
        None if gone else _EPOCH.date() + timedelta(days=one) if first <= one <= last else BAD
        for one, gone in zip(days, nulls, strict=True)
    ]
    return Made(_fixed(pa.date32(), days, nulls, 4), pa.date32(), meant)


def _times(chance: random.Random, rows: int) -> Made:
    unit = chance.choice(["s", "ms", "us"])
    step_us = {"s": 1_000_000, "ms": 1000, "us": 1}[unit]
    first, last = _FIRST_US // step_us, _LAST_US // step_us
    ticks, nulls = _pick(
        chance, rows, [0, -1, 1_357_000_000, first, last], [first - 1, last + 1, 2**63 - 1, -(2**63), 2**62]
    )
    zone = chance.choice([None, "UTC", "Europe/Berlin"])
    column = pa.timestamp("us", None if zone is None else "UTC")
    meant = [
        None if gone else _instant(one * step_us, zone) if first <= one <= last else BAD
        for one, gone in zip(ticks, nulls, strict=True)
    ]
    return Made(_fixed(pa.timestamp(unit, zone), ticks, nulls, 8), column, meant)


def _instant(us: int, zone: str | None) -> datetime:
    found = _EPOCH + timedelta(microseconds=us)
    return found if zone is None else found.replace(tzinfo=UTC)


def _decimals(chance: random.Random, rows: int) -> Made:
    digits, nulls = _pick(chance, rows, [0, 1, -1, 99_999, -99_999], [100_000, -100_000, 10**37])
    meant = [
        None if gone else Decimal(one).scaleb(-2) if abs(one) < 100_000 else BAD
        for one, gone in zip(digits, nulls, strict=True)
    ]
    return Made(_fixed(pa.decimal128(5, 2), digits, nulls, 16), pa.decimal128(5, 2), meant)


def _doubles(chance: random.Random, rows: int) -> Made:
    good = [0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308]
    values, nulls = _pick(chance, rows, good, [])
    shown = [None if gone else one for one, gone in zip(values, nulls, strict=True)]
    return Made(pa.array(shown, pa.float64()), pa.float64(), shown)


def _integers(chance: random.Random, rows: int) -> Made:
    values, nulls = _pick(chance, rows, [0, -1, 127, -128], [128, 2**63 - 1, -(2**63)])
    shown = [None if gone else one for one, gone in zip(values, nulls, strict=True)]
    meant = [BAD if one is not None and not -128 <= one <= 127 else one for one in shown]
    return Made(pa.array(shown, pa.int64()), pa.int8(), meant)


def _dictionaries(chance: random.Random, rows: int) -> Made:
    """Texts by their numbers in a list in which some may be bad without being named."""
    entries = _texts(chance, 5)
    codes, nulls = _pick(chance, rows, [0, 1, 2, 3, 4], [5, -1, 100])
    given = pa.DictionaryArray.from_arrays(_fixed(pa.int8(), codes, nulls, 1), entries.given, safe=False)
    meant = [
        None if gone else entries.rows[one] if 0 <= one < 5 else BAD for one, gone in zip(codes, nulls, strict=True)
    ]
    return Made(given, pa.string(), meant)


def _structs(chance: random.Random, rows: int, depth: int) -> Made:
    parts = {name: any_column(chance, rows, depth=depth) for name in ("a", "b")}
    nulls = _masked(chance, rows)
    given = pa.Array.from_buffers(
        pa.struct([(name, one.given.type) for name, one in parts.items()]), rows,
        [pa.array([not one for one in nulls], pa.bool_()).buffers()[1]], children=[one.given for one in parts.values()],
    )  # fmt: skip
    meant = [None if nulls[row] else {name: one.rows[row] for name, one in parts.items()} for row in range(rows)]
    return Made(given, pa.struct([(name, one.column) for name, one in parts.items()]), meant)


def _lists(chance: random.Random, rows: int, depth: int) -> Made:
    nulls = _masked(chance, rows)
    lengths = [chance.choice([0, 1, 1, 3]) for _ in range(rows)]
    ends = [sum(lengths[:place]) for place in range(rows + 1)]
    part = any_column(chance, ends[-1] + 1, depth=depth)  # one more than is shown
    of, width = chance.choice([(pa.list_, 4), (pa.large_list, 8)])
    given = pa.Array.from_buffers(
        of(part.given.type), rows,
        [pa.array([not one for one in nulls], pa.bool_()).buffers()[1], _offsets(ends, width)], children=[part.given],
    )  # fmt: skip
    meant = [None if nulls[row] else part.rows[ends[row] : ends[row + 1]] for row in range(rows)]
    return Made(given, pa.list_(part.column), meant)


def _maps(chance: random.Random, rows: int, depth: int) -> Made:
    nulls = _masked(chance, rows)
    lengths = [chance.choice([0, 1, 2]) for _ in range(rows)]
    ends = [sum(lengths[:place]) for place in range(rows + 1)]
    names = [chance.choice(["a", "b", "c", "d"]) for _ in range(ends[-1])]
    part = any_column(chance, ends[-1], depth=depth)
    entries = pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), part.given],
        fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", part.given.type)],
    )
    given = pa.Array.from_buffers(
        pa.map_(pa.string(), part.given.type), rows,
        [pa.array([not one for one in nulls], pa.bool_()).buffers()[1], _offsets(ends, 4)], children=[entries],
    )  # fmt: skip
    meant: list[Any] = []
    for row in range(rows):
        pairs = list(zip(names, part.rows, strict=True))[ends[row] : ends[row + 1]]
        is_bad = len({name for name, _ in pairs}) < len(pairs)
        meant.append(None if nulls[row] else BAD if is_bad else pairs)
    return Made(given, pa.map_(pa.string(), part.column), meant)


def _offsets(ends: list[int], width: int) -> pa.Buffer:
    return pa.py_buffer(b"".join(one.to_bytes(width, "little") for one in ends))


def plain(value: Any) -> Any:
    """A value in a comparable form: NaN equals itself, the two zeros differ, times are in UTC."""
    match value:
        case float():
            return repr(value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
        case dict():
            return {name: plain(one) for name, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case bytearray():
            return bytes(value)
        case datetime() | date() | _:
            return value
