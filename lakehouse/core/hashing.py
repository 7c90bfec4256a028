"""64-bit hashes of column values, the same on every machine, in every engine and for ever.

XXH64 with seed 0, which Parquet's Bloom filters use too, of a value's canonical bytes: equal values have equal bytes
whatever the width of their column. Whole numbers, booleans, days since 1970 and microseconds since 1970 are 8 bytes,
little-endian; floats are doubles with one zero and one not-a-number; decimals are 32 bytes, scaled by 10^38; text is
UTF-8. Longer texts and binaries than `LONG_BYTES` are hashed by 8 bytes of BLAKE2b instead, a value at a time.

Source: Y. Collet, *xxHash fast digest algorithm*, `doc/xxhash_spec.md` of the project.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.kinds import column_kind, kind_of, single

Hashes = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

LONG_BYTES = 1024
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(one)
    for one in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_WORD = 8
_STRIPE = 32
_DECIMAL = pa.decimal256(76, 38)
"""Holds every decimal of a table exactly."""


def is_hashable(kind: pa.DataType) -> bool:
    """Whether values of a column's type have hashes; those of nested types do not."""
    return column_kind(kind) is not None


def hash_values(values: pa.Array | pa.ChunkedArray) -> Hashes:
    """Hashes of a column's values that are not null, in order. Cost: some dozens of passes over them.

    >>> [hex(one) for one in hash_values(pa.array(["", "abc", None]))]
    ['0xef46db3751d8e999', '0x44bc2cf5ad770999']
    >>> narrow, wide = hash_values(pa.array([7], pa.int8())), hash_values(pa.array([7], pa.int64()))
    >>> bool(narrow == wide)
    True
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if array.null_count:
        array = array.drop_null()
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
        held = array.buffers()[2]
        content = np.empty(0, np.uint8) if held is None else np.frombuffer(held, np.uint8)
        return hash_bytes(content, offsets.astype(np.int64)) if len(array) else np.empty(0, np.uint64)
    if pa.types.is_decimal(kind):
        wide = array.cast(_DECIMAL)
        content = np.frombuffer(wide.buffers()[1], np.uint8)
        return hash_bytes(content, (np.arange(len(wide) + 1) + wide.offset) * _DECIMAL.byte_width)
    return hash_words(_words(array))


def hash_literal(value: Any, kind: pa.DataType) -> Hashes | None:
    """Hashes that values of a column have which an engine may hold equal to a literal; None if nobody can tell.

    >>> hash_literal(7, pa.int8()).tolist() == hash_values(pa.array([7])).tolist()
    True
    >>> len(hash_literal(0.1, pa.float32())), hash_literal("7", pa.int8())
    (2, None)
    """
    found = column_kind(kind)
    if found is None or kind_of(value) != found:
        return None
    try:
        if found == "float":
            # An engine compares a column of single precision as doubles, or rounds the literal.
            values = [value, single(value)] if pa.types.is_float32(kind) else [value]
            return hash_values(pa.array(values, pa.float64()))
        return hash_values(pa.array([value], pa.int64() if found == "int" else kind))
    except (pa.ArrowException, OverflowError, ValueError):
        return None


def _words(array: pa.Array) -> Hashes:
    """Values of fixed width as 8 bytes each."""
    kind = array.type
    if pa.types.is_floating(kind):
        numbers = array.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0  # the two zeros are equal
        held = np.where(np.isnan(numbers), np.nan, numbers)
    else:
        if pa.types.is_boolean(kind):
            array = array.cast(pa.int8())
        elif pa.types.is_date(kind):
            array = array.cast(pa.int32())
        held = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    words: Hashes = np.ascontiguousarray(held).view(np.uint64)
    return words


def hash_words(words: Hashes) -> Hashes:
    """XXH64 of 8 bytes each."""
    return _finished(_with_word(np.full(len(words), _P5 + np.uint64(_WORD)), words))


def hash_bytes(content: Bytes, offsets: Places) -> Hashes:
    """XXH64 of stretches of bytes, the nth from ``offsets[n]`` to ``offsets[n + 1]``."""
    lengths = np.diff(offsets)
    long = np.flatnonzero(lengths > LONG_BYTES)
    order = np.argsort(-np.where(lengths > LONG_BYTES, 0, lengths), kind="stable")
    hashes = np.empty(len(lengths), np.uint64)
    hashes[order] = _by_length(content, offsets[:-1][order], np.where(lengths > LONG_BYTES, 0, lengths)[order])
    for place in long.tolist():
        digest = hashlib.blake2b(content[offsets[place] : offsets[place + 1]].tobytes(), digest_size=_WORD).digest()
        hashes[place] = int.from_bytes(digest, "little")
    return hashes


def _by_length(content: Bytes, starts: Places, lengths: Places) -> Hashes:
    """Of stretches in falling order of their lengths, so that each step works on the first so many of them."""
    padded = np.concatenate([content, np.zeros(_WORD, np.uint8)])
    words: Hashes = np.ndarray(len(content) + 1, np.dtype("<u8"), padded, strides=(1,))  # one from every byte on
    stripes = lengths // _STRIPE
    found = lengths.astype(np.uint64) + _P5
    striped = int((stripes > 0).sum())
    if striped:
        found[:striped] = _stripes(words, starts[:striped], stripes[:striped]) + lengths[:striped].astype(np.uint64)
    at, left = starts + stripes * _STRIPE, lengths % _STRIPE
    for _ in range(_STRIPE // _WORD - 1):
        some = np.flatnonzero(left >= _WORD)
        found[some] = _with_word(found[some], words[at[some]])
        at[some] += _WORD
        left[some] -= _WORD
    some = np.flatnonzero(left >= 4)
    halves = words[at[some]] & np.uint64(0xFFFFFFFF)
    found[some] = _rotated(found[some] ^ halves * _P1, 23) * _P2 + _P3
    at[some] += 4
    left[some] -= 4
    for _ in range(3):
        some = np.flatnonzero(left > 0)
        found[some] = _rotated(found[some] ^ (padded[at[some]].astype(np.uint64) * _P5), 11) * _P1
        at[some] += 1
        left[some] -= 1
    return _finished(found)


def _stripes(words: Hashes, starts: Places, stripes: Places) -> Hashes:
    """The state after all whole stripes of 32 bytes: four lanes, merged."""
    with np.errstate(over="ignore"):
        begin = (_P1 + _P2, _P2, np.uint64(0), -_P1)
    lanes = [np.full(len(starts), one, np.uint64) for one in begin]
    for number in range(int(stripes[0])):
        some = int(np.searchsorted(-stripes, -number, side="left"))
        at = starts[:some] + number * _STRIPE
        for place, lane in enumerate(lanes):
            lane[:some] = _round(lane[:some], words[at + place * _WORD])
    merged = np.zeros(len(starts), np.uint64)
    for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True):
        merged += _rotated(lane, turn)
    for lane in lanes:
        merged = (merged ^ _round(np.zeros_like(lane), lane)) * _P1 + _P4
    return merged


def _round(lane: Hashes, word: Hashes) -> Hashes:
    return _rotated(lane + word * _P2, 31) * _P1


def _with_word(found: Hashes, word: Hashes) -> Hashes:
    return _rotated(found ^ _round(np.zeros_like(word), word), 27) * _P1 + _P4


def _rotated(word: Hashes, bits: int) -> Hashes:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


def _finished(found: Hashes) -> Hashes:
    found = (found ^ (found >> np.uint64(33))) * _P2
    found = (found ^ (found >> np.uint64(29))) * _P3
    return found ^ (found >> np.uint64(32))


def distinct_hashes(values: pa.Array | pa.ChunkedArray) -> Hashes:
    """Hashes of a column's distinct values that are not null, ascending."""
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        values = pc.unique(values)  # cheaper than to hash what repeats; for numbers it is not
    return distinct([hash_values(values)])


def distinct(parts: Sequence[Hashes]) -> Hashes:
    """Hashes of several parts together, each once, ascending.

    >>> distinct([np.array([5, 3], np.uint64), np.array([5], np.uint64)]).tolist()
    [3, 5]
    """
    if not parts:
        return np.empty(0, np.uint64)
    ordered = np.sort(np.concatenate(parts))  # many times as fast as `numpy.unique`, which makes a hash table
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered
