"""Random types nested to any depth, and random values of them in plain Python, with nulls and nothing at each level."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

_EARLY = dt.datetime(1969, 12, 31, tzinfo=dt.UTC).replace(tzinfo=None)
LEAVES: dict[pa.DataType, Callable[[random.Random], Any]] = {
    pa.int64(): lambda dice: dice.randrange(-(1 << 63), 1 << 63),
    pa.float64(): lambda dice: dice.uniform(-1e9, 1e9),
    pa.bool_(): lambda dice: dice.random() < 0.5,
    pa.string(): lambda dice: dice.choice(["", "é列\U0001d4b3", "it's", "null"]),
    pa.binary(): lambda dice: dice.randbytes(dice.randrange(4)),
    pa.date32(): lambda dice: dt.date.fromordinal(dice.randrange(1, 3_652_060)),
    pa.timestamp("us", "UTC"): lambda dice: (
        dt.datetime(2013, 1, 5, tzinfo=dt.UTC) + dt.timedelta(0, 0, dice.getrandbits(40))
    ),
    pa.timestamp("us"): lambda dice: _EARLY + dt.timedelta(0, 0, dice.getrandbits(40)),
    pa.decimal128(20, 5): lambda dice: Decimal(dice.randrange(-(10**20) + 1, 10**20)).scaleb(-5),
    pa.list_(pa.float32(), 3): lambda dice: [dice.choice([0.5, -1.0, None]) for _ in range(3)],
}
"""Types that hold no others that vary, with what makes their values."""


def nested(dice: random.Random, depth: int) -> pa.DataType:
    """A type of so many levels: lists, maps and structs, the latter with a field beside."""
    if not depth:
        return dice.choice(list(LEAVES))
    inner = nested(dice, depth - 1)
    match dice.randrange(3):
        case 0:
            return pa.list_(inner)
        case 1:
            return pa.map_(dice.choice([pa.string(), pa.int64()]), inner)
    return pa.struct([("a b", inner), ("é", dice.choice(list(LEAVES)))])


def value(dice: random.Random, kind: pa.DataType) -> Any:
    """A value of a type: null, empty or not."""
    if dice.random() < 0.15:
        return None
    if kind in LEAVES:
        return LEAVES[kind](dice)
    if pa.types.is_struct(kind):
        return {part.name: value(dice, part.type) for part in kind}
    count = dice.randrange(3)
    if pa.types.is_map(kind):
        keys = ["", "k", "é"] if pa.types.is_string(kind.key_type) else [-1, 0, 1 << 62]
        return [(key, value(dice, kind.item_type)) for key in keys[:count]]
    return [value(dice, kind.value_type) for _ in range(count)]


def other(kind: pa.DataType) -> pa.DataType:
    """The type with Arrow's other types for the same values, at every level."""
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    if pa.types.is_map(kind):
        return pa.map_(other(kind.key_type), other(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, other(part.type)) for part in kind])
    if pa.types.is_list(kind):
        return pa.large_list(other(kind.value_type))
    return kind
