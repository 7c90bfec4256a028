"""Shorthand of a statement, spelled out in what the closed list knows: lists of patterns, FETCH, the lake's own names.

It is spelled out before the list is consulted. What of it has no such form stays as it is, and is refused by the list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.dialect import DIALECT
from lakehouse.predicate.parts import unread
from lakehouse.predicate.written import shown
from lakehouse.sql.literals import whole_number
from lakehouse.sql.system import CATALOG, SCHEMA
from lakehouse.sql.tree import named, nodes_of, put

_GROUPS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)
_NAMES: dict[type[exp.Expr], str] = {
    exp.CurrentCatalog: "current_catalog()",
    exp.CurrentDatabase: "current_database()",
    exp.CurrentSchema: "current_schema()",
}
_CALLED: dict[tuple[str, int], Callable[..., exp.Expr]] = {
    ("date_part", 2): lambda part, value: _extracted(
        exp.Extract(this=exp.var(part.name.upper()) if part.is_string else part, expression=value)
    ),
    ("positive", 1): lambda value: exp.Paren(this=value),
    ("try_mod", 2): lambda left, right: exp.Paren(
        this=exp.Mod(
            this=exp.Paren(this=left),
            expression=exp.Nullif(this=right, expression=exp.Literal.number(0)),
        )
    ),
    ("regexp", 2): lambda value, pattern: exp.RegexpLike(this=value, expression=pattern),
}
"""Functions that the parser keeps by name, with the number of their arguments."""
_DEFINED: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Negative: lambda node: exp.Paren(this=exp.Neg(this=exp.Paren(this=node.this))),
    exp.RegexpSubstr: lambda node: exp.Nullif(
        this=exp.RegexpExtract(this=node.this, expression=node.expression, group=exp.Literal.number(0)),
        expression=exp.Literal.string(""),
    ),
    exp.SafeDivide: lambda node: exp.Paren(
        this=exp.Div(
            this=exp.Paren(this=node.this),
            expression=exp.Nullif(this=node.expression, expression=exp.Literal.number(0)),
        )
    ),
    exp.Space: lambda node: exp.Repeat(this=exp.Literal.string(" "), times=node.this),
}
_DAYS: dict[str, Callable[[exp.Expr], exp.Expr]] = {
    **dict.fromkeys(("DOW", "DAYOFWEEK"), lambda value: exp.DayOfWeek(this=exp.TsOrDsToDate(this=value))),
    **dict.fromkeys(
        ("DOW_ISO", "DAYOFWEEK_ISO"),
        lambda value: exp.Paren(
            this=exp.Add(this=exp.Anonymous(this="weekday", expressions=[value]), expression=exp.Literal.number(1))
        ),
    ),
}
_SERIES = "generate_series"
_ORDERED: dict[type[exp.Expr], tuple[type[exp.Expr], type[exp.Expr]]] = {
    exp.EQ: (exp.Max, exp.Min),
    exp.NEQ: (exp.Max, exp.Min),
    exp.GT: (exp.Max, exp.Min),
    exp.GTE: (exp.Max, exp.Min),
    exp.LT: (exp.Min, exp.Max),
    exp.LTE: (exp.Min, exp.Max),
}
"""The value of a query that decides a comparison with ALL of its values, and the one for ANY."""
_MOST_IN_QUANTIFIED = 2_000
"""Nodes of a comparison with ALL or ANY, which is written several times."""
_MOST_NAMED = 100
_MOST_COPIED = 20_000
"""Nodes that the patterns of one list may make of the text that they are held against."""


def spelled_out(tree: exp.Expr) -> exp.Expr:
    """The tree, changed in place.

    ``x LIKE ANY ('a%', 'b%')`` is made of OR, ``= ANY (query)`` is IN, ``<> ALL (query)`` NOT IN, ``> ALL (query)``
    looks at the greatest value, FETCH FIRST is LIMIT, LIMIT ALL is none, ``generate_series(1, 3)`` in a FROM is
    ``range(1, 4)``, ``grouping_id()`` has the columns of GROUP BY, ``current_schema()`` is its value, and functions
    that Spark itself defines by others are those. Cost: one walk.
    """
    for node in reversed(nodes_of(tree)):  # children first
        match node:
            case exp.Binary() if isinstance(node.expression, exp.Any | exp.All):
                # at the comparison, not at ANY, so that what stands on its left is spelled out, too
                if isinstance(node, exp.Like | exp.ILike):
                    _compare_each(node, node.expression)
                else:
                    _look_into(node, node.expression)
            case exp.Table() if isinstance(node.this, exp.GenerateSeries):
                _as_range(node)
            case exp.Extract() if node.name.upper() in _DAYS:
                put(node, _extracted(node))
            case exp.Fetch():
                _limit(node)
            case exp.Limit(expression=exp.Var()) if node.expression.name.upper() == "ALL":
                node.pop()
            case exp.GroupingId() if not node.expressions:
                node.set("expressions", _grouped(node))
            case exp.Anonymous() if (str(node.this).lower(), len(node.expressions)) in _CALLED:
                put(node, _CALLED[str(node.this).lower(), len(node.expressions)](*node.expressions))
            case _ if type(node) in _DEFINED and unread(node, ("this", "expression"), {}) is None:
                put(node, _DEFINED[type(node)](node))
            case _ if type(node) in _NAMES and not node.args:
                _name(node)
    return tree


def _extracted(node: exp.Extract) -> exp.Expr:
    """A part of a time; the day of the week by the function for it, since engines count days from different ones."""
    day = _DAYS.get(node.name.upper())
    return node if day is None else day(node.expression)


def _compare_each(like: exp.Expr, patterns: exp.Expr) -> None:
    listed = patterns.this.expressions if isinstance(patterns.this, exp.Tuple) else [patterns.this]
    if patterns.find(exp.Query) is not None or isinstance(like.parent, exp.Escape):
        return
    if len(listed) * len(nodes_of(like.this)) > _MOST_COPIED:
        raise InvalidStatement("too many patterns for a text of this length; name it in a sub-query", found=shown(like))
    each: list[exp.Expr] = []
    for pattern in listed:
        one = like.copy()
        one.set("expression", pattern.unnest().copy())
        each.append(one)
    joined = exp.Or if isinstance(patterns, exp.Any) else exp.And
    put(like, exp.Paren(this=reduce(lambda left, right: joined(this=left, expression=right), each)))


def _look_into(test: exp.Expr, node: exp.Expr) -> None:
    """A comparison with ANY or ALL of a query."""
    query = node.this
    if not isinstance(query, exp.Query):
        return
    if (type(node), type(test)) not in ((exp.Any, exp.EQ), (exp.All, exp.NEQ)):
        if type(test) in _ORDERED:
            _put_named(test, _by_extremes(test, query, is_any=isinstance(node, exp.Any)))
        return
    held = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query.copy())
    found: exp.Expr = exp.In(this=test.this.copy(), query=held.copy())
    put(test, exp.Paren(this=found if isinstance(node, exp.Any) else exp.Not(this=found)))


def _put_named(test: exp.Expr, made: exp.Expr) -> None:
    """Put what a comparison stands for in its place; an item of a SELECT list keeps the name that its text is."""
    if isinstance(test.parent, exp.Select) and test.arg_key == "expressions":
        name = exp.to_identifier(test.sql(dialect=DIALECT, comments=False)[:_MOST_NAMED], quoted=True)
        made = exp.Alias(this=made, alias=name)
    put(test, made)


def _by_extremes(test: exp.Expr, query: exp.Query, *, is_any: bool) -> exp.Expr:
    """``x > ALL (query)`` by the greatest value that the query gives, the number of its rows and that of its nulls.

    It is true where there is no row, false where one fails the test, and null where one might: three queries, each
    of which Spark and DuckDB take. ANY is the opposite of ALL of the opposite test.
    """
    if query.find(exp.Limit, exp.Offset, exp.Fetch) is not None:
        raise InvalidStatement(
            "ALL and ANY read their query several times, and LIMIT may choose other rows each time; compare with the "
            "greatest or least value instead, as in x > (SELECT max(y) FROM (... LIMIT 10))",
            found=shown(test),
        )
    if len(nodes_of(query)) + len(nodes_of(test.this)) > _MOST_IN_QUANTIFIED:
        raise InvalidStatement("a comparison with ALL or ANY is too long; write it as EXISTS", found=shown(test))

    def of_rows(value: exp.Expr) -> exp.Expr:
        alias = exp.TableAlias(this=exp.to_identifier("lake_q"), columns=[exp.to_identifier("lake_y")])
        rows = exp.Subquery(this=query.unnest().copy(), alias=alias)
        return exp.Subquery(this=exp.Select(expressions=[value], from_=exp.From(this=rows)))

    def compared(kind: type[exp.Expr], extreme: type[exp.Expr]) -> exp.Expr:
        return kind(this=exp.Paren(this=test.this.copy()), expression=of_rows(extreme(this=exp.column("lake_y"))))

    kind, (of_all, of_any) = type(test), _ORDERED[type(test)]
    passes = compared(kind, of_any if is_any else of_all)
    if kind in (exp.EQ, exp.NEQ):  # which looks at both ends
        joined = exp.And if kind is exp.EQ else exp.Or
        passes = joined(this=compared(kind, exp.Min), expression=compared(kind, exp.Max))
    settled = exp.Paren(this=passes) if is_any else exp.Not(this=exp.Paren(this=passes))
    count = exp.Count(this=exp.Star(), big_int=True)
    nulls = exp.Sub(this=count.copy(), expression=exp.Count(this=exp.column("lake_y"), big_int=True))
    zero = exp.Literal.number(0)
    unknown = exp.Or(
        this=exp.Is(this=exp.Paren(this=test.this.copy()), expression=exp.Null()),
        expression=exp.GT(this=of_rows(nulls), expression=zero.copy()),
    )
    none = exp.EQ(this=of_rows(count), expression=zero.copy())
    return exp.Paren(
        this=exp.Case(
            ifs=[
                exp.If(this=none, true=exp.Boolean(this=not is_any)),
                exp.If(this=settled, true=exp.Boolean(this=is_any)),
                exp.If(this=unknown, true=exp.Null()),
            ],
            default=exp.Boolean(this=not is_any),
        )
    )


def _as_range(table: exp.Table) -> None:
    """``generate_series(1, 3)`` in a FROM, whose end is among its numbers, as a ``range``."""
    made = table.this
    given = [whole_number(made.args.get(part)) for part in ("start", "end")]
    step = whole_number(made.args["step"]) if made.args.get("step") else 1
    start, end = given
    if start is None or end is None or not step:
        return
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(_SERIES))
    if not alias.args.get("columns"):
        alias.set("columns", [exp.to_identifier(_SERIES)])
    table.set("alias", alias)
    numbers = (start, end + (1 if step > 0 else -1), step)
    table.set("this", exp.Anonymous(this="range", expressions=[exp.Literal.number(one) for one in numbers]))


def _limit(fetch: exp.Fetch) -> None:
    options = fetch.args.get("limit_options")
    if options is None or not (options.args.get("percent") or options.args.get("with_ties")):
        put(fetch, exp.Limit(expression=fetch.args.get("count") or exp.Literal.number(1)))


def _grouped(node: exp.Expr) -> list[exp.Expr]:
    """What the GROUP BY around a call groups by, in its order, each once; nothing where a number stands for one."""
    select = node.find_ancestor(exp.Select)
    group = None if select is None else select.args.get("group")
    if group is None:
        return []
    parts = ("rollup", "cube", "grouping_sets")
    waiting = [*group.expressions, *(one for part in parts for one in group.args.get(part) or [])]
    found: dict[str, exp.Expr] = {}
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, _GROUPS):
            waiting[:0] = [one.this] if isinstance(one, exp.Paren) else one.expressions
        elif isinstance(one, exp.Literal):
            return []
        else:
            found.setdefault(one.sql().casefold(), one)
    return [one.copy() for one in found.values()]


def _name(node: exp.Expr) -> None:
    value = CATALOG if isinstance(node, exp.CurrentCatalog) else SCHEMA
    literal: exp.Expr = exp.Literal.string(value)
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
        literal = named(literal, _NAMES[type(node)])
    put(node, literal)
