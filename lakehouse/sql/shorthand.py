"""Shorthand of a statement, spelled out in what the closed list knows: lists of patterns, FETCH, the lake's own names.

It is spelled out before the list is consulted. What of it has no such form stays as it is, and is refused by the list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.parts import unread
from lakehouse.predicate.written import shown
from lakehouse.sql.system import CATALOG, SCHEMA
from lakehouse.sql.tree import nodes_of, put

_GROUPS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)
_NAMES: dict[type[exp.Expr], str] = {
    exp.CurrentCatalog: "current_catalog()",
    exp.CurrentDatabase: "current_database()",
    exp.CurrentSchema: "current_schema()",
}
_CALLED: dict[tuple[str, int], Callable[..., exp.Expr]] = {
    ("date_part", 2): lambda part, value: exp.Extract(
        this=exp.var(part.name.upper()) if part.is_string else part, expression=value
    ),
    ("positive", 1): lambda value: exp.Paren(this=value),
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
_MOST_COPIED = 20_000
"""Nodes that the patterns of one list may make of the text that they are held against."""


def spelled_out(tree: exp.Expr) -> exp.Expr:
    """The tree, changed in place.

    ``x LIKE ANY ('a%', 'b%')`` is made of OR, ``= ANY (query)`` is IN, ``<> ALL (query)`` NOT IN, FETCH FIRST is LIMIT,
    ``grouping_id()`` has the columns of GROUP BY, ``current_schema()`` is its value, and functions that Spark itself
    defines by others are those. Cost: one walk.
    """
    for node in reversed(nodes_of(tree)):  # children first
        match node:
            case exp.Any() | exp.All() if isinstance(node.parent, exp.Like | exp.ILike):
                _compare_each(node.parent, node)
            case exp.Any() | exp.All():
                _look_into(node)
            case exp.Fetch():
                _limit(node)
            case exp.GroupingId() if not node.expressions:
                node.set("expressions", _grouped(node))
            case exp.Anonymous() if (str(node.this).lower(), len(node.expressions)) in _CALLED:
                put(node, _CALLED[str(node.this).lower(), len(node.expressions)](*node.expressions))
            case _ if type(node) in _DEFINED and unread(node, ("this", "expression"), {}) is None:
                put(node, _DEFINED[type(node)](node))
            case _ if type(node) in _NAMES and not node.args:
                _name(node)
    return tree


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


def _look_into(node: exp.Expr) -> None:
    """``= ANY`` or ``<> ALL`` of a query."""
    query, test = node.this, node.parent
    if not isinstance(query, exp.Query) or test is None or test.args.get("expression") is not node:
        return
    if (type(node), type(test)) not in ((exp.Any, exp.EQ), (exp.All, exp.NEQ)):
        return
    held = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query.copy())
    found: exp.Expr = exp.In(this=test.this.copy(), query=held.copy())
    put(test, exp.Paren(this=found if isinstance(node, exp.Any) else exp.Not(this=found)))


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
        literal = exp.Alias(this=literal, alias=exp.to_identifier(_NAMES[type(node)], quoted=True))
    put(node, literal)
