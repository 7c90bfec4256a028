"""A filter from what polars says of one of its expressions, where both mean exactly the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse.predicate.literals import INT64_MAX, INT64_MIN

_OPERATORS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WORDS = {"And": "AND", "Or": "OR"}
_ENDS = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_MOST_LISTED = 10_000
_LONGEST = 10_000
_UTC = {"inner": "UTC"}
_MICROSECOND = timedelta(microseconds=1)


def filter_of(tree: Any, schema: pa.Schema) -> str | None:
    """A filter that every row passes for which an expression is true; None if it would be passed by all.

    ``tree`` is polars' JSON of the expression. Parts of a conjunction that are not understood are left out: polars
    applies the whole expression anyhow. Nothing else is: a node is translated if its form is on the list here, for
    columns of types whose values both compare alike. polars changes these forms without notice; one that is not known
    any more costs time, and no rows.

    >>> more = {"BinaryExpr": {"left": {"Column": "n"}, "op": "Gt", "right": {"Literal": {"Scalar": {"Int64": 7}}}}}
    >>> other = {"Function": {"input": [{"Column": "n"}], "function": {"Boolean": "IsFirstDistinct"}}}
    >>> filter_of({"BinaryExpr": {"left": more, "op": "And", "right": other}}, pa.schema([("n", pa.int64())]))
    '(`n` > 7)'
    """
    found = [text for part in conjuncts(tree) if (text := _condition(part, schema)) is not None]
    return " AND ".join(found) or None


def conjuncts(tree: Any) -> Iterator[Any]:
    """The parts of a conjunction, as polars' JSON; an expression that is none has itself as its part."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        match node:
            case {"BinaryExpr": {"left": left, "op": "And", "right": right, **rest}} if not rest and len(node) == 1:
                waiting += [right, left]
            case _:
                yield node


def _condition(tree: Any, schema: pa.Schema) -> str | None:
    """The same condition as a filter, or None. It is true, false and null for the same rows."""
    if not isinstance(tree, dict) or len(tree) != 1:
        return None
    match tree:
        case {"Column": str(name)}:
            return _name(name) if pa.types.is_boolean(_type(name, schema)) else None
        case {"BinaryExpr": {"left": left, "op": str(op), "right": right, **rest}} if not rest:
            if op in _WORDS:
                parts = (_condition(left, schema), _condition(right, schema))
                return None if None in parts else f"({parts[0]} {_WORDS[op]} {parts[1]})"
            return _comparison(left, _OPERATORS.get(op), right, schema)
        case {"Function": {"input": [*given], "function": {"Boolean": what, **more}, **rest}} if not (more or rest):
            return _function(what, given, schema)
    return None


def _function(what: Any, given: Sequence[Any], schema: pa.Schema) -> str | None:
    match what, given:
        case "Not", [one]:
            inner = _condition(one, schema)
            return None if inner is None else f"(NOT {inner})"
        case "IsNull" | "IsNotNull", [{"Column": str(name)}] if not pa.types.is_nested(_type(name, schema)):
            return f"({_name(name)} IS {'NOT ' if what == 'IsNotNull' else ''}NULL)"
        case {"IsBetween": {"closed": str(closed)}}, [column, low, high] if closed in _ENDS:
            after, before = _ENDS[closed]
            parts = (_comparison(column, after, low, schema), _comparison(column, before, high, schema))
            return None if None in parts else f"({parts[0]} AND {parts[1]})"
        case {"IsIn": {"nulls_equal": False}}, [
            {"Column": str(name)},
            {"Literal": {"Scalar": {"List": [*stored]}}},
        ]:
            return _among(name, bytes(stored), schema)
    return None


def _comparison(left: Any, operator: str | None, right: Any, schema: pa.Schema) -> str | None:
    match left, operator, right:
        case {"Column": str(name)}, str(), {"Literal": {"Scalar": dict() as scalar}}:
            literal = _literal(scalar, _type(name, schema))
            return None if literal is None else f"({_name(name)} {operator} {literal})"
        case {"Literal": _}, str(), {"Column": _}:
            return _comparison(right, _TURNED[operator], left, schema)
    return None


def _among(name: str, stored: bytes, schema: pa.Schema) -> str | None:
    """A list of values, which polars stores as an Arrow stream of one column; nulls in it are never equal."""
    kind = _type(name, schema)
    try:
        values = pa.ipc.open_stream(stored).read_all().column(0)
    except pa.ArrowException:
        return None
    is_text = pa.types.is_string(kind) and values.type in (pa.string(), pa.string_view(), pa.large_string())
    if not (is_text or (values.type == kind and pa.types.is_integer(kind))) or len(values) > _MOST_LISTED:
        return None
    tag = "String" if is_text else "Int64"
    literals = [_literal({tag: one}, kind) for one in values.to_pylist() if one is not None]
    if not literals or None in literals:
        return None
    return f"({_name(name)} IN ({', '.join(map(str, literals))}))"


def _literal(scalar: Mapping[str, Any], kind: pa.DataType) -> str | None:
    """A value as a filter writes it; None for one that polars might compare in another way with such a column."""
    match scalar, kind:
        case {"Boolean": bool(value)}, _ if pa.types.is_boolean(kind):
            return str(value).upper()
        case {"String": str(value)}, _ if pa.types.is_string(kind) and len(value) <= _LONGEST and _is_plain(value):
            doubled = value.replace("'", "''")
            return f"'{doubled}'"
        case {"Float64": float(value)}, _ if pa.types.is_float64(kind):
            return f"CAST('{value!r}' AS DOUBLE)"
        case {"Date": int(days)}, _ if pa.types.is_date(kind):
            found = _plus(datetime(1970, 1, 1), days, timedelta(days=1))  # noqa: DTZ001 - a day has no zone
            return None if found is None else f"DATE '{found.date().isoformat()}'"
        case {"Datetime": [int(us), "Microseconds", zone]}, _ if pa.types.is_timestamp(kind):
            if zone != (None if kind.tz is None else _UTC):
                return None
            found = _plus(datetime(1970, 1, 1), us, _MICROSECOND)  # noqa: DTZ001 - the zone is written below
            return None if found is None else f"'{found.isoformat(' ')}{'' if zone is None else '+00:00'}'"
        case {"Decimal": [int(digits), int(), int(scale)]}, _ if pa.types.is_decimal(kind) and scale <= kind.scale:
            return f"{Decimal(digits).scaleb(-scale):f}" if abs(digits) < 10**18 else None
    if pa.types.is_integer(kind) and len(scalar) == 1:
        ((tag, value),) = scalar.items()
        is_whole = tag in ("Int8", "Int16", "Int32", "Int64") and isinstance(value, int)
        return str(value) if is_whole and INT64_MIN < value <= INT64_MAX else None
    return None


def _is_plain(value: str) -> bool:
    """Whether a text can stand in quotes as it is, but for quotes."""
    return "\\" not in value and "\0" not in value


def _plus(start: datetime, count: int, unit: timedelta) -> datetime | None:
    """A time that Python can hold, or None."""
    try:
        return start + count * unit
    except OverflowError:
        return None


def _type(name: str, schema: pa.Schema) -> pa.DataType:
    return schema.field(name).type if name in schema.names else pa.null()


def _name(name: str) -> str:
    return f"`{name}`"
