"""The pieces that a filter is translated into: typed, and written for both engines at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakehouse.core.predicate import And, Compare, IsNull, Operator, Or, Predicate, Unknown

UNKNOWN = Unknown()
ALWAYS = And(())
NEVER = Or(())
OPPOSITE: dict[Operator, Operator] = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Literal:
    """A value as it was written; its column decides what it becomes. ``value`` is None for NULL."""

    value: Any


@dataclass(frozen=True, slots=True)
class Term:
    """An expression with its type, as Spark and as DuckDB write it.

    ``column`` is set for a bare column, ``day_of`` for the date of a timestamp column. A boolean term has what pruning
    may use: ``true`` (``false``) lets through at least every row for which the term is true (false, which is not null).
    ``is_uuid``: a column of text in which other spellings of a UUID are not equal to it.
    """

    type: pa.DataType
    spark: str
    duckdb: str
    column: str | None = None
    day_of: Term | None = None
    true: Predicate = UNKNOWN
    false: Predicate = UNKNOWN
    is_uuid: bool = False


def condition(spark: str, duckdb: str, true: Predicate = UNKNOWN, false: Predicate = UNKNOWN) -> Term:
    """A boolean term."""
    return Term(pa.bool_(), spark, duckdb, true=true, false=false)


def same(text: str, true: Predicate = UNKNOWN, false: Predicate = UNKNOWN) -> Term:
    """A boolean term that both engines write alike."""
    return condition(text, text, true, false)


def conjunction(parts: list[Term]) -> Term:
    """Every part holds."""
    if len(parts) == 1:
        return parts[0]
    return condition(
        "(" + " AND ".join(part.spark for part in parts) + ")",
        "(" + " AND ".join(part.duckdb for part in parts) + ")",
        And(tuple(part.true for part in parts)),
        Or(tuple(part.false for part in parts)),
    )


def disjunction(parts: list[Term]) -> Term:
    """At least one part holds."""
    if len(parts) == 1:
        return parts[0]
    return condition(
        "(" + " OR ".join(part.spark for part in parts) + ")",
        "(" + " OR ".join(part.duckdb for part in parts) + ")",
        Or(tuple(part.true for part in parts)),
        And(tuple(part.false for part in parts)),
    )


def negation(part: Term) -> Term:
    """The part is false."""
    return condition(f"(NOT {part.spark})", f"(NOT {part.duckdb})", part.false, part.true)


def is_null(part: Term, negated: bool = False) -> Term:
    """The part is null, or is not."""
    words = "IS NOT NULL" if negated else "IS NULL"
    true: Predicate = UNKNOWN if part.column is None else IsNull(part.column, negated)
    false: Predicate = UNKNOWN if part.column is None else IsNull(part.column, not negated)
    return condition(f"({part.spark} {words})", f"({part.duckdb} {words})", true, false)


def compared(left: Term, operator: Operator, right: Term, value: Any = None) -> Term:
    """A comparison of two terms of one family; ``value`` is the right one's where it is a literal."""
    true: Predicate = UNKNOWN
    false: Predicate = UNKNOWN
    if left.column is not None and value is not None:
        true = Compare(left.column, operator, value)
        false = Compare(left.column, OPPOSITE[operator], value)
    return condition(
        f"({left.spark} {operator} {right.spark})", f"({left.duckdb} {operator} {right.duckdb})", true, false
    )


def settled(term: Term, outcome: bool) -> Term:
    """True (or false) wherever the term is not null, else null: a comparison that its value already decides."""
    operator = "=" if outcome else "<>"
    return condition(
        f"({term.spark} {operator} {term.spark})",
        f"({term.duckdb} {operator} {term.duckdb})",
        ALWAYS if outcome else NEVER,
        NEVER if outcome else ALWAYS,
    )
