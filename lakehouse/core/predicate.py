"""What a filter says, as plain values.

A predicate tree says only what pruning can use; everything else is `Unknown`, which any row may pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

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
