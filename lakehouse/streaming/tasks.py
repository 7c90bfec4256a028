"""What tasks of Spark read of a table, whether a query is a stream or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from lakehouse.core.column import listed_type
from lakehouse.core.spec import TableSpec

T = TypeVar("T")
PARTITION_BYTES = 128 << 20
"""Of how many bytes of files one task reads."""


def packed(things: Iterable[T], bytes_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Things in order, in lists of at most `PARTITION_BYTES`, or of a single one.

    >>> [len(some) for some in packed([1, 2, PARTITION_BYTES, 3], int)]
    [2, 1, 1]
    """
    held: list[T] = []
    size = 0
    for one in things:
        its = bytes_of(one)
        if held and size + its > PARTITION_BYTES:
            yield held
            held, size = [], 0
        held.append(one)
        size += its
    if held:
        yield held


def with_lists(spec: TableSpec) -> TableSpec:
    """The table with lists in the place of lists of fixed size, which Spark takes none of from a Python source."""
    return replace(spec, schema=pa.schema([one.with_type(listed_type(one.type)) for one in spec.schema]))
