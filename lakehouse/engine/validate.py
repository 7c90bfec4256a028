"""Validation of incoming rows: refuse values that a file can store but no reader could read back, by column and row.

Arrow checks little of what it is given: text may be no UTF-8, a date may lie in no calendar, an offset may point beyond
its buffer. Only what a row shows counts: neither the bytes behind a null nor what a slice left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.interval import MAX_TIME, MIN_TIME, to_us
from lakehouse.core.kinds import UUID_TEXT
from lakehouse.engine.castable import as_list
from lakehouse.errors import InvalidRows

_DAY_US = 86_400_000_000
_UNITS_US = {"s": 1_000_000, "ms": 1000, "us": 1}
"""Microseconds of a timestamp's units; nanoseconds never leave the calendar."""
_FIRST_US, _LAST_US = to_us(MIN_TIME), to_us(MAX_TIME)
NOT_UTF8 = "text that is not UTF-8; decode it, or keep it in a binary column"
_CALENDAR = "a date or time outside the years 1 to 9999; correct it, or make it null"
_DIGITS = "a decimal with more digits than its type has; correct it or widen the type"
_NO_DAY = "a date that is no whole day; cast it to a timestamp or to days first"
_TWICE = "a map with one key twice, of which Spark would keep one; keep one"
_BROKEN = "malformed Arrow memory; make the array anew, array.validate(full=True) tells more"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where rows come from: how many were given before them, and of which partition of a Spark frame."""

    first_row: int = 0
    partition: int | None = None

    def facts(self, place: int) -> dict[str, int]:
        """What an error says of the row at a place, counted from 0 in all that was given."""
        row = {"row": self.first_row + place}
        return row if self.partition is None else row | {"partition": self.partition}

    def first(self, is_bad: pa.Array | pa.ChunkedArray) -> dict[str, int]:
        """The same of the first row for which a column of booleans is true."""
        return self.facts(pc.index(is_bad, True).as_py())


GIVEN = Origin()
"""Of rows that are all that was given."""


@dataclass(frozen=True, slots=True)
class _Fault:
    place: int
    what: str


def refuse_unreadable(column: pa.Array | pa.ChunkedArray, name: str, origin: Origin) -> None:
    """Raise `InvalidInput` for the first row of a column that holds what cannot be read.

    Cost: one look at texts, dates and times, and at the lengths of lists; nothing for other numbers.
    """
    start = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        fault = _first(chunk)
        if fault is not None:
            facts = origin.facts(start + fault.place)
            raise InvalidRows(f"the column holds {fault.what}", column=name, type=column.type, **facts)
        start += len(chunk)


def refuse_no_uuids(column: pa.Array | pa.ChunkedArray, name: str, origin: Origin) -> None:
    """Raise `InvalidInput` for the first text of a column that is not a UUID as `str` of one is.

    Other spellings of a UUID are refused as well: no engine would hold them equal. Cost: one look at each text.
    """
    is_wrong = pc.invert(pc.match_substring_regex(column, UUID_TEXT))
    if pc.any(is_wrong).as_py():
        remedy = "write it as 36 characters in lower case, as in '0f8fad5b-d9cb-469f-a165-70867728950e'"
        raise InvalidRows(f"the column holds text that is no UUID; {remedy}", column=name, **origin.first(is_wrong))


def first_refused(column: pa.Array | pa.ChunkedArray, is_refused: Callable[[Any], bool]) -> int:
    """The place of the first value that a check of any run of values refuses, which refuses the whole column."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        if is_refused(column.slice(low, middle - low)):
            high = middle
        else:
            low = middle
    return low


def _first(values: pa.Array) -> _Fault | None:
    """The first fault in an array."""
    if _refusal(values, full=False) is not None:
        return _Fault(0, _BROKEN)
    return _look(values)


def _look(values: pa.Array) -> _Fault | None:
    kind = values.type
    if not len(values) or pa.types.is_null(kind):
        return None
    if pa.types.is_struct(kind):
        return _earliest([_look(part) for part in values.flatten()])
    if pa.types.is_map(kind):
        keys, items = (as_list(values, part) for part in (values.keys, values.items))
        return _earliest([_look_in_list(keys), _look_in_list(items)]) or _repeated_key(keys)
    if pa.types.is_nested(kind):
        return _look_in_list(values)
    if pa.types.is_dictionary(kind):
        return _look_in_dictionary(values)
    refusal = _refusal(values)
    if refusal is not None:
        return _Fault(first_refused(values, _is_refused), _what(kind, refusal))
    return _outside_calendar(values)


def _earliest(faults: list[_Fault | None]) -> _Fault | None:
    return min((one for one in faults if one is not None), key=lambda one: one.place, default=None)


def _refusal(values: pa.Array, *, full: bool = True) -> str | None:
    """Why Arrow takes an array for malformed."""
    try:
        values.validate(full=full)
    except pa.ArrowException as error:
        return str(error)
    return None


def _is_refused(values: pa.Array) -> bool:
    return _refusal(values) is not None


def _what(kind: pa.DataType, refusal: str) -> str:
    if "UTF8" in refusal:
        return NOT_UTF8
    if pa.types.is_decimal(kind):
        return _DIGITS
    return _NO_DAY if pa.types.is_date64(kind) else _BROKEN


def _look_in_list(values: pa.Array) -> _Fault | None:
    """The first fault in the elements of lists of any kind, by the place of their list."""
    if not pa.types.is_fixed_size_list(values.type) and _has_bad_offsets(values):
        return _Fault(first_refused(values, _has_bad_offsets), _BROKEN)
    fault = _look(values.flatten())
    return fault and _Fault(int(_owners(values)[fault.place]), fault.what)


def _owners(values: pa.Array) -> npt.NDArray[np.int64]:
    """Of each element that `flatten` gives, the place of its list. Arrow's own function counts those behind nulls."""
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    return np.repeat(np.arange(len(values)), lengths.to_numpy(zero_copy_only=False))


def _has_bad_offsets(values: pa.Array) -> bool:
    """Whether lists begin or end where they cannot: Arrow looks at the same offsets over elements without values."""
    of, count = _LISTS[type(values)]
    own, hollow = values.buffers()[:count], [pa.nulls(len(values.values))]
    try:
        return _is_refused(
            pa.Array.from_buffers(of(pa.null()), len(values), own, offset=values.offset, children=hollow)
        )
    except pa.ArrowException:
        return True


_LISTS: dict[type, tuple[Callable[[pa.DataType], pa.DataType], int]] = {
    pa.ListArray: (pa.list_, 2),
    pa.LargeListArray: (pa.large_list, 2),
    pa.ListViewArray: (pa.list_view, 3),
    pa.LargeListViewArray: (pa.large_list_view, 3),
}
"""By kind of list, its type and how many buffers are its own."""


def _look_in_dictionary(values: pa.DictionaryArray) -> _Fault | None:
    """The first fault among the entries of a dictionary that rows name, by the place of such a row."""
    least, greatest = _bounds(values.indices)
    if least is None:
        return None
    if least < 0 or greatest >= len(values.dictionary):
        beyond = pc.greater_equal(values.indices, len(values.dictionary))
        wrong = beyond if least >= 0 else pc.or_(pc.less(values.indices, 0), beyond)
        return _Fault(pc.index(wrong, True).as_py(), "an index beyond its dictionary; encode the column anew")
    if _look(values.dictionary) is None:
        return None
    named = pc.unique(values.indices.drop_null())
    fault = _look(values.dictionary.take(named))
    return fault and _Fault(pc.index(values.indices, named[fault.place]).as_py(), fault.what)


def _repeated_key(keys: pa.ListArray) -> _Fault | None:
    flat, maps = keys.flatten(), _owners(keys)
    if pa.types.is_nested(flat.type) or pa.types.is_dictionary(flat.type):
        flat = pa.array([repr(one) for one in flat.to_pylist()], pa.string())
    counted = pa.table({"map": maps, "key": flat}).group_by(["map", "key"]).aggregate([([], "count_all")])
    if len(counted) == len(flat):
        return None
    return _Fault(pc.min(counted.filter(pc.field("count_all") > 1)["map"]).as_py(), _TWICE)


def _outside_calendar(values: pa.Array) -> _Fault | None:
    kind = values.type
    if pa.types.is_date(kind):
        unit_us = _DAY_US if pa.types.is_date32(kind) else _UNITS_US["ms"]
    elif pa.types.is_timestamp(kind) and kind.unit in _UNITS_US:
        unit_us = _UNITS_US[kind.unit]
    else:
        return None
    numbers = values.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    first, last = _FIRST_US // unit_us, _LAST_US // unit_us
    least, greatest = _bounds(numbers)
    if least is None or (first <= least and greatest <= last):
        return None
    outside = pc.or_(pc.less(numbers, first), pc.greater(numbers, last))
    return _Fault(pc.index(outside, True).as_py(), _CALENDAR)


def _bounds(numbers: pa.Array) -> tuple[Any, Any]:
    if not numbers.null_count:
        plain = numbers.to_numpy()
        return plain.min(), plain.max()
    bounds = pc.min_max(numbers)
    return bounds["min"].as_py(), bounds["max"].as_py()
