"""What a query says of columns by their names alone, spelled out: NATURAL JOIN, UNION BY NAME and ORDER BY ALL."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.written import shown

_ALL = "ALL"


def spell_natural(join: exp.Join, left: Sequence[str], right: Sequence[str]) -> None:
    """NATURAL as USING of the names that both sides have, in place; without any, each row meets each."""
    if not join.args.get("method"):
        return
    there = {name.casefold() for name in right if name}
    common = dict.fromkeys(name.casefold() for name in left if name.casefold() in there)
    names = {name.casefold(): name for name in left}
    join.set("method", None)
    if common:
        join.set("using", [exp.to_identifier(names[name], quoted=True) for name in common])
    else:
        join.set("on", exp.true())


def same_joins(written: Sequence[exp.Join], read: Sequence[exp.Join]) -> None:
    """Give a statement's NATURAL joins, in place, what was spelled out in a copy of it."""
    for join, copy in zip(written, read, strict=True):
        if join.args.get("method"):
            using, on = copy.args.get("using"), copy.args.get("on")
            join.set("method", None)
            join.set("using", [one.copy() for one in using] if using else None)
            join.set("on", on.copy() if on is not None else None)


def spell_union(union: exp.SetOperation, left: Sequence[str], right: Sequence[str]) -> list[str]:
    """UNION BY NAME as one by place, in place: the left side's columns, then those that the right side has alone.

    A column that a side does not have is null in its rows. Returns the names of the columns that come to be. Raises
    `InvalidStatement` for a column without a name, or a name that is there twice.
    """
    for names in (left, right):
        folded = [name.casefold() for name in names]
        if not all(folded) or len(set(folded)) < len(folded):
            raise InvalidStatement(
                "BY NAME needs a name for each column, each once; write AS and a name", columns=",".join(names)
            )
    known = {name.casefold() for name in left}
    names = [*left, *(name for name in right if name.casefold() not in known)]
    for part, given in (("this", left), ("expression", right)):
        if [name.casefold() for name in names] != [name.casefold() for name in given]:
            union.set(part, _with_columns(union.args[part], names, {name.casefold() for name in given}))
    union.set("by_name", None)
    return names


def _with_columns(query: exp.Expr, names: Sequence[str], given: set[str]) -> exp.Expr:
    """A query's columns in another order, and nulls for those that it does not have."""
    items = [
        exp.Alias(
            this=exp.column(name, quoted=True) if name.casefold() in given else exp.Null(),
            alias=exp.to_identifier(name, quoted=True),
        )
        for name in names
    ]
    inner = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
    inner.set("alias", exp.TableAlias(this=exp.to_identifier("lake_side", quoted=True)))
    return exp.Select(expressions=items, from_=exp.From(this=inner))


def is_all(node: exp.Expr) -> bool:
    """Whether a word is the ALL of ORDER BY ALL, which stands alone there."""
    order = node.parent.parent if isinstance(node.parent, exp.Ordered) else None
    is_alone = isinstance(order, exp.Order) and len(order.expressions) == 1 and isinstance(order.parent, exp.Query)
    return isinstance(node, exp.Var) and node.name.upper() == _ALL and is_alone


def spell_order(order: exp.Order, names: Sequence[str]) -> None:
    """ORDER BY ALL as the places of all columns, in place. ``names`` are what the query gives."""
    first = order.expressions[0]
    if not is_all(first.this):
        return
    if not names or any(name.upper() == _ALL for name in names):
        raise InvalidStatement("ORDER BY ALL needs columns, none of them called all", found=shown(order))
    marks = {part: first.args.get(part) for part in ("desc", "nulls_first")}
    places = (exp.Literal.number(place) for place in range(1, len(names) + 1))
    order.set("expressions", [exp.Ordered(this=place, **marks) for place in places])
