"""Many segments in columns: a million fit in memory, and questions about all of them are answered together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse.core.interval import Interval, from_us
from lakehouse.core.listing import Listing
from lakehouse.core.segment import Segment
from lakehouse.core.skyline import IntArray, bounds
from lakehouse.core.spec import ROW_ID

FIELDS = pa.schema(
    [
        ("id", pa.int64()),
        ("start_us", pa.int64()),
        ("end_us", pa.int64()),
        ("ordinal", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("first_row_id", pa.int64()),
        ("has_row_ids", pa.bool_()),
        ("path", pa.string()),
        ("rewrites", pa.int64()),
        ("checksum", pa.binary()),
    ]
)
"""Columns of `Segments.body` beside those of statistics; no ``rewrites`` and no ``checksum`` are null, which a page
need not keep."""
LOW, HIGH, NULLS, BUCKETS = "min:", "max:", "nulls:", "buckets:"
"""What the name of a column's statistics begins with."""
_BLOCK = 4096
_MOST = int(np.iinfo(np.int64).max)


class Segments(Sequence[Segment]):
    """Segments as a sequence, kept as columns or as values.

    ``body`` has a row for each segment that was ever taken from, with the columns of `FIELDS` and, for a table's
    column ``c``, ``min:c``, ``max:c`` (in the column's type), ``nulls:c`` and ``buckets:c``; ``places`` says which rows
    these are.
    Values are made when they are asked for. Without a body the values themselves are kept.

    >>> friday = Segment(id=1, start="2013-01-04", end="2013-01-05", ordinal=1, rows=10)
    >>> weekend = Segment(id=2, start="2013-01-05", end="2013-01-07", ordinal=2, rows=20)
    >>> both = Segments.of([friday, weekend])
    >>> both.rows, [one.id for one in both.take(np.array([1]))], both.ordinals.tolist()
    (30, [2], [1, 2])
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        body: pa.Table | None,
        places: IntArray | None = None,
        values: Sequence[Segment] | None = None,
        columns: dict[str, pa.Array] | None = None,
    ) -> None:
        self.body = body
        self._values = values
        self._places = places
        self._columns: dict[str, pa.Array] = {} if columns is None else columns
        rows: Any = next(one for one in (values, places, body) if one is not None)
        self._length = len(rows)

    @classmethod
    def of(cls, segments: Iterable[Segment]) -> Segments:
        """Any segments; those that are in columns stay so."""
        return segments if isinstance(segments, Segments) else cls(None, values=list(segments))

    @classmethod
    def joined(cls, parts: Sequence[Segments]) -> Segments:
        """Several together, in order."""
        if len(parts) == 1:
            return parts[0]
        body = parts[0].body if parts else None
        if body is not None and all(part.body is body for part in parts):
            return cls(body, np.concatenate([part.places for part in parts]), columns=parts[0]._columns)
        return cls(None, values=[segment for part in parts for segment in part])

    @cached_property
    def places(self) -> IntArray:
        """Row of the body for each segment."""
        return np.arange(self._length, dtype=np.int64) if self._places is None else self._places

    @cached_property
    def bounds(self) -> tuple[IntArray, IntArray, IntArray]:
        """Starts, ends (microseconds since 1970) and ordinals."""
        if self._values is not None:
            return bounds(self._values)
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
        if self._values is not None:
            known = [one.row_ids or (0, _MOST) for one in self._values]
            return (
                np.array([least for least, _ in known], dtype=np.int64),
                np.array([greatest for _, greatest in known], dtype=np.int64),
            )
        least = self.numbers("first_row_id")
        greatest = least + self.numbers("rows") - 1
        stored = self.flags("has_row_ids")
        if stored.any():
            low, high = self.statistics(LOW + ROW_ID), self.statistics(HIGH + ROW_ID)
            assert low is not None, "bounds of row ids are columns of every table's segments"
            assert high is not None
            least = np.where(stored, low.fill_null(0).to_numpy(), least)
            greatest = np.where(stored, high.fill_null(_MOST).to_numpy(), greatest)
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
        if self._values is not None:
            return [one.path for one in self._values]
        found: list[str] = self._column("path").to_pylist()
        return found

    def numbers(self, field: str) -> IntArray:
        """An integer field of each."""
        if self._values is not None:
            return np.array([getattr(one, field) for one in self._values], dtype=np.int64)
        column = self._whole(field)
        found: IntArray = (column.fill_null(0) if column.null_count else column).to_numpy()
        return found if self._places is None else found[self._places]

    def flags(self, field: str) -> npt.NDArray[np.bool_]:
        """A field of each that is true or false."""
        if self._values is not None:
            return np.array([getattr(one, field) for one in self._values], dtype=np.bool_)
        return np.asarray(self._column(field).to_numpy(zero_copy_only=False), dtype=np.bool_)

    def statistics(self, name: str) -> pa.Array | None:
        """One column of statistics, such as ``min:delay``; None where there is none."""
        assert self.body is not None
        return self._column(name) if name in self.body.column_names else None

    def take(self, places: IntArray) -> Segments:
        """Those at some places, in that order."""
        if self._values is not None:
            return Segments(None, values=[self._values[place] for place in places.tolist()])
        return Segments(self.body, self.places[places], columns=self._columns)

    def where(self, mask: npt.NDArray[np.bool_]) -> Segments:
        """Those for which a mask is true; itself if it is true for all."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def within(self, interval: Interval) -> Segments:
        """Those that overlap an interval."""
        starts, ends, _ = self.bounds
        return self.where((starts < interval.end_us) & (ends > interval.start_us))

    def _column(self, name: str) -> pa.Array:
        column = self._whole(name)
        return column if self._places is None else column.take(pa.array(self._places))

    def _whole(self, name: str) -> pa.Array:
        """A column of the body in one piece, made once for all that was taken from it."""
        if name not in self._columns:
            assert self.body is not None
            self._columns[name] = self.body.column(name).combine_chunks()
        return self._columns[name]

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> Segment: ...
    @overload
    def __getitem__(self, place: slice) -> Segments: ...
    def __getitem__(self, place: int | slice) -> Segment | Segments:
        if isinstance(place, slice):
            return self.take(np.arange(*place.indices(self._length), dtype=np.int64))
        if self._values is not None:
            return self._values[place]
        row = int(self.places[place])
        assert self.body is not None
        return _segment(self.body, row, *(self.body.column(name)[row].as_py() for name in FIELDS.names))

    def __iter__(self) -> Iterator[Segment]:
        if self._values is not None:
            yield from self._values
            return
        assert self.body is not None
        for first in range(0, self._length, _BLOCK):
            rows = self.places[first : first + _BLOCK]
            taken = pa.array(rows)
            columns = [self._whole(name).take(taken).to_pylist() for name in FIELDS.names]
            for row, *values in zip(rows.tolist(), *columns, strict=True):
                yield _segment(self.body, row, *values)

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


class _Statistics(Mapping[str, Any]):
    """One row's min, max or null counts by column, looked up when asked for."""

    __slots__ = ("_body", "_prefix", "_row")

    def __init__(self, body: pa.Table, row: int, prefix: str) -> None:
        self._body, self._row, self._prefix = body, row, prefix

    def __getitem__(self, column: str) -> Any:
        name = self._prefix + column
        value = self._body.column(name)[self._row].as_py() if name in self._body.column_names else None
        if value is None:
            raise KeyError(column)
        return value

    def _held(self) -> dict[str, Any]:
        named = [name for name in self._body.column_names if name.startswith(self._prefix)]
        found = {name.removeprefix(self._prefix): self._body.column(name)[self._row].as_py() for name in named}
        return {name: value for name, value in found.items() if value is not None}

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __len__(self) -> int:
        return len(self._held())

    def __eq__(self, other: object) -> bool:
        return self._held() == (other._held() if isinstance(other, _Statistics) else other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return dict, (self._held(),)

    def __repr__(self) -> str:
        return repr(self._held())


def _segment(
    body: pa.Table,
    row: int,
    entry: int,
    start_us: int,
    end_us: int,
    ordinal: int,
    rows: int,
    size: int,
    first_row_id: int,
    has_row_ids: bool,
    path: str,
    rewrites: int | None,
    checksum: bytes | None,
) -> Segment:
    """A segment of values that were checked when they were stored: checking them again would cost most of the time."""
    made = object.__new__(Segment)
    put = object.__setattr__
    put(made, "id", entry)
    put(made, "start", from_us(start_us))
    put(made, "end", from_us(end_us))
    put(made, "ordinal", ordinal)
    put(made, "rows", rows)
    put(made, "bytes", size)
    put(made, "path", path)
    put(made, "rewrites", rewrites or 0)
    put(made, "checksum", checksum or b"")
    put(made, "first_row_id", first_row_id)
    put(made, "has_row_ids", has_row_ids)
    put(made, "min", _Statistics(body, row, LOW))
    put(made, "max", _Statistics(body, row, HIGH))
    put(made, "nulls", _Statistics(body, row, NULLS))
    put(made, "buckets", _Statistics(body, row, BUCKETS))
    return made
