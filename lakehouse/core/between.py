"""Whether a value between two bounds could compare as a condition asks, for many pairs of bounds together.

A bound that is null bounds nothing. Values whose kinds do not compare may pass any comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.kinds import NUMBERS, column_kind, kind_of, single
from lakehouse.core.predicate import Operator

Mask = npt.NDArray[np.bool_]
_INCLUDING: dict[Operator, Operator] = {"<": "<=", ">": ">="}
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_DIGITS = Context(prec=80)
"""More than a decimal column has."""


@dataclass(frozen=True)
class Between:
    """The least and greatest values of a column in each segment, of one type, null where not known.

    >>> delays = Between(pa.array([3, None]), pa.array([9, 9]))
    >>> delays.may_pass("<", 3).tolist(), delays.may_pass("=", 2.5).tolist(), delays.may_pass("=", "late").tolist()
    ([False, True], [False, True], [True, True])
    """

    low: pa.Array
    high: pa.Array

    def may_pass(self, operator: Operator, value: Any) -> Mask:
        """For each pair of bounds, whether some x between them, both included, could make ``x operator value`` true.

        NaN is greater than every number and is not in the bounds, so a float's greatest never excludes ``>``, ``>=`` or
        ``<>``. Cost: a few passes.
        """
        kinds = {kind_of(value), column_kind(self.low.type)}
        if kinds <= NUMBERS and (len(kinds) > 1 or kinds == {"float"}):
            return self._rounded(operator, value, kinds)
        if len(kinds) > 1 or None in kinds:
            return self._anything
        try:
            nearest = _nearest(value, self.low.type)
        except UnicodeError:  # half a pair of surrogates, which no column holds
            return self._anything
        return _lies_between(operator, nearest, self.low, self.high)

    def may_be_among(self, values: Sequence[Any]) -> Mask | None:
        """For each pair of bounds, whether one of some whole numbers could lie there; None for other values or columns.

        Cost: a sort of the values, and a search for each pair.

        >>> Between(pa.array([3, None, 7]), pa.array([5, 9, None])).may_be_among([1, 6, 2]).tolist()
        [False, True, False]
        """
        if not pa.types.is_integer(self.low.type) or any(type(one) is not int for one in values):
            return None
        if not all(_LEAST <= one <= _GREATEST for one in values):
            return None
        among = np.sort(np.array(values, dtype=np.int64))
        low, high = (
            bound.cast(pa.int64()).fill_null(beyond).to_numpy()
            for bound, beyond in ((self.low, _LEAST), (self.high, _GREATEST))
        )
        found: Mask = np.searchsorted(among, low, "left") < np.searchsorted(among, high, "right")
        return found

    @cached_property
    def is_bounded(self) -> Mask:
        """Which have a least value."""
        return ~_mask(self.low.is_null())

    @property
    def _anything(self) -> Mask:
        return np.ones(len(self.low), dtype=np.bool_)

    def _rounded(self, operator: Operator, value: Any, kinds: set[str | None]) -> Mask:
        """The same where a float is involved, or numbers of two types, of which an engine may round one.

        Rounding keeps order but makes neighbours equal: so numbers of two types compare as floats with the limits
        included, and against a column of single precision, which its bounds do not tell apart from one of double
        precision that holds short numbers, both roundings of ``value`` count.
        """
        try:
            value = float(value)
        except OverflowError:
            return self._anything
        if math.isnan(value) or operator == "<>" or ("float" in kinds and operator in (">", ">=")):
            return self._anything
        if len(kinds) > 1:
            operator = _INCLUDING.get(operator, operator)
        low, high = self._doubles
        found = _lies_between(operator, _twice(pa.scalar(value)), low, high)
        rounded = single(value)
        if rounded != value:
            found |= self._is_single & _lies_between(operator, _twice(pa.scalar(rounded)), low, high)
        return found

    @cached_property
    def _doubles(self) -> tuple[pa.Array, pa.Array]:
        return _doubles(self.low), _doubles(self.high)

    @cached_property
    def _is_single(self) -> Mask:
        low, high = self._doubles
        return _is_single(low) & _is_single(high)


Nearest = tuple[pa.Scalar | None, pa.Scalar | None]
"""The greatest value of a type that is not above some value, and the least that is not below it; None for none."""


def _nearest(value: Any, kind: pa.DataType) -> Nearest:
    """A value among those of a column's type, which may hold fewer digits, or be narrower.

    >>> [[None if one is None else one.as_py() for one in _nearest(value, pa.int8())] for value in (7, 300, -300)]
    [[7, 7], [127, None], [None, -128]]
    >>> [str(one) for one in _nearest(Decimal("0.125"), pa.decimal128(5, 2))]
    ['0.12', '0.13']
    """
    least, greatest = _limits(kind)
    if greatest is not None and value > greatest:
        return pa.scalar(greatest, kind), None
    if least is not None and value < least:
        return None, pa.scalar(least, kind)
    if not pa.types.is_decimal(kind):
        return _twice(pa.scalar(value, kind))
    unit = Decimal(1).scaleb(-kind.scale)
    below, above = (value.quantize(unit, way, _DIGITS) for way in (ROUND_FLOOR, ROUND_CEILING))
    return pa.scalar(below, kind), pa.scalar(above, kind)


def _limits(kind: pa.DataType) -> tuple[Any, Any]:
    """The least and greatest number of a type; None of one that holds every value of its kind."""
    if pa.types.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return -most, most - 1
    if pa.types.is_decimal(kind):
        greatest = Decimal(10**kind.precision - 1).scaleb(-kind.scale, _DIGITS)
        return -greatest, greatest
    return None, None


def _twice(value: pa.Scalar) -> Nearest:
    return value, value


def _lies_between(operator: Operator, nearest: Nearest, low: pa.Array, high: pa.Array) -> Mask:
    """Whether some x between the bounds passes, the value being known by its nearest neighbours among the column's."""
    below, above = nearest
    match operator:
        case "=":
            return _holds(pc.less_equal, low, below) & _holds(pc.greater_equal, high, above)
        case "<>":
            if below is None or above is None or not below.equals(above):
                return np.ones(len(low), dtype=np.bool_)
            return ~_mask(pc.and_(pc.equal(low, below), pc.equal(high, below)), null=False)
        case "<":
            return _holds(pc.less, low, above, beyond=True)
        case "<=":
            return _holds(pc.less_equal, low, below)
        case ">":
            return _holds(pc.greater, high, below, beyond=True)
        case ">=":
            return _holds(pc.greater_equal, high, above)


def _holds(compare: Callable[..., pa.Array], bound: pa.Array, value: pa.Scalar | None, *, beyond: bool = False) -> Mask:
    """Whether bounds compare so with a value, or with one ``beyond`` all of the column's; null ones do."""
    if value is None:
        return np.ones(len(bound), dtype=np.bool_) if beyond else _mask(bound.is_null())
    return _mask(compare(bound, value), null=True)


def _mask(found: pa.Array, *, null: bool = False) -> Mask:
    if found.null_count:
        found = found.fill_null(null)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _doubles(column: pa.Array) -> pa.Array:
    """Bounds as doubles, each the nearest one; a NaN bounds nothing."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # Arrow's own cast to doubles is a last bit off for one in six
    values = column.cast(pa.float64(), safe=False)
    return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)


def _is_single(column: pa.Array) -> Mask:
    """Whether a bound is the same in single precision; no bound is."""
    values = column.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        found: Mask = np.isnan(values) | (values == values.astype(np.float32))
    return found
