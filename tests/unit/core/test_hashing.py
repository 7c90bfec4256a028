"""Hashes are XXH64 of canonical bytes: known values, another implementation, and what has to be equal."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core.hashing import LONG_BYTES, distinct_hashes, hash_literal, hash_values, hash_words, is_hashable

PRIMES = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MASK = (1 << 64) - 1


def rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) & MASK


def mixed(lane: int, word: int) -> int:
    return rotated(lane + word * PRIMES[1] & MASK, 31) * PRIMES[0] & MASK


def xxh64(content: bytes, seed: int = 0) -> int:
    """The specification's text, a value at a time."""

    def word(at: int, width: int = 8) -> int:
        return int.from_bytes(content[at : at + width], "little")

    at = 0
    if len(content) >= 32:
        lanes = [seed + PRIMES[0] + PRIMES[1], seed + PRIMES[1], seed, seed - PRIMES[0]]
        while at + 32 <= len(content):
            lanes = [mixed(lane & MASK, word(at + 8 * place)) for place, lane in enumerate(lanes)]
            at += 32
        found = sum(rotated(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK
        for lane in lanes:
            found = ((found ^ mixed(0, lane)) * PRIMES[0] + PRIMES[3]) & MASK
    else:
        found = seed + PRIMES[4] & MASK
    found = found + len(content) & MASK
    while at + 8 <= len(content):
        found = (rotated(found ^ mixed(0, word(at)), 27) * PRIMES[0] + PRIMES[3]) & MASK
        at += 8
    if at + 4 <= len(content):
        found = (rotated(found ^ (word(at, 4) * PRIMES[0] & MASK), 23) * PRIMES[1] + PRIMES[2]) & MASK
        at += 4
    for byte in content[at:]:
        found = rotated(found ^ (byte * PRIMES[4] & MASK), 11) * PRIMES[0] & MASK
    found = (found ^ found >> 33) * PRIMES[1] & MASK
    found = (found ^ found >> 29) * PRIMES[2] & MASK
    return found ^ found >> 32


def one(value: Any, kind: pa.DataType) -> int:
    (found,) = hash_values(pa.array([value], kind)).tolist()
    return int(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0xEF46DB3751D8E999),
        ("abc", 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_known_texts_have_their_known_hashes(text: str, expected: int) -> None:
    assert xxh64(text.encode()) == one(text, pa.string()) == expected
    assert xxh64(b"xxhash", 20141025) == 0xB559B98D844E0635


@given(st.lists(st.binary(max_size=80) | st.binary(min_size=90, max_size=LONG_BYTES) | st.none()))
def test_bytes_of_any_length_are_hashed_as_the_specification_says(values: list[bytes | None]) -> None:
    assert hash_values(pa.array(values, pa.binary())).tolist() == [xxh64(held) for held in values if held is not None]


@given(st.lists(st.integers(0, MASK)))
def test_words_are_hashed_as_their_eight_bytes(words: list[int]) -> None:
    expected = [xxh64(word.to_bytes(8, "little")) for word in words]
    assert hash_words(np.array(words, np.uint64)).tolist() == expected


def test_long_values_are_distinguished_and_no_slower_with_each_byte() -> None:
    values = [b"x" * LONG_BYTES, b"x" * (LONG_BYTES + 1), b"x" * 1_000_000, b"x" * 999_999 + b"y", b""]
    found = hash_values(pa.array(values, pa.binary())).tolist()
    assert len(set(found)) == len(values)
    assert found == [one(value, pa.binary()) for value in values]


def test_a_slice_of_a_column_and_one_in_pieces_hash_as_their_values() -> None:
    for values, kind in (
        (["a", None, "bc", "d" * 40], pa.string()),
        ([1, None, 3, 4], pa.int16()),
        ([True, None, False, True], pa.bool_()),
        ([Decimal("1.25"), None, Decimal("-3.5"), Decimal(0)], pa.decimal128(9, 2)),
        ([0.5, None, math.nan, -0.0], pa.float32()),
    ):
        whole = pa.array(values, kind)
        expected = [one(value, kind) for value in values[1:] if value is not None]
        assert hash_values(whole.slice(1)).tolist() == expected
        assert hash_values(pa.chunked_array([whole.slice(1, 1), whole.slice(2)])).tolist() == expected
        assert sorted(set(expected)) == distinct_hashes(whole.slice(1)).tolist()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((7, pa.int8()), (7, pa.int64())),
        ((-7, pa.int32()), (-7, pa.int64())),
        ((0.5, pa.float32()), (0.5, pa.float64())),
        ((-0.0, pa.float64()), (0.0, pa.float64())),
        ((math.nan, pa.float64()), (-math.nan, pa.float32())),
        ((Decimal("1.50"), pa.decimal128(10, 2)), (Decimal("1.5"), pa.decimal128(38, 1))),
        ((Decimal("-9" * 1), pa.decimal128(38, 0)), (Decimal("-9.00"), pa.decimal128(10, 2))),
        ((datetime(2013, 1, 5, 7, tzinfo=UTC), pa.timestamp("us", "UTC")),
         (datetime(2013, 1, 5, 8, tzinfo=timezone(timedelta(hours=1))), pa.timestamp("us", "UTC"))),
    ],
)  # fmt: skip
def test_equal_values_have_equal_hashes_whatever_their_column(
    first: tuple[Any, pa.DataType], second: tuple[Any, pa.DataType]
) -> None:
    assert one(*first) == one(*second)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("7", pa.int64()), (7, pa.string()), (7.0, pa.int64()), (True, pa.int64()), (1, pa.bool_()),
        (7, pa.decimal128(9, 2)), (Decimal("1.234"), pa.decimal128(9, 2)), (Decimal("NaN"), pa.decimal128(9, 2)),
        (1 << 70, pa.int64()), (b"a", pa.string()), (date(2013, 1, 5), pa.timestamp("us")),
        (datetime(2013, 1, 5, tzinfo=UTC).replace(tzinfo=None), pa.timestamp("us", "UTC")),
        (datetime(2013, 1, 5, tzinfo=UTC), pa.timestamp("us")),
        ("\ud800", pa.string()), ([1], pa.list_(pa.int64())), (None, pa.int64()),
    ],
)  # fmt: skip
def test_what_is_not_of_the_column_cannot_be_looked_for(value: Any, kind: pa.DataType) -> None:
    assert hash_literal(value, kind) is None


def test_nested_columns_have_no_hashes() -> None:
    assert not is_hashable(pa.list_(pa.int64()))
    assert not is_hashable(pa.struct([("x", pa.int64())]))
    assert is_hashable(pa.decimal128(38, 38))
