"""Values given beside a statement: each becomes a literal of its type in the parsed tree, and never text to parse."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlglot import exp

from lakehouse.arguments import has_surrogate
from lakehouse.errors import InvalidStatement
from lakehouse.sql.tree import put

Value = Sequence[str]
"""A value as a kind and its text, which any channel can carry: ``("int", "7")``."""
Values = Sequence[Value] | Mapping[str, Value]
"""Values by place, or by name."""

_MOST_CHARACTERS = 1_000_000
_MOST_DIGITS = 38
_TAKEN = "None, bool, int, float, Decimal, str, bytes, date, datetime, UUID"
_NAMES = (exp.Table, exp.TableAlias, exp.Column, exp.Schema, exp.DataType, exp.DataTypeParam)
_READ_AT_ONCE = ("format", "unit")
"""Parts of functions that the parser turns into others as soon as it reads them, before there are values."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_values(args: Any) -> Values | None:
    """The values of a caller: a list or tuple for ``?``, a mapping for ``:name``. Raises `InvalidStatement` for others.

    >>> read_values([7, None]), read_values({"day": date(2013, 1, 5)})
    ([('int', '7'), ('null', '')], {'day': ('date', '2013-01-05')})
    """
    found: Values
    match args:
        case None:
            return None
        case list() | tuple():
            found = [_read(value, f"number {place}") for place, value in enumerate(args, 1)]
            texts = [text for _, text in found]
        case Mapping():
            for name in args:
                if not isinstance(name, str) or not _NAME.fullmatch(name):
                    raise InvalidStatement("a value's name is letters, digits and _, as in :day", name=repr(name)[:200])
            found = {name: _read(value, f":{name}") for name, value in args.items()}
            texts = [text for _, text in found.values()]
        case _:
            raise InvalidStatement(
                "args are a list of values for ?, or a map of them for :name", found=type(args).__name__
            )
    if sum(map(len, texts)) > _MOST_CHARACTERS:
        raise InvalidStatement("the values are too long", most=_MOST_CHARACTERS)
    return found


def bind_values(trees: Sequence[exp.Expr], values: Values) -> None:
    """Put a literal in the place of each ``?`` or ``:name`` of one text's trees, which are changed.

    Raises `InvalidStatement` unless every value is used, and every place has one. Cost: one walk of the tree.
    """
    marks = [mark for tree in trees for mark in tree.find_all(exp.Placeholder)]
    by_place = not isinstance(values, Mapping)
    for mark in marks:
        if bool(mark.args.get("jdbc")) is not by_place:
            raise InvalidStatement(
                "values for ? are a list, and for :name a map; a statement has one kind of them", found=_shown(mark)
            )
    if isinstance(values, Mapping):
        given = dict(values)
        wanted = {mark.name for mark in marks}
    else:
        numbered = sorted({int(mark.name) for mark in marks})
        if len(numbered) != len(values):
            raise InvalidStatement("as many values as ? are needed", expected=len(numbered), found=len(values))
        given = {str(number): value for number, value in zip(numbered, values, strict=True)}
        wanted = set(given)
    if missing := sorted(wanted - set(given)):
        raise InvalidStatement("the statement names values that are not given", names=",".join(missing)[:200])
    if unused := sorted(set(given) - wanted):
        raise InvalidStatement("values are given that the statement does not name", names=",".join(unused)[:200])
    for mark in marks:
        _check_place(mark)
        kind, text = given[mark.name]
        is_count = isinstance(mark.parent, exp.Interval) and kind == "int"
        put(mark, _literal("str" if is_count else kind, text))


def require_bound(trees: Sequence[exp.Expr]) -> None:
    """Raise `InvalidStatement` for a statement with a ``?`` or ``:name`` to which no values were given."""
    mark = next((mark for tree in trees for mark in tree.find_all(exp.Placeholder)), None)
    if mark is not None:
        given = "args=[...], a value for each ?" if mark.args.get("jdbc") else "args={...}, a value for each :name"
        raise InvalidStatement(f"the statement needs values; pass {given}", found=_shown(mark))


def _shown(mark: exp.Placeholder) -> str:
    return "?" if mark.args.get("jdbc") else f":{mark.name}"[:100]


def _check_place(mark: exp.Placeholder) -> None:
    """A value stands where a literal does that means itself."""
    is_alias = isinstance(mark.parent, exp.Alias | exp.Dot) and mark.arg_key != "this"
    is_path = isinstance(mark.parent, exp.JSONExtractScalar) and mark.arg_key == "expression"
    if is_alias or is_path or isinstance(mark.parent, _NAMES) or mark.arg_key in _READ_AT_ONCE:
        raise InvalidStatement(
            "a value cannot stand for a name, a type, a unit, a path or a format", found=_shown(mark)
        )


def _read(value: Any, what: str) -> tuple[str, str]:
    try:
        found = _kind_and_text(str(value) if isinstance(value, UUID) else value)
    except (ValueError, OverflowError, TypeError, ArithmeticError) as error:
        raise InvalidStatement("a value that no column can hold", value=what, found=repr(value)[:100]) from error
    if found is None:
        raise InvalidStatement(
            "a value of a type that is not taken", value=what, found=type(value).__name__, taken=_TAKEN
        )
    return found


def _kind_and_text(value: Any) -> tuple[str, str] | None:
    match value:
        case None:
            return "null", ""
        case bool():
            return "bool", "true" if value else "false"
        case int():
            if not -(2**63) <= value < 2**63:
                raise ValueError(value)
            return "int", str(int(value))
        case float():
            return "float", float.__repr__(value)
        case Decimal():
            return "decimal", _digits(value)
        case str():
            if has_surrogate(value) or "\0" in value:
                raise ValueError(value)
            return "str", str.__str__(value)
        case bytes() | bytearray():
            return "bytes", value.hex()
        case datetime():
            return _moment(value)
        case date():
            return "date", date.isoformat(value)
    return None


def _digits(value: Decimal) -> str:
    """A decimal written out. Raises `ValueError` for one that no DECIMAL holds."""
    if not value.is_finite() or not -_MOST_DIGITS <= value.adjusted() < _MOST_DIGITS:
        raise ValueError(value)
    text = format(value + 0 if value.is_zero() else value, "f")
    if sum(_precision(text)) > _MOST_DIGITS:
        raise ValueError(value)
    return text


def _precision(text: str) -> tuple[int, int]:
    """Digits before and after the point."""
    whole, _, part = text.lstrip("-").partition(".")
    return len(whole.lstrip("0")), len(part)


def _moment(value: datetime) -> tuple[str, str]:
    if getattr(value, "nanosecond", 0):
        raise ValueError(value)  # a column has microseconds
    if value.tzinfo is not None:
        value = value.astimezone(UTC)
    plain = datetime.combine(value.date(), value.time())
    return ("time", plain.isoformat(" ")) if value.tzinfo is None else ("instant", plain.isoformat(" ") + "+00:00")


def _literal(kind: str, text: str) -> exp.Expr:
    match kind:
        case "null":
            return exp.Null()
        case "bool":
            return exp.Boolean(this=text == "true")
        case "str":
            return exp.Literal.string(text)
        case "bytes":
            return exp.HexString(this=text)
        case "date":
            return _typed(exp.Literal.string(text), exp.DType.DATE)
        case "time":
            return _typed(exp.Literal.string(text), exp.DType.TIMESTAMPNTZ)
        case "instant":
            return _typed(exp.Literal.string(text), exp.DType.TIMESTAMPTZ)
        case "float" if not math.isfinite(float(text)):
            name = "NaN" if math.isnan(float(text)) else "Infinity"
            return _signed(text, _typed(exp.Literal.string(name), exp.DType.DOUBLE))
        case "float":
            return _signed(text, _typed(exp.Literal.number(text.lstrip("-")), exp.DType.DOUBLE))
        case "decimal":
            whole, part = _precision(text)
            size = [exp.DataTypeParam(this=exp.Literal.number(one)) for one in (max(whole + part, 1), part)]
            kept = exp.DataType(this=exp.DType.DECIMAL, expressions=size, nested=False)
            return _signed(text, exp.Cast(this=exp.Literal.number(text.lstrip("-")), to=kept))
        case "int":
            return _signed(text, exp.Literal.number(text.lstrip("-")))
    raise InvalidStatement("a value of a kind that is not known", kind=kind[:100])


def _typed(literal: exp.Expr, kind: exp.DType) -> exp.Expr:
    return exp.Cast(this=literal, to=exp.DataType(this=kind, nested=False))


def _signed(text: str, literal: exp.Expr) -> exp.Expr:
    return exp.Neg(this=literal) if text.startswith("-") else literal
