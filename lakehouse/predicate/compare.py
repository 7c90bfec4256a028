"""Comparisons: between terms of one family, or of a term with a literal brought to the term's type."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse.core.kinds import is_uuid_text
from lakehouse.core.predicate import And, Compare, In, Operator, Predicate
from lakehouse.errors import InvalidInput, InvalidPredicate
from lakehouse.predicate.literals import INT64_MAX, INT64_MIN, as_type, literal_term
from lakehouse.predicate.moments import DAY_US, FarDate, FarTime, is_aware, moment, us_of
from lakehouse.predicate.steps import equal_steps, limits, singles, value_of
from lakehouse.predicate.term import (
    ALWAYS,
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
    negation,
    same,
    settled,
)

_MAX_NOT_IN = 16
"""Values of a NOT IN up to which pruning looks at it."""
_DECIDE: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operators.eq,
    "<>": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


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
        case FarTime() | FarDate():
            raise too_far()
        case datetime():
            return literal_term(value.value, pa.timestamp("us", "UTC" if is_aware(value.value) else None))
        case date():
            return literal_term(value.value, pa.date32())
    raise InvalidPredicate("the filter has a literal of an unknown kind", value=repr(value.value)[:100])


def typed(found: Term | Literal, kind: pa.DataType) -> Term:
    """A value for a column of a type: a literal as the type has it, any other as it is. Writing says if it fits."""
    if isinstance(found, Term):
        return found
    if found.value is None:
        return natural(found)
    held = as_type(found.value, kind)
    if isinstance(held, FarTime | FarDate):
        raise too_far()
    return natural(Literal(held)) if pa.types.is_integer(kind) else literal_term(held, kind)


def too_far() -> InvalidInput:
    """The error for a time that no table stores, where it could become a value."""
    return InvalidPredicate("times beyond the years 1 to 9999 are compared with only; write one inside")


def compare(left: Term | Literal, operator: Operator, right: Term | Literal) -> Term:
    """``left operator right``, null if either is."""
    if isinstance(left, Literal):
        if isinstance(right, Literal):
            if _is_exact(left.value) and _is_exact(right.value):
                decided = _DECIDE[operator](left.value, right.value)
                return same("TRUE", ALWAYS, NEVER) if decided else same("FALSE", NEVER, ALWAYS)
            left = natural(left)
        else:
            return compare(right, MIRRORED[operator], left)
    if isinstance(right, Literal):
        return _with_literal(left, operator, right.value)
    check_one_family(left, right)
    if left.type != right.type and (pa.types.is_floating(left.type) or pa.types.is_floating(right.type)):
        left, right = as_double(left), as_double(right)
    return compared(left, operator, right)


def _is_exact(value: Any) -> bool:
    """Whether a literal is a number whose text says all of it: not a double, and not one that others are rounded to."""
    return _is_number(value) and not isinstance(value, float)


def as_double(term: Term) -> Term:
    """An integer or float as a double; null stays null."""
    if term.type == pa.float64() or pa.types.is_null(term.type):
        return term
    return Term(pa.float64(), f"CAST({term.spark} AS DOUBLE)", f"CAST({term.duckdb} AS DOUBLE)")


def check_one_family(left: Term, right: Term) -> None:
    """Raise `InvalidInput` unless both engines compare the two without a conversion that could differ."""
    one, other = left.type, right.type
    if pa.types.is_null(one) or pa.types.is_null(other) or one == other:
        if pa.types.is_nested(one):
            raise InvalidPredicate("nested columns cannot be compared; IS NULL works on them", type=one)
        return
    whole = pa.types.is_integer(one) and pa.types.is_integer(other)
    floating = all(pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in (one, other))
    if not whole and not floating:
        raise InvalidPredicate("the filter compares different types; compare values of one type", left=one, right=other)


def _with_literal(left: Term, operator: Operator, value: Any) -> Term:
    if pa.types.is_nested(left.type):
        raise InvalidPredicate("nested columns cannot be compared; IS NULL works on them", type=left.type)
    if value is None:
        return same("CAST(NULL AS BOOLEAN)", NEVER, NEVER)
    if pa.types.is_null(left.type):
        return same("CAST(NULL AS BOOLEAN)", NEVER, NEVER)
    if _is_number(value) and (pa.types.is_integer(left.type) or pa.types.is_decimal(left.type)):
        return _exact(left, operator, value)
    typed = as_type(value, left.type)
    if operator in ("=", "<>"):
        _check_spelling(left, typed)
    if left.day_of is not None:
        return _day(left.day_of, operator, typed)
    if pa.types.is_floating(left.type):
        return _floating(left, operator, typed)
    return _beside(left, operator, typed)


def _check_spelling(left: Term, value: Any) -> None:
    """Raise `InvalidInput` for a UUID in a spelling that no row has: to find nothing would be a wrong answer."""
    if left.is_uuid and not is_uuid_text(value):
        remedy = "write it as 36 characters in lower case"
        raise InvalidPredicate(f"no row spells a UUID so; {remedy}", column=left.duckdb, value=repr(value)[:100])


def _beside(left: Term, operator: Operator, value: Any) -> Term:
    """Beside a value of its own type, which pruning knows if Python does."""
    known = None if isinstance(value, FarTime | FarDate) else value
    return compared(left, operator, literal_term(value, left.type), known)


def _exact(left: Term, operator: Operator, value: int | Decimal | float) -> Term:
    """An integer or decimal against any number, as a comparison with values of the column's own type."""
    first, last = equal_steps(value, left.type)
    match operator:
        case "=":
            if first > last:
                return settled(left, False)
            if first == last:
                return _step(left, "=", first)
            return conjunction([_step(left, ">=", first), _step(left, "<=", last)])
        case "<>":
            return negation(_exact(left, "=", value)) if first < last else _unequal(left, first, last)
        case "<" | ">=":
            return _step(left, operator, first)
        case "<=" | ">":
            return _step(left, operator, last)


def _unequal(left: Term, first: int, last: int) -> Term:
    return settled(left, True) if first > last else _step(left, "<>", first)


def _step(left: Term, operator: Operator, step: int) -> Term:
    low, high = limits(left.type)
    if step > high:
        return settled(left, operator in ("<", "<=", "<>"))
    if step < low:
        return settled(left, operator in (">", ">=", "<>"))
    return _beside(left, operator, value_of(step, left.type))


def _beside_zero(left: Term, values: list[Any]) -> Term:
    """A float that is compared with zero, in a form that Spark does not look up in Parquet's dictionaries.

    There -0.0 is not 0.0, so Spark would leave out row groups that hold equal rows.
    """
    if not pa.types.is_floating(left.type) or not any(value == 0 for value in values):
        return left
    return replace(left, spark=f"({left.spark} + 0D)")


def _floating(left: Term, operator: Operator, value: float) -> Term:
    """A float against a number, both as doubles. For one of single precision its neighbours stand for the number."""
    if not pa.types.is_float32(left.type):
        return _beside(_beside_zero(left, [value]), operator, value)
    above, below = singles(value)
    if operator in ("=", "<>") and above != below and value == value:
        return settled(left, operator == "<>")
    return _beside(_beside_zero(left, [above, below]), operator, above if operator in ("<", ">=") else below)


def _day(time: Term, operator: Operator, day: date | FarDate) -> Term:
    """The date of a timestamp against a date, as bounds of the timestamp itself, which pruning can use."""
    aware = time.type.tz is not None
    start, end = (Literal(moment(us_of(day) + more, aware)) for more in (0, DAY_US))
    match operator:
        case "=":
            return conjunction([compare(time, ">=", start), compare(time, "<", end)])
        case "<>":
            return disjunction([compare(time, "<", start), compare(time, ">=", end)])
        case "<" | ">=":
            return compare(time, operator, start)
        case "<=":
            return compare(time, "<", end)
        case ">":
            return compare(time, ">=", end)


def one_of(left: Term, options: list[Term | Literal]) -> Term:
    """``left IN (options)``: null where no option is equal and one is null. As doubles, all of them, if one is one."""
    if any(_is_double(one) for one in options) and not _is_double(left):
        options = [_to_double(one) for one in options]
    literals = [one.value for one in options if isinstance(one, Literal)]
    if len(literals) < len(options) or len(options) == 1 or left.day_of is not None or pa.types.is_nested(left.type):
        return disjunction([compare(left, "=", one) for one in options])
    found = [() if value is None else _members(left.type, value) for value in literals]
    members = [value for one in found if one is not None for value in one]
    if None in found or not members:
        return disjunction([compare(left, "=", one) for one in options])
    for value in members:
        _check_spelling(left, value)
    has_null = None in literals
    left = _beside_zero(left, members)
    terms = [literal_term(value, left.type) for value in members]
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


def _is_double(one: Term | Literal) -> bool:
    return isinstance(one.value, float) if isinstance(one, Literal) else pa.types.is_floating(one.type)


def _to_double(one: Term | Literal) -> Term | Literal:
    if isinstance(one, Literal):
        return Literal(float(one.value)) if _is_exact(one.value) else one
    return as_double(one) if pa.types.is_integer(one.type) else one


def _members(kind: pa.DataType, value: Any) -> tuple[Any, ...] | None:
    """The values of a type that equal a listed one: one or none; None where they are not to be listed."""
    if pa.types.is_null(kind):
        return None
    if _is_number(value) and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        (first, last), (low, high) = equal_steps(value, kind), limits(kind)
        if first == last:
            return (value_of(first, kind),) if low <= first <= high else ()
        return () if first > last else None
    typed = as_type(value, kind)
    if isinstance(typed, FarTime | FarDate):
        return None
    if pa.types.is_float32(kind):
        above, below = singles(typed)
        return (below,) if above == below or below != below else ()
    return (typed,)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal | float) and not isinstance(value, bool)


def null_safe(left: Term | Literal, right: Term | Literal, negated: bool) -> Term:
    """``left <=> right``: never null, and two nulls are equal."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        left, right = right, left
    first = natural(left) if isinstance(left, Literal) else left
    if pa.types.is_nested(first.type):
        raise InvalidPredicate("nested columns cannot be compared; IS NULL works on them", type=first.type)
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
