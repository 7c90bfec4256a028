"""What the catalog keeps of one column's values in one segment beside their bounds: an index or a sketch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

from lakehouse.core.checksum import Checksum
from lakehouse.core.hashing import is_hashable
from lakehouse.core.listing import Listing
from lakehouse.core.policy import Policy
from lakehouse.core.spec import TableSpec, field_id_of

INLINE_BYTES = 8 << 10
"""Summaries up to this size are kept in the catalog, larger ones in files, of which a look-up reads one page."""


class SummaryKind(StrEnum):
    """*index*: a Bloom filter of the values; *sketch*: how many distinct ones there are."""

    INDEX = "index"
    SKETCH = "sketch"


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the column with a Parquet field id, in ``content`` or in a file of ``bytes`` at ``path``."""

    segment: int
    field_id: int
    content: bytes = field(default=b"", repr=False)
    path: str = ""
    bytes: int = 0
    checksum: Checksum = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known of a column's values in some segments, rows that tombstones hide included.

    ``min`` and ``max`` are bounds: for long texts they may lie outside. ``distinct`` is an estimate (1.6 % standard
    error) over the share ``sketched`` of the rows, whose segments have a sketch; ``bytes`` are those of the column in
    the same files. None is what is not known.
    """

    column: str
    rows: int
    nulls: int | None
    min: Any
    max: Any
    distinct: int | None
    bytes: int | None
    sketched: float


class ColumnListing(Listing[ColumnStatistics]):
    """Statistics of columns; in Arrow, which has one type a column, ``min`` and ``max`` are text."""

    def to_arrow(self) -> pa.Table:
        """A row a column."""
        shown = [replace(one, min=_text(one.min), max=_text(one.max)) for one in self]
        return Listing(shown).to_arrow()


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def field_id(spec: TableSpec, column: str) -> int:
    """A column's Parquet field id, which no rename changes."""
    return field_id_of(spec.schema.field(column))


def indexed_columns(spec: TableSpec) -> tuple[str, ...]:
    """The columns of a table's property ``index``; of those that are gone, or nested, none."""
    if "index" not in spec.properties:
        return ()
    return tuple(dict.fromkeys(name for name in Policy.of(spec.properties).index if _is_summable(spec, name)))


def sketched_columns(spec: TableSpec) -> tuple[str, ...]:
    """The columns of which sketches are made: all that are not nested."""
    return tuple(name for name in spec.schema.names if _is_summable(spec, name))


def columns_of(spec: TableSpec, kind: SummaryKind) -> tuple[str, ...]:
    """The columns of which a kind of summary is made."""
    return indexed_columns(spec) if kind is SummaryKind.INDEX else sketched_columns(spec)


def _is_summable(spec: TableSpec, column: str) -> bool:
    return column in spec.schema.names and is_hashable(spec.schema.field(column).type)
