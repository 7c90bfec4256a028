"""Which of many segments could hold a row that passes a filter, by their statistics alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse.core.between import Between
from lakehouse.core.bucket import may_contain
from lakehouse.core.keys import KeyScope
from lakehouse.core.kinds import column_kind, kind_of
from lakehouse.core.predicate import And, Compare, In, IsNull, Operator, Or, Predicate, Unknown
from lakehouse.core.segment_columns import BUCKETS, HIGH, LOW, NULLS
from lakehouse.core.segments import Segments

Mask = npt.NDArray[np.bool_]
_MANY = 4
"""Values that are looked for together from this number on."""


def matching(predicate: Predicate, segments: Segments) -> Mask:
    """For each segment whether some row could pass, by its min, max, null counts and hash buckets alone.

    A column without statistics may hold anything, and what `lakehouse.core.between` cannot compare may pass. A segment
    of 0 rows is one whose rows were not counted. Cost: a few passes over the segments for each condition; of many equal
    to whole numbers, as of IN, as for one.

    >>> from lakehouse.core.segment import Segment
    >>> delayed = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1, min={"delay": 3}, max={"delay": 9})
    >>> [matching(one, Segments.of([delayed])).tolist() for one in (Compare("delay", "<", 3), Unknown())]
    [[False], [True]]
    """
    return _matching(predicate, segments, {})


def _matching(predicate: Predicate, segments: Segments, known: dict[str, _Column]) -> Mask:
    """The same, with the columns that are ``known`` so far."""
    match predicate:
        case And(parts):
            found = np.ones(len(segments), dtype=np.bool_)
            for part in parts:
                found &= _matching(part, segments, known)
            return found
        case Or(parts):
            return _any(parts, segments, known)
        case Unknown():
            return np.ones(len(segments), dtype=np.bool_)
        case IsNull(column, negated):
            held = _column(column, segments, known)
            return ~held.holds_only_nulls if negated else held.may_hold_null
        case Compare(column, operator, value):
            return _column(column, segments, known).may_pass(operator, value)
        case In(column, values):
            return _column(column, segments, known).may_hold([one for one in values if one is not None])


def _any(parts: Sequence[Predicate], segments: Segments, known: dict[str, _Column]) -> Mask:
    """For each segment whether one of some conditions could pass; those that are equalities are looked at together."""
    found = np.zeros(len(segments), dtype=np.bool_)
    equal: dict[str, list[Any]] = {}
    for part in parts:
        if isinstance(part, Compare) and part.operator == "=" and part.value is not None:
            equal.setdefault(part.column, []).append(part.value)
        else:
            found |= _matching(part, segments, known)
    for column, values in equal.items():
        found |= _column(column, segments, known).may_hold(values)
    return found


def _column(name: str, segments: Segments, known: dict[str, _Column]) -> _Column:
    if name not in known:
        known[name] = _Column(segments, name)
    return known[name]


def holding(keys: KeyScope | None, segments: Segments) -> Mask:
    """For each segment whether some row could lie in a key scope, by its statistics alone.

    >>> from lakehouse.core.segment import Segment
    >>> segment = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1, min={"client": 3}, max={"client": 9})
    >>> [holding(keys, Segments.of([segment])).tolist() for keys in ({"client": (1, 5)}, {"client": (1, 2)}, None)]
    [[True], [False], [True]]
    """
    found = np.ones(len(segments), dtype=np.bool_)
    for column, values in (keys or {}).items():
        found &= _Column(segments, column).may_hold(values)
    return found


class _Column:
    """What segments' statistics say of one column."""

    def __init__(self, segments: Segments, column: str) -> None:
        self._segments = segments
        self._name = column

    def may_hold(self, values: Any) -> Mask:
        """Which may hold one of some values; None is a null."""
        found = np.zeros(len(self._segments), dtype=np.bool_)
        if len(values) >= _MANY and self._bounds is not None and self._buckets is None:
            together = self._bounds.may_be_among(values)
            if together is not None:
                return ~self.holds_only_nulls & together
        for one in values:
            found |= self.may_hold_null if one is None else self.may_pass("=", one)
        return found

    def may_pass(self, operator: Operator, value: Any) -> Mask:
        """Which may hold a value that compares so."""
        if self._bounds is None:
            return ~self.holds_only_nulls
        found = ~self.holds_only_nulls & self._bounds.may_pass(operator, value)
        if operator == "=" and self._buckets is not None and kind_of(value) == column_kind(self._bounds.low.type):
            self._leave_out_buckets(value, self._bounds, self._buckets, found)
        return found

    @cached_property
    def may_hold_null(self) -> Mask:
        """Which may hold a null."""
        found: Mask = self._nulls != 0
        return found

    @cached_property
    def holds_only_nulls(self) -> Mask:
        """Which hold nothing but nulls, and some of those."""
        rows = self._segments.numbers("rows")
        found: Mask = (rows > 0) & (self._nulls == rows)
        return found

    @cached_property
    def _nulls(self) -> npt.NDArray[np.int64]:
        """Null counts; -1 where they are not known."""
        held = self._segments.statistics(NULLS + self._name)
        if held is None:
            return np.full(len(self._segments), -1, dtype=np.int64)
        found: npt.NDArray[np.int64] = (held.fill_null(-1) if held.null_count else held).to_numpy()
        return found

    @cached_property
    def _bounds(self) -> Between | None:
        low, high = (self._segments.statistics(prefix + self._name) for prefix in (LOW, HIGH))
        return None if low is None or high is None else Between(low, high)

    @cached_property
    def _buckets(self) -> pa.Array | None:
        return self._segments.statistics(BUCKETS + self._name)

    def _leave_out_buckets(self, value: Any, bounds: Between, buckets: pa.Array, found: Mask) -> None:
        """Take those out whose values are all in other buckets. Cost: a step for each that is left."""
        places = np.flatnonzero(found & bounds.is_bounded)
        coordinates = buckets.take(pa.array(places)).to_pylist()
        found[places] = [held is None or may_contain(held, value) for held in coordinates]
