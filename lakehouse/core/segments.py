"""Many segments in columns: a million fit in memory, and questions about all of them are answered together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.interval import Interval
from lakehouse.core.listing import Listing
from lakehouse.core.segment import Segment
from lakehouse.core.segment_columns import HIGH, LOW, Columns, ListColumns, TableColumns
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import ROW_ID

_MOST = int(np.iinfo(np.int64).max)
_FEW = 256
"""Up to how many values are kept once they are made: a plan of a few segments is gone through several times."""


class Segments(Sequence[Segment]):
    """Segments as a sequence, of which every question is answered by columns (`lakehouse.core.segment_columns`).

    ``places`` says which rows of the columns these are (None: all); what is taken of some shares their columns. Values
    are made when they are asked for, and so are columns of values.

    >>> friday = Segment(id=1, start="2013-01-04", end="2013-01-05", ordinal=1, rows=10)
    >>> weekend = Segment(id=2, start="2013-01-05", end="2013-01-07", ordinal=2, rows=20)
    >>> both = Segments.of([friday, weekend])
    >>> both.rows, [one.id for one in both.take(np.array([1]))], both.ordinals.tolist()
    (30, [2], [1, 2])
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, columns: Columns, places: IntArray | None = None) -> None:
        self._columns = columns
        self._places = places
        self._length = len(columns) if places is None else len(places)

    @classmethod
    def of(cls, segments: Iterable[Segment]) -> Segments:
        """Any segments. Costs nothing before a column is asked for."""
        return segments if isinstance(segments, Segments) else cls(ListColumns(list(segments)))

    @classmethod
    def in_columns(cls, body: pa.Table) -> Segments:
        """The rows of a table with the columns of `lakehouse.core.segment_columns.FIELDS`, and of statistics.

        For a table's column ``c`` these are ``min:c`` and ``max:c`` (in the column's type), ``nulls:c`` and
        ``buckets:c``, each where it is known.
        """
        return cls(TableColumns(body))

    @classmethod
    def joined(cls, parts: Sequence[Segments]) -> Segments:
        """Several together, in order."""
        if len(parts) == 1:
            return parts[0]
        if parts and all(part._columns is parts[0]._columns for part in parts):
            return cls(parts[0]._columns, np.concatenate([part.places for part in parts]))
        return cls.of([segment for part in parts for segment in part])

    @cached_property
    def places(self) -> IntArray:
        """Row of the columns for each segment."""
        return np.arange(self._length, dtype=np.int64) if self._places is None else self._places

    @cached_property
    def _rows(self) -> pa.Array:
        return pa.array(self.places)

    @cached_property
    def bounds(self) -> tuple[IntArray, IntArray, IntArray]:
        """Starts, ends (microseconds since 1970) and ordinals."""
        return self.numbers("start_us"), self.numbers("end_us"), self.numbers("ordinal")

    @property
    def ordinals(self) -> IntArray:
        """Ordinals."""
        return self.bounds[2]

    @cached_property
    def ids(self) -> IntArray:
        """Ids, where those are numbers."""
        return self.numbers("id")

    @cached_property
    def row_ids(self) -> tuple[IntArray, IntArray]:
        """Least and greatest row id of each, both included; all there are where they are not known."""
        least, rows = self.numbers("first_row_id"), self.numbers("rows")
        greatest = least + rows - 1
        stored = self.flags("has_row_ids") | (rows == 0)
        if stored.any():
            low, high = self.statistics(LOW + ROW_ID), self.statistics(HIGH + ROW_ID)
            least = np.where(stored, 0 if low is None else low.fill_null(0).to_numpy(), least)
            greatest = np.where(stored, _MOST if high is None else high.fill_null(_MOST).to_numpy(), greatest)
        return least, greatest

    @property
    def rows(self) -> int:
        """Rows of all together."""
        return int(self.numbers("rows").sum())

    @property
    def bytes(self) -> int:
        """Bytes of all together."""
        return int(self.numbers("bytes").sum())

    @property
    def paths(self) -> list[str]:
        """Paths."""
        return self._columns.texts("path", self._places)

    def numbers(self, field: str) -> IntArray:
        """An integer field of each."""
        found = self._columns.numbers(field)
        return found if self._places is None else found[self._places]

    def flags(self, field: str) -> npt.NDArray[np.bool_]:
        """A field of each that is true or false."""
        found = self._columns.flags(field)
        return found if self._places is None else found[self._places]

    def statistics(self, name: str) -> pa.Array | None:
        """One column of statistics, such as ``min:delay``, null where not known; None where nothing is."""
        column = self._columns.statistics(name)
        return column if column is None or self._places is None else pc.call_function("take", [column, self._rows])

    def take(self, places: IntArray) -> Segments:
        """Those at some places, in that order."""
        return Segments(self._columns, self.places[places])

    def where(self, mask: npt.NDArray[np.bool_]) -> Segments:
        """Those for which a mask is true; itself if it is true for all."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def within(self, interval: Interval) -> Segments:
        """Those that overlap an interval."""
        starts, ends, _ = self.bounds
        return self.where((starts < interval.end_us) & (ends > interval.start_us))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> Segment: ...
    @overload
    def __getitem__(self, place: slice) -> Segments: ...
    def __getitem__(self, place: int | slice) -> Segment | Segments:
        if isinstance(place, slice):
            return self.take(np.arange(*place.indices(self._length), dtype=np.int64))
        return self._columns.segment(place if self._places is None else int(self._places[place]))

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._few) if self._length <= _FEW else self._columns.segments(self._places)

    @cached_property
    def _few(self) -> list[Segment]:
        return list(self._columns.segments(self._places))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"<{len(self)} segments>"

    def __reduce__(self) -> Any:
        return Segments.of, (list(self),)  # other processes get these segments, not the whole body

    def to_arrow(self) -> pa.Table:
        """A row a segment, a column a field."""
        return Listing(self).to_arrow()

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return self.to_arrow().to_pandas()
