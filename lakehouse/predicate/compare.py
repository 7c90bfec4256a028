"""Comparisons: between terms of one family, or of a term with a literal brought to the term's type."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse.core.predicate import And, Compare, In, Operator, Predicate
from lakehouse.errors import InvalidInput
from lakehouse.predicate.literals import INT64_MAX, INT64_MIN, as_type, literal_term
from lakehouse.predicate.term import (
    MIRRORED,
    NEVER,
    UNKNOWN,
    Literal,
    Term,
    compared,
    condition,
    conjunction,
    disjunction,
    is_null,
    same,
    settled,
)

_MAX_NOT_IN = 16
"""Values of a NOT IN up to which pruning looks at it."""


def natural(value: Literal) -> Term:
    """A literal by itself, where nothing says what type it should have."""
    match value.value:
        case None:
            return Term(pa.null(), "NULL", "NULL")
        case bool():
            raise AssertionError("boolean literals are terms")
        case int() if INT64_MIN <= value.value <= INT64_MAX:
            return literal_term(value.value, pa.int64())
        case int() | float() | Decimal():
            return literal_term(float(value.value), pa.float64())
        case str():
            return literal_term(value.value, pa.string())
        case bytes():
            return literal_term(value.value, pa.binary())
        case datetime():
            return literal_term(value.value, pa.timestamp("us", "UTC" if value.value.tzinfo else None))
        case date():
            return literal_term(value.value, pa.date32())
    raise InvalidInput("the filter has a literal of an unknown kind", value=repr(value.value)[:100])


def typed(found: Term | Literal, kind: pa.DataType) -> Term:
    """A value for a column of a type: a literal as the type has it, any other as it is. Writing says if it fits."""
    if isinstance(found, Term):
        return found
    if found.value is None:
        return natural(found)
    held = as_type(found.value, kind)
    return natural(Literal(held)) if pa.types.is_integer(kind) else literal_term(held, kind)


def compare(left: Term | Literal, operator: Operator, right: Term | Literal) -> Term:
    """``left operator right``, null if either is."""
    if isinstance(left, Literal):
        if isinstance(right, Literal):
            left = natural(left)
        else:
            return compare(right, MIRRORED[operator], left)
    if isinstance(right, Literal):
        return _with_literal(left, operator, right.value)
    check_one_family(left, right)
    return compared(left, operator, right)


def check_one_family(left: Term, right: Term) -> None:
    """Raise `InvalidInput` unless both engines compare the two without a conversion that could differ."""
    one, other = left.type, right.type
    if pa.types.is_null(one) or pa.types.is_null(other) or one == other:
        if pa.types.is_nested(one):
            raise InvalidInput("nested columns cannot be compared; IS NULL works on them", type=one)
        return
    whole = pa.types.is_integer(one) and pa.types.is_integer(other)
    floating = all(pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in (one, other))
    if not whole and not floating:
        raise InvalidInput("the filter compares different types; compare values of one type", left=one, right=other)


def _with_literal(left: Term, operator: Operator, value: Any) -> Term:
    if pa.types.is_nested(left.type):
        raise InvalidInput("nested columns cannot be compared; IS NULL works on them", type=left.type)
    if value is None:
        return same("CAST(NULL AS BOOLEAN)", NEVER, NEVER)
    if pa.types.is_null(left.type):
        return same("CAST(NULL AS BOOLEAN)", NEVER, NEVER)
    typed = as_type(value, left.type)
    if left.day_of is not None:
        return _day(left.day_of, operator, typed)
    if pa.types.is_integer(left.type):
        return _whole(left, operator, typed)
    return compared(_beside_zero(left, [typed]), operator, literal_term(typed, left.type), typed)


def _beside_zero(left: Term, values: list[Any]) -> Term:
    """A float that is compared with zero, in a form that Spark does not look up in Parquet's dictionaries.

    There -0.0 is not 0.0, so Spark would leave out row groups that hold equal rows.
    """
    if not pa.types.is_floating(left.type) or not any(value == 0 for value in values):
        return left
    return replace(left, spark=f"({left.spark} + 0D)")


def _whole(left: Term, operator: Operator, value: int | Decimal) -> Term:
    """An integer against any number: exact, also for fractions and for numbers beyond 64 bits."""
    if isinstance(value, Decimal):
        match operator:
            case "=" | "<>":
                return settled(left, operator == "<>")
            case "<" | "<=":
                return _whole(left, "<=", math.floor(value))
            case _:
                return _whole(left, ">=", math.ceil(value))
    if value > INT64_MAX:
        return settled(left, operator in ("<", "<=", "<>"))
    if value < INT64_MIN:
        return settled(left, operator in (">", ">=", "<>"))
    bits = left.type.bit_width
    fits = -(1 << (bits - 1)) <= value < 1 << (bits - 1)
    return compared(left, operator, literal_term(value, left.type if fits else pa.int64()), value)


def _day(time: Term, operator: Operator, day: date) -> Term:
    """The date of a timestamp against a date, as bounds of the timestamp itself, which pruning can use."""
    tz = UTC if time.type.tz is not None else None
    start = datetime(day.year, day.month, day.day, tzinfo=tz)
    if day == date.max:
        raise InvalidInput("the filter names the last day there is; compare the timestamp itself", day=day)
    end = start + timedelta(days=1)
    match operator:
        case "=":
            return conjunction([compare(time, ">=", Literal(start)), compare(time, "<", Literal(end))])
        case "<>":
            return disjunction([compare(time, "<", Literal(start)), compare(time, ">=", Literal(end))])
        case "<" | ">=":
            return compare(time, operator, Literal(start))
        case "<=":
            return compare(time, "<", Literal(end))
        case ">":
            return compare(time, ">=", Literal(end))


def one_of(left: Term, options: list[Term | Literal]) -> Term:
    """``left IN (options)``: null where no option is equal and one is null."""
    if left.day_of is not None or not all(isinstance(one, Literal) for one in options):
        return disjunction([compare(left, "=", one) for one in options])
    parts = [_with_literal(left, "=", one.value) for one in options if isinstance(one, Literal)]
    values = [_member(left, one.value) for one in options if isinstance(one, Literal)]
    members = [value for value in values if value is not None]
    has_null = any(isinstance(one, Literal) and one.value is None for one in options)
    if len(options) == 1 or not members or pa.types.is_null(left.type):
        return disjunction(parts)
    left = _beside_zero(left, members)
    terms = [literal_term(value, left.type if _fits(value, left.type) else pa.int64()) for value in members]
    nulls = ["NULL"] if has_null else []
    true: Predicate = UNKNOWN
    false: Predicate = UNKNOWN
    if left.column is not None:
        column = left.column
        true = In(column, tuple(members))
        if has_null:
            false = NEVER
        elif len(members) <= _MAX_NOT_IN:
            false = And(tuple(Compare(column, "<>", value) for value in members))
    return condition(
        f"({left.spark} IN ({', '.join([*(term.spark for term in terms), *nulls])}))",
        f"({left.duckdb} IN ({', '.join([*(term.duckdb for term in terms), *nulls])}))",
        true,
        false,
    )


def _member(left: Term, value: Any) -> Any:
    """A listed value that the term could equal, else None: an integer equals no fraction."""
    if value is None or pa.types.is_null(left.type):
        return None
    typed = as_type(value, left.type)
    if pa.types.is_integer(left.type) and (isinstance(typed, Decimal) or not INT64_MIN <= typed <= INT64_MAX):
        return None
    return typed


def _fits(value: Any, kind: pa.DataType) -> bool:
    return not pa.types.is_integer(kind) or -(1 << (kind.bit_width - 1)) <= value < 1 << (kind.bit_width - 1)


def null_safe(left: Term | Literal, right: Term | Literal, negated: bool) -> Term:
    """``left <=> right``: never null, and two nulls are equal."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        left, right = right, left
    first = natural(left) if isinstance(left, Literal) else left
    if pa.types.is_nested(first.type):
        raise InvalidInput("nested columns cannot be compared; IS NULL works on them", type=first.type)
    if isinstance(right, Literal) and right.value is None:
        return is_null(first, negated)
    plain = compare(first, "=", right)
    both_null = _nulls(first, right)
    true = condition(
        f"(coalesce({plain.spark}, FALSE){both_null[0]})", f"(coalesce({plain.duckdb}, FALSE){both_null[1]})"
    )
    if isinstance(right, Literal):
        true = condition(true.spark, true.duckdb, plain.true, UNKNOWN)
    return condition(f"(NOT {true.spark})", f"(NOT {true.duckdb})", true.false, true.true) if negated else true


def _nulls(left: Term, right: Term | Literal) -> tuple[str, str]:
    if isinstance(right, Literal):
        return "", ""
    return (
        f" OR ({left.spark} IS NULL AND {right.spark} IS NULL)",
        f" OR ({left.duckdb} IS NULL AND {right.duckdb} IS NULL)",
    )
