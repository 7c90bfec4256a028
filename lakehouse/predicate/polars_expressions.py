"""A filter from an expression of polars, where every part of it is on a list."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse.errors import InvalidPredicate
from lakehouse.predicate.written import too_deep
from lakehouse.predicate.written_parts import IN_SQL, among, column, is_float, nan_or_null, value

_COMPARED = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_JOINED = {"And": "AND", "Or": "OR"}
_ENDS = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_TEXT_TESTS = {"StartsWith": "startswith", "EndsWith": "endswith"}
_WHOLE = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a time without a zone begins here too
_LONGEST = 1_000_000
"""Bytes of an expression that are read."""


def from_polars(expression: Any, schema: pa.Schema) -> str:
    """A filter in SQL that passes the rows for which an expression is true in polars: both order NaN alike."""
    import polars as pl  # noqa: PLC0415 - who has an expression of it has imported it

    try:
        stored = expression.meta.serialize(format="json")
    except pl.exceptions.PolarsError as error:
        raise InvalidPredicate(
            f"a filter takes no functions of Python; {IN_SQL}", found=str(expression)[:200]
        ) from error
    if len(stored) > _LONGEST:
        raise InvalidPredicate("the filter is too long", bytes=len(stored), most=_LONGEST)
    try:
        return _condition(json.loads(stored), schema)
    except RecursionError as error:
        raise too_deep() from error


def _condition(tree: Any, schema: pa.Schema) -> str:
    match tree:
        case {"Column": str(name)} if len(tree) == 1:
            return column(name, schema)
        case {"Literal": {"Scalar": {"Boolean": bool(given)}}}:
            return value(given)
        case {"BinaryExpr": {"left": left, "op": str(operator), "right": right, **rest}} if not rest:
            if operator in _JOINED:
                return f"({_condition(left, schema)} {_JOINED[operator]} {_condition(right, schema)})"
            if operator in _COMPARED:
                return f"({_operand(left, schema)} {_COMPARED[operator]} {_operand(right, schema)})"
        case {"Function": {"input": [*given], "function": {"Boolean": what, **more}, **rest}} if not (more or rest):
            return _boolean(tree, what, given, schema)
        case {"Function": {"input": [{"Column": str(name)}, text], "function": {"StringExpr": str(what), **more}}} if (
            what in _TEXT_TESTS and not more
        ):
            return f"{_TEXT_TESTS[what]}({column(name, schema)}, {_literal(text)})"
    raise _refused(tree)


def _boolean(tree: Any, what: Any, given: Sequence[Any], schema: pa.Schema) -> str:
    match what, given:
        case "Not", [inner]:
            return f"(NOT {_condition(inner, schema)})"
        case "IsNull" | "IsNotNull", [{"Column": str(name)}]:
            return f"({column(name, schema)} IS {'NOT ' if what == 'IsNotNull' else ''}NULL)"
        case "IsNan" | "IsNotNan", [{"Column": str(name)}]:
            found = nan_or_null(column(name, schema), is_floating=is_float(name, schema))
            return found if what == "IsNan" else f"(NOT {found})"
        case {"IsBetween": {"closed": str(closed)}}, [inner, low, high] if closed in _ENDS:
            after, before = _ENDS[closed]
            name = _operand(inner, schema)
            return f"(({name} {after} {_operand(low, schema)}) AND ({name} {before} {_operand(high, schema)}))"
        case {"IsIn": {"nulls_equal": False}}, [
            {"Column": str(name)},
            {"Literal": {"Scalar": {"List": [*stored]}}},
        ]:
            values = pa.ipc.open_stream(bytes(stored)).read_all().column(0).to_pylist()
            listed = among(column(name, schema), [one for one in values if one is not None])
            return listed or nan_or_null(column(name, schema), is_floating=False)  # false, and null for null
    raise _refused(tree)


def _operand(tree: Any, schema: pa.Schema) -> str:
    match tree:
        case {"Column": str(name)} if len(tree) == 1:
            return column(name, schema)
    return _literal(tree)


def _literal(tree: Any) -> str:
    match tree:
        case {"Literal": {"Dyn": {"Int": int(given)} | {"Float": float(given) | int(given)}}}:
            return value(given)
        case {"Literal": {"Dyn": {"Float": None}}} | {"Literal": {"Scalar": {"Float64": None} | {"Float32": None}}}:
            raise InvalidPredicate("a filter compares with finite numbers; ask for others with is_nan() or in SQL")
        case {"Literal": {"Scalar": {"Null": _}}}:
            return value(None)
        case {"Literal": {"Scalar": dict() as scalar}} if len(scalar) == 1:
            return _scalar(tree, scalar)
    raise _refused(tree)


def _scalar(tree: Any, scalar: Mapping[str, Any]) -> str:
    match scalar:
        case {"Boolean": bool(given)} | {"String": str(given)} | {"Float64": float(given)}:
            return value(given)
        case {"Binary": [*octets]}:
            return value(bytes(octets))
        case {"Date": int(days)}:
            return value(_after(days * timedelta(days=1)).date())
        case {"Datetime": [int(us), "Microseconds", None | {"inner": "UTC"} as zone]}:
            found = _after(us * timedelta(microseconds=1))
            return value(found if zone is None else found.replace(tzinfo=UTC))
        case {"Decimal": [int(digits), int(), int(scale)]}:
            return value(Decimal(digits).scaleb(-scale))
    ((kind, given),) = scalar.items()
    if kind in _WHOLE and isinstance(given, int):
        return value(given)
    raise _refused(tree)


def _after(length: timedelta) -> datetime:
    try:
        return _EPOCH + length
    except OverflowError as error:
        raise InvalidPredicate("a filter has times of the years 1 to 9999") from error


def _refused(tree: Any) -> InvalidPredicate:
    match tree:
        case {"Function": {"function": found}} | {"BinaryExpr": {"op": found}}:
            shown = found
        case _:
            shown = tree
    return InvalidPredicate(f"a filter takes no such expression of polars; {IN_SQL}", found=json.dumps(shown)[:200])
