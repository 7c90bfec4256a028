"""What a filter says, as plain values, and whether a segment could hold a row that passes it.

A predicate tree says only what pruning can use; everything else is `Unknown`, which any row may pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from lakehouse.core.segment import Segment

Operator = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Compare:
    """``column operator value``; the value is never null and has the column's Python type."""

    column: str
    operator: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class In:
    """``column IN (values)``; null values are left out."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """``column IS NULL``, or ``IS NOT NULL`` where negated."""

    column: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class And:
    """Every part holds."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything that pruning cannot use."""


Predicate = Compare | In | IsNull | And | Or | Unknown


def may_match(predicate: Predicate, segment: Segment) -> bool:
    """Whether some row of the segment could pass, by its min, max and null counts alone.

    A column without statistics may hold anything. NaN is greater than every number and is not in min or max, so a
    float's max never excludes ``>``, ``>=`` or ``<>``.
    """
    raise NotImplementedError
