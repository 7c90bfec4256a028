"""The functions and operators that a filter may use: those that give the same answer in Spark and in DuckDB.

Left out on purpose: upper and lower (the engines disagree beyond ASCII), regular expressions (two dialects), casts of
text, rounding, decimal arithmetic, anything that depends on the clock, the session or chance, and all that calls code.
"""

from __future__ import annotations

import pyarrow as pa

from lakehouse.core.predicate import And, Compare, Predicate
from lakehouse.errors import InvalidInput, InvalidPredicate
from lakehouse.predicate.compare import as_double, check_one_family, natural, too_far
from lakehouse.predicate.literals import as_type, literal_term, text_term
from lakehouse.predicate.moments import FarDate, FarTime
from lakehouse.predicate.steps import holds
from lakehouse.predicate.term import UNKNOWN, Literal, Term, condition
from lakehouse.predicate.written import beyond

DATE_PARTS = ("year", "quarter", "month", "dayofyear", "day")
TIME_PARTS = ("hour", "minute", "second")
_NTZ_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_SHORT = 200
"""Letters of a divisor that may be written thrice."""


def wrong_argument(function: str, term: Term) -> InvalidInput:
    """The error for an argument of a type that a function does not take."""
    return beyond("a function in the filter does not take this type", function=function, type=term.type)


def _wide(term: Term) -> Term:
    """A number as 64 bits, whole or floating, so that both engines calculate alike."""
    if pa.types.is_integer(term.type):
        kind, name = pa.int64(), "BIGINT"
    elif pa.types.is_floating(term.type):
        kind, name = pa.float64(), "DOUBLE"
    else:
        raise beyond("the filter calculates with something that is no integer or double", type=term.type)
    if term.type == kind:
        return Term(kind, term.spark, term.duckdb)
    return Term(kind, f"CAST({term.spark} AS {name})", f"CAST({term.duckdb} AS {name})")


def to_double(term: Term) -> Term:
    """An integer or float as a double."""
    return as_double(_wide(term))


def to_bigint(term: Term) -> Term:
    """An integer as 64 bits."""
    if not pa.types.is_integer(term.type):
        raise wrong_argument("CAST AS BIGINT", term)
    return _wide(term)


def arithmetic(operator: str, left: Term, right: Term) -> Term:
    """``+ - * / % div`` of integers and doubles. Dividing by zero gives null; a sum beyond 64 bits fails the read."""
    left, right = _wide(left), _wide(right)
    whole = pa.types.is_integer(left.type) and pa.types.is_integer(right.type)
    if operator == "div" and not whole:
        raise beyond("div takes integers; use / for doubles")
    if operator == "/" or not whole:
        left, right = to_double(left), to_double(right)
    if operator in ("/", "%", "div"):
        right = Term(right.type, f"nullif({right.spark}, 0)", f"nullif({right.duckdb}, 0)")
    if operator == "%" and whole:
        return Term(left.type, f"({left.spark} % {right.spark})", _remainder(left.duckdb, right.duckdb))
    duckdb_operator = "//" if operator == "div" else operator
    return Term(
        left.type, f"({left.spark} {operator} {right.spark})", f"({left.duckdb} {duckdb_operator} {right.duckdb})"
    )


def _remainder(left: str, right: str) -> str:
    """DuckDB fails on the least integer ``% -1``; ``% 1`` gives the same, and wider integers do, ten times slower."""
    if len(right) <= _SHORT:
        return f"({left} % CASE {right} WHEN -1 THEN 1 ELSE {right} END)"
    return f"CAST(CAST({left} AS HUGEINT) % {right} AS BIGINT)"


def negative(term: Term) -> Term:
    """``-term``."""
    wide = _wide(term)
    return Term(wide.type, f"(- {wide.spark})", f"(- {wide.duckdb})")


def absolute(term: Term) -> Term:
    """``abs(term)``."""
    wide = _wide(term)
    return Term(wide.type, f"abs({wide.spark})", f"abs({wide.duckdb})")


def is_nan(term: Term) -> Term:
    """Whether a float is NaN; false for null, as in Spark."""
    if not pa.types.is_floating(term.type):
        raise wrong_argument("isnan", term)
    return condition(f"coalesce(isnan({term.spark}), FALSE)", f"coalesce(isnan({term.duckdb}), FALSE)")


def length(term: Term) -> Term:
    """Characters (code points) of a string."""
    _check_text("length", term)
    return Term(pa.int32(), f"char_length({term.spark})", f"CAST(length({term.duckdb}) AS INTEGER)")


def joined(left: Term, right: Term) -> Term:
    """``left || right`` of strings, null if either is."""
    _check_text("||", left)
    _check_text("||", right)
    return Term(pa.string(), f"({left.spark} || {right.spark})", f"({left.duckdb} || {right.duckdb})")


def _check_text(function: str, term: Term) -> None:
    if not pa.types.is_string(term.type):
        raise wrong_argument(function, term)


def text_test(function: str, term: Term, part: Term, prefix: str | None = None) -> Term:
    """``startswith``, ``endswith`` and ``contains``; ``prefix`` is a literal start, which prunes."""
    _check_text(function, term)
    _check_text(function, part)
    duckdb = {"startswith": "starts_with", "endswith": "suffix", "contains": "contains"}[function]
    return condition(
        f"{function}({term.spark}, {part.spark})",
        f"{duckdb}({term.duckdb}, {part.duckdb})",
        _starts(term.column, prefix) if function == "startswith" else UNKNOWN,
    )


def _starts(column: str | None, prefix: str | None) -> Predicate:
    """What strings with a prefix satisfy: at least the prefix, and less than it with its last letter raised."""
    if column is None or not prefix:
        return UNKNOWN
    raised = ord(prefix[-1]) + 1
    if raised > 0x10FFFF or 0xD800 <= raised < 0xE000:
        return Compare(column, ">=", prefix)
    return And((Compare(column, ">=", prefix), Compare(column, "<", prefix[:-1] + chr(raised))))


def like(term: Term, pattern: str, escape: str) -> Term:
    """``LIKE`` with Spark's rules: the escape stands before ``%``, ``_`` or itself only."""
    _check_text("LIKE", term)
    if len(escape) != 1:
        raise InvalidPredicate("LIKE takes one character as its escape", escape=escape)
    written, prefix, literal, index = "", "", True, 0
    while index < len(pattern):
        letter = pattern[index]
        if letter == escape:
            index += 1
            letter = pattern[index : index + 1]
            if not letter or letter not in ("%", "_", escape):
                raise InvalidPredicate("an escape in LIKE stands before %, _ or itself", pattern=pattern, escape=escape)
        elif letter in "%_":
            literal = False
            written += letter
            index += 1
            continue
        written += "!" + letter if letter in "%_!" else letter
        prefix += letter if literal else ""
        index += 1
    shown = text_term(written)
    true = _starts(term.column, prefix) if not literal else UNKNOWN
    if literal and term.column is not None:
        true = Compare(term.column, "=", prefix)
    return condition(
        f"({term.spark} LIKE {shown.spark} ESCAPE '!')", f"({term.duckdb} LIKE {shown.duckdb} ESCAPE '!')", true
    )


def to_date(term: Term) -> Term:
    """The date of a timestamp, in UTC; a date stays as it is."""
    if pa.types.is_date(term.type):
        return term
    spark, duckdb = _wall_clock("date", term)
    bare = term if term.column is not None else None
    return Term(pa.date32(), f"CAST({spark} AS DATE)", f"CAST({duckdb} AS DATE)", day_of=bare)


def date_part(part: str, term: Term) -> Term:
    """A calendar or clock part of a date or timestamp, in UTC whatever the session's time zone."""
    if pa.types.is_date(term.type) and part in DATE_PARTS:
        spark, duckdb = term.spark, term.duckdb
    else:
        spark, duckdb = _wall_clock(part, term)
    return Term(pa.int32(), f"{part}({spark})", f"CAST({part}({duckdb}) AS INTEGER)")


def _wall_clock(function: str, term: Term) -> tuple[str, str]:
    """A timestamp as a UTC time without zone, in both engines."""
    if not pa.types.is_timestamp(term.type):
        raise wrong_argument(function, term)
    if term.type.tz is None:
        return term.spark, term.duckdb
    return (
        f"timestampadd(MICROSECOND, unix_micros({term.spark}), {_NTZ_EPOCH})",
        f"({term.duckdb} AT TIME ZONE 'UTC')",
    )


def one_type(terms: list[Term | Literal]) -> list[Term]:
    """The branches of a CASE or COALESCE, all of one type: that of the first one that is not a literal."""
    typed = [term for term in terms if isinstance(term, Term) and not pa.types.is_null(term.type)]
    if not typed:
        values = [natural(term) if isinstance(term, Literal) else term for term in terms]
        typed = [value for value in values if not pa.types.is_null(value.type)] or values
    first = typed[0]
    for term in typed:
        check_one_family(first, term)
    numeric = pa.types.is_integer(first.type) or pa.types.is_floating(first.type)
    kind = first.type
    if numeric:
        fractions = any(isinstance(one, Literal) and not isinstance(one.value, int | None) for one in terms)
        whole = all(pa.types.is_integer(term.type) for term in typed) and not fractions
        kind = pa.int64() if whole else pa.float64()
    return [_branch(term, kind, numeric) for term in terms]


def _branch(term: Term | Literal, kind: pa.DataType, numeric: bool) -> Term:
    if isinstance(term, Term):
        if not numeric or pa.types.is_null(term.type):
            return term
        return to_bigint(term) if pa.types.is_integer(kind) else to_double(term)
    if term.value is None:
        return Term(pa.null(), "NULL", "NULL")
    value = as_type(term.value, kind)
    if isinstance(value, FarTime | FarDate):
        raise too_far()
    if not pa.types.is_floating(kind) and not holds(value, kind):
        raise InvalidPredicate("the filter has a number that the type of its other branches does not hold", value=value)
    return literal_term(value, kind)
