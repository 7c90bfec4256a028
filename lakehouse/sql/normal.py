"""A checked tree in one form, so that the later steps meet each construct in one way only."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from lakehouse.sql.arguments import check_count
from lakehouse.sql.generators import from_select_list, name_columns
from lakehouse.sql.ranges import is_range, name_range
from lakehouse.sql.tree import nodes_of, put


def normalized(tree: exp.Expr) -> exp.Expr:
    """The tree, changed in place: strict casts, plain literals, NOT by itself, named functions by their operators."""
    for number, node in enumerate(reversed(nodes_of(tree))):  # children first: some are replaced by copies
        match node:
            case exp.TryCast() if not node.args.get("safe"):
                put(node, exp.Cast(this=node.this, to=node.args["to"]))
            case exp.RawString():
                put(node, exp.Literal.string(node.this))
            case exp.Anonymous() if str(node.this).lower() in _NAMED:
                put(node, _called(node))
            case exp.GroupConcat() if node.args.get("separator") is None:
                node.set("separator", exp.Literal.string(""))
            case exp.DateTrunc() | exp.TimestampTrunc():
                unit = node.args["unit"]
                unit.set("this", _UNITS.get(unit.name.upper(), unit.name))
            case exp.Values():
                _name_columns(node)
            case exp.Table() if is_range(node):
                name_range(node)
            case exp.Table() | exp.Lateral() if isinstance(node.this, exp.Explode | exp.Inline):
                name_columns(node, number)
            case exp.Select():
                from_select_list(node, number)
            case exp.Like() | exp.ILike() if node.args.get("negate"):
                _negated(node)
    return tree


def _negated(like: exp.Expr) -> None:
    """``x NOT LIKE y``, which the parser takes for one node, as NOT of what it negates, the escape included."""
    like.set("negate", None)
    whole = like.parent if isinstance(like.parent, exp.Escape) else like
    put(whole, exp.Paren(this=exp.Not(this=whole.copy())))


def _called(node: exp.Anonymous) -> exp.Expr:
    check_count(node)
    return _NAMED[str(node.this).lower()](*node.expressions)


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Is(this=value, expression=exp.Null()))


_UNITS = {"MM": "MONTH", "MON": "MONTH", "YY": "YEAR", "YYYY": "YEAR", "DD": "DAY"}
"""What is short for a unit to Spark alone."""
_NAMED: dict[str, Callable[..., exp.Expr]] = {
    "btrim": lambda value: exp.Trim(this=value),
    "cardinality": lambda value: exp.ArraySize(this=value),
    "every": lambda value: exp.LogicalAnd(this=value),
    "isnotnull": lambda value: exp.Paren(this=exp.Not(this=_is_null(value))),
    "isnull": _is_null,
    "now": exp.CurrentTimestamp,
    "nullifzero": lambda value: exp.Nullif(this=value, expression=exp.Literal.number(0)),
    "some": lambda value: exp.LogicalOr(this=value),
    "std": lambda value: exp.Stddev(this=value),
    "zeroifnull": lambda value: exp.Coalesce(this=value, expressions=[exp.Literal.number(0)]),
}


def _name_columns(values: exp.Values) -> None:
    """Give the columns of a VALUES that stands in a FROM the names that Spark gives them."""
    if not isinstance(values.parent, exp.From | exp.Join):
        return
    rows = [row for row in values.expressions if isinstance(row, exp.Tuple)]
    width = len(rows[0].expressions) if rows else 1
    alias = values.args.get("alias") or exp.TableAlias(this=exp.to_identifier("values"))
    if not alias.args.get("columns"):
        alias.set("columns", [exp.to_identifier(f"col{number}") for number in range(1, width + 1)])
    values.set("alias", alias)
