"""Numbers of a type as steps: which of them equal a written number. All lower ones are less, all higher ones are more.

Integers and decimals hold multiples of a step. An exact number is compared with them as it is. A double is compared
with what they are as doubles, as Spark does it: many steps may round to one double. So a comparison with any number
becomes one with a value of the column's own type, which both engines and the statistics of files decide alike.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

Steps = tuple[int, int]
"""The first and the last of some steps in a row; none if the first is above the last."""


def limits(kind: pa.DataType) -> Steps:
    """The least and the greatest step that an integer or decimal type holds.

    >>> limits(pa.int8()), limits(pa.decimal128(3, 1))
    ((-128, 127), (-999, 999))
    """
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        return -most, most
    half: int = 1 << (kind.bit_width - 1)
    return -half, half - 1


def equal_steps(value: int | Decimal | float, kind: pa.DataType) -> Steps:
    """The steps of an integer or decimal type that are equal to a number; may lie beyond what the type holds.

    >>> equal_steps(1.5, pa.int64()), equal_steps(Decimal("1.5"), pa.decimal128(3, 1))
    ((2, 1), (15, 15))
    >>> equal_steps(float(1 << 60), pa.int64()) == ((1 << 60) - 64, (1 << 60) + 128)
    True
    """
    scale = 10 ** (kind.scale if pa.types.is_decimal(kind) else 0)
    if isinstance(value, float) and not math.isfinite(value):
        low, high = limits(kind)
        return (low, low - 1) if value == -math.inf else (high + 1, high)  # NaN is greater than every number
    if isinstance(value, float):
        return _rounding_to(value, scale)
    if scale == 1 and isinstance(value, int):
        return value, value
    exact = Fraction(value) * scale
    return math.ceil(exact), math.floor(exact)


def _rounding_to(value: float, scale: int) -> Steps:
    below, above = (math.nextafter(value, end) for end in (-math.inf, math.inf))
    exact = Fraction(value)
    lowest = (exact + Fraction(below)) / 2 if math.isfinite(below) else exact
    highest = (exact + Fraction(above)) / 2 if math.isfinite(above) else exact
    first, last = math.ceil(lowest * scale), math.floor(highest * scale)
    # What lies in the middle between two doubles goes to the even one.
    if float(Fraction(first, scale)) < value:
        first += 1
    if float(Fraction(last, scale)) > value:
        last -= 1
    return first, last


def value_of(step: int, kind: pa.DataType) -> int | Decimal:
    """The Python value of a step.

    >>> value_of(-15, pa.decimal128(3, 1))
    Decimal('-1.5')
    """
    if not pa.types.is_decimal(kind):
        return step
    return Decimal((int(step < 0), tuple(map(int, str(abs(step)))), -kind.scale))


def singles(value: float) -> tuple[float, float]:
    """The numbers of single precision next to a double: not below it, and not above it. NaN is itself.

    >>> low, high = singles(0.1)
    >>> low > 0.1 > high, singles(0.5)
    (True, (0.5, 0.5))
    """
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if math.isnan(value) or float(near) == value:
        return float(near), float(near)
    with np.errstate(over="ignore", under="ignore"):
        if float(near) > value:
            return float(near), float(np.nextafter(near, np.float32(-math.inf)))
        return float(np.nextafter(near, np.float32(math.inf))), float(near)


def holds(value: Any, kind: pa.DataType) -> bool:
    """Whether a column of a type can hold exactly this value, so far as it is a number; of other kinds each can.

    >>> holds(127, pa.int8()), holds(300, pa.int8()), holds(Decimal("0.05"), pa.decimal128(3, 1))
    (True, False, False)
    """
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        first, last = equal_steps(value, kind)
        low, high = limits(kind)
        return first == last and low <= first <= high
    if pa.types.is_float32(kind):
        first_single, last_single = singles(float(value))
        return first_single == last_single or math.isnan(value)
    return True
