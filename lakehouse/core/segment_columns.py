"""Where what is known of many segments comes from, column by column: a table of them, or a list of values.

Whoever asks for a column cannot tell which of the two it is. A column is made when it is asked for, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse.core.codec import codec_name, codec_number
from lakehouse.core.interval import from_us, to_us
from lakehouse.core.kinds import kind_of
from lakehouse.core.segment import Segment

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

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
        ("schema_number", pa.int64()),
        ("codec", pa.int64()),
    ]
)
"""Columns of a table of segments beside those of statistics. No ``rewrites``, no ``checksum``, the first schema and no
known ``codec``, which is a number of `lakehouse.core.codec`, are null, which a page need not keep."""
LOW, HIGH, NULLS, BUCKETS = "min:", "max:", "nulls:", "buckets:"
"""What the name of a column's statistics begins with."""
_BLOCK = 4096
_NO_COLUMN = (pa.ArrowException, OverflowError, UnicodeError)
"""What Arrow raises of values that no column of its types holds."""


class Columns(Protocol):
    """Segments by row, and what is known of all of them by column."""

    def __len__(self) -> int: ...

    def numbers(self, field: str) -> IntArray:
        """An integer field of `FIELDS` of each; 0 where there is none."""
        ...

    def flags(self, field: str) -> BoolArray:
        """A field of `FIELDS` of each that is true or false."""
        ...

    def texts(self, field: str, rows: IntArray | None) -> list[str]:
        """A text field of `FIELDS` of some rows (None: all)."""
        ...

    def statistics(self, name: str) -> pa.Array | None:
        """A column of statistics of each, such as ``min:delay``, null where not known; None where there is none.

        The least and greatest of a column have one type.
        """
        ...

    def segment(self, row: int) -> Segment:
        """The segment of a row."""
        ...

    def segments(self, rows: IntArray | None) -> Iterator[Segment]:
        """The segments of some rows (None: all), in that order."""
        ...


class TableColumns:
    """Segments that are rows of a table with the columns of `FIELDS` and of statistics; values are made of them.

    >>> body = pa.Table.from_pylist([{"id": 1, "start_us": 0, "end_us": 9, "ordinal": 1, "min:delay": 3}])
    >>> TableColumns(body).numbers("end_us").tolist(), TableColumns(body).statistics("max:delay")
    ([9], None)
    """

    __slots__ = ("_body", "_flags", "_made")

    def __init__(self, body: pa.Table) -> None:
        self._body = body
        self._flags: dict[str, BoolArray] = {}
        self._made: dict[str, pa.Array] = {}

    def __len__(self) -> int:
        return len(self._body)

    def numbers(self, field: str) -> IntArray:
        """An integer field of each; 0 where there is none."""
        column = self._whole(field)
        found: IntArray = (column.fill_null(0) if column.null_count else column).to_numpy()
        return found

    def flags(self, field: str) -> BoolArray:
        """A field of each that is true or false."""
        if field not in self._flags:
            self._flags[field] = np.asarray(self._whole(field).to_numpy(zero_copy_only=False), dtype=np.bool_)
        return self._flags[field]

    def texts(self, field: str, rows: IntArray | None) -> list[str]:
        """A text field of some rows."""
        column = self._whole(field)
        found: list[str] = (column if rows is None else column.take(pa.array(rows))).to_pylist()
        return found

    def statistics(self, name: str) -> pa.Array | None:
        """A column of statistics; None where the table has none."""
        return self._whole(name) if self._body.schema.get_field_index(name) >= 0 else None

    def segment(self, row: int) -> Segment:
        """The segment of a row."""
        return _segment(self._body, row, *(self._body.column(name)[row].as_py() for name in FIELDS.names))

    def segments(self, rows: IntArray | None) -> Iterator[Segment]:
        """The segments of some rows; a block of values is in memory at a time."""
        listed = np.arange(len(self._body), dtype=np.int64) if rows is None else rows
        for first in range(0, len(listed), _BLOCK):
            block = listed[first : first + _BLOCK]
            taken = None if rows is None and len(block) == len(listed) else pa.array(block)
            whole = map(self._whole, FIELDS.names)
            columns = [(one if taken is None else one.take(taken)).to_pylist() for one in whole]
            for row, *values in zip(block.tolist(), *columns, strict=True):
                yield _segment(self._body, row, *values)

    def _whole(self, name: str) -> pa.Array:
        """A column in one piece."""
        if name not in self._made:
            column = self._body.column(name)
            self._made[name] = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        return self._made[name]


class ListColumns:
    """Segments that are values; columns are made of them.

    A column's least and greatest values have the type that Arrow finds for all of them. Where they do not compare with
    each other, or no type holds them (as for integers of more than 64 bits), nothing is known.

    >>> delayed = Segment(id="a", start="2013-01-05", end="2013-01-06", ordinal=1, min={"delay": 3}, max={"delay": 9})
    >>> columns = ListColumns([delayed])
    >>> columns.numbers("ordinal").tolist(), columns.statistics("max:delay").to_pylist(), columns.statistics("min:id")
    ([1], [9], None)
    """

    __slots__ = ("_numbers", "_statistics", "_values")

    def __init__(self, values: Sequence[Segment]) -> None:
        self._values = values
        self._numbers: dict[str, IntArray] = {}
        self._statistics: dict[str, pa.Array | None] = {}

    def __len__(self) -> int:
        return len(self._values)

    def numbers(self, field: str) -> IntArray:
        """An integer field of each. Ids that are no integers of 64 bits cannot be had so."""
        if field not in self._numbers:
            of = _LISTED.get(field)
            listed = list(map(attrgetter(field), self._values)) if of is None else of(self._values)
            self._numbers[field] = np.array(listed, dtype=np.int64)
        return self._numbers[field]

    def flags(self, field: str) -> BoolArray:
        """A field of each that is true or false."""
        return np.array([getattr(one, field) for one in self._values], dtype=np.bool_)

    def texts(self, field: str, rows: IntArray | None) -> list[str]:
        """A text field of some rows."""
        return [getattr(one, field) for one in self.segments(rows)]

    def statistics(self, name: str) -> pa.Array | None:
        """A column of statistics; None where no value has any."""
        if name not in self._statistics:
            prefix, column = name.partition(":")[::2]
            if prefix in ("min", "max"):
                both = self._bounds(column)
                low, high = (None, None) if both is None else (both[: len(self)], both[len(self) :])
                self._statistics[LOW + column], self._statistics[HIGH + column] = low, high
            else:
                held = [getattr(one, prefix).get(column) for one in self._values]
                self._statistics[name] = None if all(one is None for one in held) else pa.array(held)
        return self._statistics[name]

    def _bounds(self, column: str) -> pa.Array | None:
        """The least values of all, then the greatest, as one array."""
        held = [one.min.get(column) for one in self._values] + [one.max.get(column) for one in self._values]
        kinds = {kind_of(one) for one in held if one is not None}
        if len(kinds) != 1 or None in kinds:
            return None
        try:
            return pa.array(held)
        except _NO_COLUMN:
            return None

    def segment(self, row: int) -> Segment:
        """The value of a row itself."""
        return self._values[row]

    def segments(self, rows: IntArray | None) -> Iterator[Segment]:
        """The values of some rows."""
        return iter(self._values) if rows is None else map(self._values.__getitem__, rows.tolist())


_LISTED: Mapping[str, Callable[[Sequence[Segment]], list[int]]] = {
    "start_us": lambda values: [to_us(one.start) for one in values],
    "end_us": lambda values: [to_us(one.end) for one in values],
    "ordinal": lambda values: [one.ordinal for one in values],
    "codec": lambda values: [codec_number(one.codec) for one in values],
}
"""Columns that every plan asks for, and those that a value has in another form."""


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
    schema_number: int | None,
    codec: int | None,
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
    put(made, "schema_number", schema_number or 0)
    put(made, "codec", codec_name(codec))
    put(made, "first_row_id", first_row_id)
    put(made, "has_row_ids", has_row_ids)
    put(made, "min", _Statistics(body, row, LOW))
    put(made, "max", _Statistics(body, row, HIGH))
    put(made, "nulls", _Statistics(body, row, NULLS))
    put(made, "buckets", _Statistics(body, row, BUCKETS))
    return made
