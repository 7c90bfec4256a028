"""Functions of lists and maps in DuckDB's words, and what a lambda and a sequence may be."""

from __future__ import annotations

from datetime import date

from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.written import shown
from lakehouse.sql.literals import whole_number
from lakehouse.sql.meanings import PREFIX, meaning
from lakehouse.sql.tree import put

MOST_IN_SEQUENCE = 100_000
_OWN = ("lake_",)
_PARAMETERS: dict[str, dict[str, tuple[int, int]]] = {
    "transform": {"expression": (1, 2)},
    "arrayfilter": {"expression": (1, 2)},
    "exists": {"expression": (1, 1)},
    "reduce": {"merge": (2, 2), "finish": (1, 1)},
}
"""By function and part, the least and most parameters of the lambda that stands there."""
WITH_LAMBDA = {"forall": (1, 1), "zip_with": (2, 2)}
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


def series_of(node: exp.GenerateSeries) -> tuple[int, int, int, bool]:
    """Start, end and step of a sequence, days since 1970 where it is of dates, and whether it is.

    Raises `InvalidInput` unless they are numbers or dates in the statement's text, and few.
    """
    start, end = _bound(node.args.get("start")), _bound(node.args.get("end"))
    is_dates = isinstance(node.args.get("start"), exp.Cast)
    if start is None or end is None or is_dates is not isinstance(node.args.get("end"), exp.Cast):
        raise InvalidStatement("a sequence goes from a number or DATE in the statement to another", found=shown(node))
    step = _step(node.args.get("step"), is_dates) if node.args.get("step") else (1 if end >= start else -1)
    if step is None or step == 0 or (end - start) * step < 0:
        raise InvalidStatement(
            "a step is a number, or an INTERVAL of days or weeks, towards the end", found=shown(node)
        )
    if abs(end - start) // abs(step) >= MOST_IN_SEQUENCE:
        raise InvalidStatement("a sequence is too long", most=MOST_IN_SEQUENCE)
    return start, end, step, is_dates


def _bound(node: exp.Expr | None) -> int | None:
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.DATE and isinstance(node.this, exp.Literal):
        try:
            return date.fromisoformat(node.this.name).toordinal() - date(1970, 1, 1).toordinal()
        except ValueError:
            return None
    return whole_number(node)


def _step(node: exp.Expr | None, is_dates: bool) -> int | None:
    if not is_dates:
        return whole_number(node)
    if isinstance(node, exp.Neg):
        found = _step(node.this, is_dates)
        return None if found is None else -found
    unit = str(node.args["unit"].name).upper().rstrip("S") if isinstance(node, exp.Interval) else ""
    days = {"DAY": 1, "WEEK": 7}.get(unit)
    written = node.this.name if isinstance(node, exp.Interval) else ""
    if days is None or not written.lstrip("-").isdecimal() or len(written) > 6:
        return None
    return days * int(written)


def series(node: exp.GenerateSeries) -> exp.Expr:
    """A sequence with its step, which DuckDB does not turn around by itself."""
    start, end, step, is_dates = series_of(node)
    made = _call("generate_series", *(exp.Literal.number(one) for one in (start, end, step)))
    if not is_dates:
        return made
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
