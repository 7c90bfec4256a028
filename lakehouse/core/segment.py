"""A segment: an immutable file of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from typing import Any, NewType

from lakehouse.core.bucket import Buckets
from lakehouse.core.checksum import Checksum
from lakehouse.core.interval import Interval, read_bounds
from lakehouse.core.spec import ROW_ID
from lakehouse.errors import InvalidInput

SegmentId = NewType("SegmentId", int)
BOUND_LENGTH = 128
"""Longer string and binary bounds are cut (the upper one rounded up), so the catalog stays small."""


@dataclass(frozen=True, slots=True)
class Segment:
    """An immutable file of rows and what the catalog knows of it.

    ``start`` and ``end`` bound the rows' times closed-open, ``ordinal`` is the place in the table's write order,
    ``path`` is relative to the warehouse. ``min``, ``max`` and ``nulls`` hold, by column name, the least and greatest
    value and the number of nulls, where the file's footer gave them; ``buckets`` the hash buckets of a cluster column's
    values (`lakehouse.core.bucket`). Row n has the row id ``first_row_id + n`` unless
    the file stores ``_row_id`` (``has_row_ids``), whose bounds are then in ``min`` and ``max``. ``rewrites`` is how
    often rows were erased from it: then ``start`` and ``end`` may bound more than there still is. ``checksum`` is
    that of the file (`lakehouse.core.checksum`), ``codec`` how its pages are compressed (`lakehouse.core.codec`), empty
    where that is not known, ``schema_number`` that of the columns which it was written with.

    >>> Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=3, rows=10).interval
    Interval('2013-01-05', '2013-01-06')
    """

    id: Any
    start: datetime
    end: datetime
    ordinal: int
    rows: int = field(default=0, compare=False)
    bytes: int = field(default=0, compare=False)
    path: str = field(default="", compare=False)
    first_row_id: int = field(default=0, compare=False)
    has_row_ids: bool = field(default=False, compare=False)
    min: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    max: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    nulls: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    buckets: Buckets = field(default_factory=dict, compare=False, repr=False)
    rewrites: int = field(default=0, compare=False)
    checksum: Checksum = field(default=b"", compare=False, repr=False)
    schema_number: int = field(default=0, compare=False, repr=False)
    codec: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        start, end = read_bounds(self.start, self.end)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)
        if self.rows < 0 or self.bytes < 0:
            raise InvalidInput("a segment cannot hold fewer than 0 rows or bytes", id=self.id, rows=self.rows)

    @property
    def interval(self) -> Interval:
        """The closed-open interval that the rows cover."""
        return Interval(self.start, self.end)

    @property
    def row_ids(self) -> tuple[int, int] | None:
        """The least and greatest row id, both included; None where they are not known, as without a count of rows."""
        if not self.has_row_ids and self.rows:
            return self.first_row_id, self.first_row_id + self.rows - 1
        least, greatest = self.min.get(ROW_ID), self.max.get(ROW_ID)
        return None if least is None or greatest is None else (least, greatest)


@dataclass(frozen=True, slots=True)
class NewSegment:
    """A durable file that is to be a segment, and what its footer says of its rows.

    ``path`` is relative to the folder in which the file was looked for, and to the warehouse in what is committed.
    Statistics are by the names that columns have in files. A segment has all of this under the same names. Nothing is
    checked here: a footer was, when it was read.

    >>> new = NewSegment("t/1/a.parquet", Interval.of("2013-01-05").start, Interval.of("2013-01-05").end, 10, 2_000)
    >>> new.added(7, ordinal=3, first_row_id=100).row_ids
    (100, 109)
    """

    path: str
    start: datetime
    end: datetime
    rows: int
    bytes: int
    has_row_ids: bool = False
    min: Mapping[str, Any] = field(default_factory=dict)
    max: Mapping[str, Any] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    buckets: Buckets = field(default_factory=dict)
    checksum: Checksum = field(default=b"", repr=False)
    schema_number: int = 0
    codec: str = ""

    @property
    def interval(self) -> Interval:
        """The closed-open interval that the rows cover."""
        return Interval(self.start, self.end)

    def added(self, id: Any, *, ordinal: int, first_row_id: int) -> Segment:
        """The segment that a commit makes of it; row ids are counted from ``first_row_id`` if the file stores none."""
        first = 0 if self.has_row_ids else first_row_id
        of_file = dict(zip(_OF_FILE, _values_of_file(self), strict=True))
        return Segment(id=id, ordinal=ordinal, first_row_id=first, **of_file)


_OF_FILE = tuple(one.name for one in fields(NewSegment))
_values_of_file = attrgetter(*_OF_FILE)
