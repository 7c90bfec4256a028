"""Functions of lists and maps in DuckDB's words, and what a lambda and a sequence may be."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.written import shown
from lakehouse.sql.literals import whole_number
from lakehouse.sql.meanings import PREFIX, meaning
from lakehouse.sql.tree import put

MOST_IN_SEQUENCE = 100_000
_EPOCH = date(1970, 1, 1)
_DAYS = {"DAY": 1, "WEEK": 7}
_MONTHS = {"MONTH": 1, "YEAR": 12}
_OWN = ("lake_",)
_PARAMETERS: dict[str, dict[str, tuple[int, int]]] = {
    "transform": {"expression": (1, 2)},
    "arrayfilter": {"expression": (1, 2)},
    "exists": {"expression": (1, 1)},
    "reduce": {"merge": (2, 2), "finish": (1, 1)},
}
"""By function and part, the least and most parameters of the lambda that stands there."""
WITH_LAMBDA = {
    "forall": (1, 1), "map_filter": (2, 2), "transform_keys": (2, 2), "transform_values": (2, 2), "zip_with": (2, 2),
}  # fmt: skip
"""The same of functions that the parser keeps by name, whose last argument it is."""


def check_lambda(node: exp.Lambda) -> None:
    """Raise `InvalidInput` unless a lambda stands where a function takes one, and its names are its own."""
    call = node.parent
    if isinstance(call, exp.Anonymous):
        least, most = WITH_LAMBDA.get(str(call.this).lower(), (0, 0)) if node is call.expressions[-1] else (0, 0)
    else:
        least, most = _PARAMETERS.get(call.key if call else "", {}).get(str(node.arg_key), (0, 0))
    names = [one.name.casefold() for one in node.expressions]
    if not least <= len(names) <= most or len(set(names)) < len(names):
        raise InvalidStatement("no lambda, or one of other parameters, stands here", found=shown(node))
    outer = node.find_ancestor(exp.Lambda)
    while outer is not None:
        names += [one.name.casefold() for one in outer.expressions]
        outer = outer.find_ancestor(exp.Lambda)
    if len(set(names)) < len(names) or any(name.startswith(_OWN) for name in names):
        raise InvalidStatement("give the parameter of a lambda a name of its own", found=shown(node))
    for one in node.this.walk():
        if isinstance(one, exp.Query | exp.AggFunc | exp.Window):
            raise InvalidStatement("a lambda is about one element: no query, sum or window in it", found=shown(one))
        if isinstance(one, exp.Column) and one.parts[0].name.casefold() in names:
            raise InvalidStatement("write the parameter of a lambda as it is declared", found=shown(one))


def check_callee(node: exp.Expr) -> None:
    """Raise `InvalidInput` unless a function that takes a lambda is given one."""
    held = node.expressions[-1] if isinstance(node, exp.Anonymous) else node.args.get("merge") or node.expression
    if not isinstance(held, exp.Lambda):
        raise InvalidStatement("write a lambda, as x -> x + 1", found=shown(node))


class Series(NamedTuple):
    """Start, end and step of a sequence: of numbers; of days since 1970; or of months since a ``first`` day."""

    start: int
    end: int
    step: int
    is_dates: bool = False
    first: str = ""


def series_of(node: exp.GenerateSeries) -> Series:
    """What a sequence is made of.

    Raises `InvalidInput` unless they are numbers or dates in the statement's text, and few.
    """
    start, end = _bound(node.args.get("start")), _bound(node.args.get("end"))
    is_dates = isinstance(node.args.get("start"), exp.Cast)
    if start is None or end is None or is_dates is not isinstance(node.args.get("end"), exp.Cast):
        raise InvalidStatement("a sequence goes from a number or DATE in the statement to another", found=shown(node))
    months = _count(node.args.get("step"), _MONTHS) if is_dates else None
    if months:
        return _by_months(node, start, end, months)
    step = _step(node.args.get("step"), is_dates) if node.args.get("step") else (1 if end >= start else -1)
    if step is None or step == 0 or (end - start) * step < 0:
        raise InvalidStatement(
            "a step is a number, or an INTERVAL of days, weeks, months or years, towards the end", found=shown(node)
        )
    if abs(end - start) // abs(step) >= MOST_IN_SEQUENCE:
        raise InvalidStatement("a sequence is too long", most=MOST_IN_SEQUENCE)
    return Series(start, end, step, is_dates)


def _by_months(node: exp.GenerateSeries, start: int, end: int, step: int) -> Series:
    """A sequence of the same day of months, or of the last day of those that are too short for it."""
    first, last = (_EPOCH + timedelta(days=one) for one in (start, end))
    away = (last.year - first.year) * 12 + last.month - first.month
    day = min(first.day, monthrange(last.year, last.month)[1])
    if (step > 0 and day > last.day) or (step < 0 and day < last.day):
        away += -1 if step > 0 else 1
    if (end - start) * step < 0:
        raise InvalidStatement("a step goes towards the end", found=shown(node))
    if abs(away) // abs(step) >= MOST_IN_SEQUENCE:
        raise InvalidStatement("a sequence is too long", most=MOST_IN_SEQUENCE)
    return Series(0, away, step, True, first.isoformat())


def _bound(node: exp.Expr | None) -> int | None:
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.DATE and isinstance(node.this, exp.Literal):
        try:
            return date.fromisoformat(node.this.name).toordinal() - _EPOCH.toordinal()
        except ValueError:
            return None
    return whole_number(node)


def _step(node: exp.Expr | None, is_dates: bool) -> int | None:
    return _count(node, _DAYS) if is_dates else whole_number(node)


def _count(node: exp.Expr | None, units: Mapping[str, int]) -> int | None:
    """How many days, or months, an INTERVAL has; None where it is one of other units."""
    if isinstance(node, exp.Neg):
        found = _count(node.this, units)
        return None if found is None else -found
    unit = str(node.args["unit"].name).upper().rstrip("S") if isinstance(node, exp.Interval) else ""
    written = node.this.name if isinstance(node, exp.Interval) else ""
    if unit not in units or not written.removeprefix("-").isdecimal() or len(written) > 6:
        return None
    return units[unit] * int(written)


def series(node: exp.GenerateSeries) -> exp.Expr:
    """A sequence with its step, which DuckDB does not turn around by itself."""
    found = series_of(node)
    made = _call("generate_series", *(exp.Literal.number(one) for one in found[:3]))
    if not found.is_dates:
        return made
    if found.first:
        return exp.Anonymous(this=PREFIX + "months", expressions=[made, exp.Literal.string(found.first)])
    return exp.Anonymous(this=PREFIX + "dates", expressions=[made])


def over_elements(name: str, node: exp.Expr) -> exp.Expr:
    """``transform`` and ``filter``; places are counted from 0 in Spark."""
    one = node.expression.copy()
    if len(one.expressions) == 2:
        place = one.expressions[1].name
        for held in [held for held in one.this.find_all(exp.Identifier) if _is_parameter(held, place)]:
            less = exp.Paren(this=exp.Sub(this=held.copy(), expression=exp.Literal.number(1)))
            if held is one.this:
                one.set("this", less)
            else:
                put(held, less)
    return exp.Anonymous(this=name, expressions=[node.this.copy(), one])


def over_entries(node: exp.Anonymous) -> exp.Expr:
    """``map_filter``, ``transform_keys`` and ``transform_values``: a list of the map's entries is gone through."""
    entries, name = _call("map_entries", node.expressions[0]), str(node.this).lower()
    one = node.expressions[1].copy()
    entry = exp.to_identifier(f"lake_{name}_{one.expressions[0].name}", quoted=True)
    parts = {
        parameter.name: _call("struct_extract", entry, exp.Literal.string(part))
        for parameter, part in zip(one.expressions, ("key", "value"), strict=True)
    }
    for held in list(one.this.find_all(exp.Identifier)):
        if _is_parameter(held, held.name) and held.name in parts:
            put(held, parts[held.name].copy())
    key, value = (_call("struct_extract", entry, exp.Literal.string(part)) for part in ("key", "value"))
    if name == "map_filter":
        kept = exp.Lambda(this=one.this, expressions=[entry])
        return _call("map_from_entries", _call("list_filter", entries, kept))
    key, value = (one.this, value) if name == "transform_keys" else (key, one.this)
    pair = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(part, quoted=True), expression=held)
            for part, held in (("key", key), ("value", value))
        ]
    )
    changed = exp.Lambda(this=pair, expressions=[entry])
    return _call("map_from_entries", _call("list_transform", entries, changed))


def _is_parameter(node: exp.Identifier, name: str) -> bool:
    """Whether a name is that of a lambda's parameter, and not of a column, a field or what stands after AS."""
    match node.parent:
        case exp.Column() | exp.Alias():
            return False
        case exp.Dot():
            return node.name == name and node.arg_key == "this"
        case exp.PropertyEQ():
            return node.name == name and node.arg_key == "expression"
    return node.name == name


def tested(name: str, values: exp.Expr, test: exp.Expr) -> exp.Expr:
    """``exists`` and ``forall``: what a test says of every element, put together."""
    return meaning(name, _call("list_transform", values, test))


def reduced(node: exp.Reduce) -> exp.Expr:
    """``aggregate``, whose end result a last lambda may change."""
    found = _call("list_reduce", node.this, node.args["merge"], node.args["initial"])
    finish = node.args.get("finish")
    if finish is None:
        return found
    changed = _call("list_transform", exp.Array(expressions=[found]), finish)
    return exp.Anonymous(this="list_extract", expressions=[changed, exp.Literal.number(1)])


def sorted_list(node: exp.ArraySort) -> exp.Expr:
    """``array_sort`` has nulls last, and ``sort_array`` where they are least."""
    ascending = node.args.get("asc")
    down = isinstance(ascending, exp.Boolean) and not ascending.this
    first = node.args.get("nulls_first")
    at_first = isinstance(first, exp.Boolean) and first.this
    words = (
        exp.Literal.string("DESC" if down else "ASC"),
        exp.Literal.string(f"NULLS {'FIRST' if at_first else 'LAST'}"),
    )
    return _call("list_sort", node.this, *words)


def joined(node: exp.ArrayToString) -> exp.Expr:
    """``array_join``, with a text for nulls or without."""
    given = [node.this, node.expression, *([node.args["null"]] if node.args.get("null") else [])]
    return meaning("arrayjoin" if len(given) == 2 else "arrayjoinnull", *given)


def union_of(node: exp.Anonymous) -> exp.Expr:
    """``array_union``: the first of all that are equal."""
    tests = [exp.Is(this=one.copy(), expression=exp.Null()) for one in node.expressions]
    both = _call("list_concat", *node.expressions)
    return meaning("arraydistinct", exp.Case(ifs=[exp.If(this=exp.or_(*tests), true=exp.Null())], default=both))


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[one.copy() for one in arguments])
