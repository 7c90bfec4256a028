"""Literals as the parser gives them, and errors that show what was written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.arguments import unknown_column
from lakehouse.core.kinds import single
from lakehouse.errors import InvalidInput, InvalidPredicate, UnknownColumn
from lakehouse.predicate.moments import FarDate, FarTime, is_aware, read_day, read_moment
from lakehouse.predicate.steps import limits
from lakehouse.predicate.term import Literal

_FUNCTIONS = (
    "abs case coalesce contains date day dayofmonth dayofyear endswith hour if ifnull isnan isnotnull isnull length "
    "minute month nullif nvl quarter second startswith to_date year"
)

_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity)|nan|(?-i:[+-]NaN)", re.IGNORECASE
)
_TIMES = frozenset({
    exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ,
})  # fmt: skip
_WHOLE = {
    exp.DType.BIGINT: pa.int64(),
    exp.DType.INT: pa.int32(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.TINYINT: pa.int8(),
}


def beyond(message: str, **facts: Any) -> InvalidPredicate:
    """The error for what filters leave out, and a query may have: a node, a function, or a type of its arguments."""
    error = InvalidPredicate(message, **facts)
    error.is_beyond = True
    return error


def refused(node: exp.Expr, part: str = "") -> InvalidInput:
    """The error for a node that is not allowed, or that is not with one of its parts."""
    return beyond(
        "not allowed in a filter; use comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, + - * / % and functions",
        found=f"{shown(node)} {part}".strip(),
        functions=_FUNCTIONS,
    )


def shown(node: exp.Expr) -> str:
    """What a node is, for errors: the parser cannot write everything that it reads."""
    match node:
        case exp.Column():
            return ".".join(part.name for part in node.parts)
        case exp.Anonymous():
            return f"{node.name}()"
        case exp.Func():
            return f"{node.sql_name().lower()}()"
        case exp.Literal():
            return str(node.this)[:100]
    return node.key


def number(node: exp.Expr) -> Literal:
    """A number: exact but for one with an exponent, which is a double."""
    text = node.name
    if not _NUMBER.fullmatch(text) or not text.isascii():
        raise refused(node)
    try:
        if "e" in text.lower():
            return Literal(float(text))
        return Literal(Decimal(text) if "." in text else int(text))
    except (ValueError, ArithmeticError) as error:
        raise refused(node) from error


def typed_literal(value: Any, target: exp.DataType, node: exp.Expr) -> Literal:
    """``DATE '...'``, ``TIMESTAMP '...'``, ``1.5D``, ``CAST('NaN' AS DOUBLE)`` and such, as Spark's ANSI mode casts."""
    if value is None:
        return Literal(None)
    if target.expressions and target.this != exp.DType.DECIMAL:
        raise refused(node, "with a size")
    try:
        match value:
            case str() if target.this == exp.DType.TEXT:
                return Literal(value)
            case str() if target.this in _TIMES:
                return Literal(_time(value, target.this))
            case str() | int() | Decimal() | float():
                found = _number(value, target)
                if found is not None:
                    return Literal(found)
    except (ValueError, ArithmeticError) as error:
        raise InvalidPredicate("the filter has a literal that is none of its type", found=shown(node)) from error
    raise refused(node)


def _time(text: str, kind: exp.DType) -> date | FarDate | FarTime:
    if kind == exp.DType.DATE:
        return read_day(text)
    found = read_moment(text)
    if kind == exp.DType.TIMESTAMPNTZ and is_aware(found):
        raise ValueError(text)
    return found


def _number(value: str | int | Decimal | float, target: exp.DataType) -> int | Decimal | float | None:
    """A number of a type. Raises `ValueError` where the type has none; None where nothing is cast so."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        raise ValueError(value)
    match target.this:
        case exp.DType.DOUBLE:
            return float(value)
        case exp.DType.FLOAT:
            return single(float(value))
        case exp.DType.DECIMAL if not isinstance(value, float):
            return _decimal(Decimal(value), [part.name for part in target.expressions])
        case exp.DType.BIGINT | exp.DType.INT | exp.DType.SMALLINT | exp.DType.TINYINT if isinstance(value, int):
            low, high = limits(_WHOLE[target.this])
            if not low <= value <= high:
                raise ValueError(value)
            return value
    return None


def _decimal(value: Decimal, sizes: list[str]) -> Decimal:
    """A decimal of the precision and scale that are said, rounded half up. Raises `ValueError` where they hold none."""
    precision, scale = map(int, [*sizes, *("10", "0")[len(sizes) :]])
    if not value.is_finite() or value.adjusted() > 38 or not 0 <= scale <= precision <= 38:
        raise ValueError(value)
    held = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=100))
    if abs(held) >= 10 ** (precision - scale):
        raise ValueError(value)
    return held


def hexadecimal(node: exp.Expr) -> Literal:
    """Bytes of ``X'00FF'``."""
    try:
        return Literal(bytes.fromhex(node.name.rjust(len(node.name) + len(node.name) % 2, "0")))
    except ValueError as error:
        raise refused(node) from error


def too_deep(**facts: Any) -> InvalidPredicate:
    """The error for a filter, or another expression, that is nested more deeply than can be read."""
    return InvalidPredicate("the filter is nested too deeply; take parentheses away, or say it as a list (IN)", **facts)


def no_column(name: str, columns: Sequence[str]) -> UnknownColumn:
    """The error for a column that a filter names and its table has not."""
    return unknown_column("the filter names an unknown column", name, columns)
