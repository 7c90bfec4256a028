"""Literals as the parser gives them, and errors that show what was written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlglot import exp

from lakehouse.errors import InvalidInput
from lakehouse.predicate.literals import read_time
from lakehouse.predicate.term import Literal

_FUNCTIONS = (
    "abs case coalesce contains date day dayofmonth dayofyear endswith hour if ifnull isnan isnotnull isnull length "
    "minute month nullif nvl quarter second startswith to_date year"
)


def refused(node: exp.Expr) -> InvalidInput:
    """The error for a node that is not allowed."""
    return InvalidInput(
        "not allowed in a filter; use comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, + - * / % and functions",
        found=shown(node),
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
    try:
        if "e" in text.lower():
            return Literal(float(text))
        return Literal(Decimal(text) if "." in text else int(text))
    except (ValueError, ArithmeticError) as error:
        raise refused(node) from error


def typed_literal(value: Any, target: exp.DType, node: exp.Expr) -> Literal:
    """``DATE '...'``, ``TIMESTAMP '...'``, ``1.5D``, ``CAST('NaN' AS DOUBLE)`` and the like."""
    try:
        match target, value:
            case _, None:
                return Literal(None)
            case exp.DType.DATE, str():
                return Literal(read_time(value).date())
            case (
                (exp.DType.TIMESTAMP | exp.DType.TIMESTAMPTZ | exp.DType.TIMESTAMPLTZ | exp.DType.TIMESTAMPNTZ),
                str(),
            ):
                return Literal(read_time(value))
            case ((exp.DType.DOUBLE | exp.DType.FLOAT), (str() | int() | Decimal() | float())):
                return Literal(float(value))
            case ((exp.DType.BIGINT | exp.DType.INT | exp.DType.SMALLINT | exp.DType.TINYINT), int()):
                return Literal(value)
            case exp.DType.DECIMAL, (str() | int() | Decimal()):
                return Literal(Decimal(value))
            case exp.DType.TEXT, str():
                return Literal(value)
    except (ValueError, ArithmeticError) as error:
        raise InvalidInput("the filter has a literal that is none of its type", found=shown(node)) from error
    raise refused(node)


def hexadecimal(node: exp.Expr) -> Literal:
    """Bytes of ``X'00FF'``."""
    try:
        return Literal(bytes.fromhex(node.name.rjust(len(node.name) + len(node.name) % 2, "0")))
    except ValueError as error:
        raise refused(node) from error
