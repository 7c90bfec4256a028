"""Hash buckets: which values of a cluster column a segment may hold, where its least and greatest do not tell.

A segment's key coordinate in a column with n buckets is the set of buckets of its values: a bit a bucket, rounded up to
whole bytes and at most `MOST_BITS`. A value's bucket is the CRC-32 of its text modulo the number of bits, the same on
every machine and for ever.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

from lakehouse.core.interval import to_us, to_utc

Buckets = Mapping[str, bytes]
"""By column, the buckets of a segment's values."""
MOST_BITS = 4096
"""Buckets that a segment's coordinate tells apart: a catalog stays small."""


def bucket_of(value: Any, bits: int) -> int | None:
    """The bucket of a value among ``bits``; None for types that have no one text for equal values.

    >>> bucket_of("UA", 64), bucket_of(1234, 64), bucket_of(0.5, 64)
    (40, 35, None)
    """
    match value:
        case bool() | int() | str():
            text = str(value).encode("utf-8", "surrogatepass")
        case bytes():
            text = value
        case datetime():
            text = str(to_us(to_utc(value))).encode()
        case date():
            text = value.isoformat().encode()
        case _:
            return None
    return zlib.crc32(text) % bits


class BucketSet:
    """Buckets of values seen so far.

    >>> seen = BucketSet(60)
    >>> seen.add(["UA", "AA", None])
    >>> may_contain(seen.to_bytes(), "UA"), may_contain(seen.to_bytes(), "DL"), may_contain(seen.to_bytes(), 0.5)
    (True, False, True)
    """

    def __init__(self, buckets: int) -> None:
        self._bytes = -(-min(buckets, MOST_BITS) // 8)
        self._held = 0

    @property
    def is_full(self) -> bool:
        """Whether every bucket was seen: then it tells nothing."""
        return self._held == (1 << 8 * self._bytes) - 1

    def add(self, values: Iterable[Any]) -> None:
        """Note values; nulls have no bucket."""
        for value in values:
            bucket = None if value is None else bucket_of(value, 8 * self._bytes)
            if bucket is not None:
                self._held |= 1 << bucket

    def to_bytes(self) -> bytes:
        """A bit a bucket, the lowest first."""
        return self._held.to_bytes(self._bytes, "little")


def may_contain(buckets: bytes, value: Any) -> bool:
    """Whether a value may be among those whose buckets these are."""
    bucket = bucket_of(value, 8 * len(buckets))
    return bucket is None or bool(buckets[bucket >> 3] >> (bucket & 7) & 1)
