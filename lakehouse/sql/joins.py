"""Outer joins that are inner ones, because a condition refuses the rows that they would fill with nulls.

DuckDB's optimizer would see it, but of some outer joins it makes what they are not, so that this part of it is switched
off (`lakehouse.engine.duckdb.connection`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from lakehouse.sql.names import Reference
from lakehouse.sql.push import conjuncts, is_about, scope_of
from lakehouse.sql.sources import Scope, Source, kind, side
from lakehouse.sql.tree import found_in

_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def make_inner(tree: exp.Expr, references: Sequence[Reference], schemas: Mapping[str, pa.Schema]) -> None:
    """Make each LEFT JOIN of a resolved statement an inner one, in place, where no row would be the fewer for it.

    ``schemas`` are those of tables by relation. What is not understood stays: names that could mean two things, USING,
    and a FROM with RIGHT or FULL joins. Cost: one walk of the statement, if it has such a join at all.
    """
    joins = [one for one in found_in(tree, exp.Join) if side(one) == "LEFT"]
    if not joins:
        return
    scope = scope_of(tree, references, schemas)
    for select in {id(one.parent): one.parent for one in joins}.values():
        if isinstance(select, exp.Select):
            _make_inner(select, scope)


def _make_inner(select: exp.Select, scope: Scope) -> None:
    sources = scope.sources(select)
    if any(one.join is not None and side(one.join) in ("RIGHT", "FULL") for one in sources):
        return
    for place, source in enumerate(sources):
        join = source.join
        if join is None or side(join) != "LEFT" or kind(join) not in ("", "OUTER") or join.args.get("using"):
            continue
        if isinstance(source.node, exp.Lateral) or join.args.get("on") is None:
            continue
        if any(_refuses_null(one, source, sources, scope) for one in _conditions_after(select, sources[place + 1 :])):
            join.set("side", None)
            join.set("kind", None)


def _conditions_after(select: exp.Select, later: Sequence[Source]) -> Iterator[exp.Expr]:
    """Conditions that a row of a join has to pass: those of later inner joins, and of WHERE."""
    joins = [one.join for one in later if one.join is not None and not side(one.join)]
    held = [*(one.args.get("on") for one in joins if kind(one) in ("", "INNER")), select.args.get("where")]
    for one in held:
        if one is not None:
            yield from conjuncts(one.this if isinstance(one, exp.Where) else one)


def _refuses_null(condition: exp.Expr, source: Source, sources: Sequence[Source], scope: Scope) -> bool:
    """Whether a condition holds for no row in which the columns of a source are null."""
    match condition:
        case exp.Not(this=exp.Is(this=column, expression=exp.Null())):
            given = [column]
        case exp.Between() | exp.In():
            given = [condition.this]
        case _ if type(condition) in _COMPARED:
            given = [condition.this, condition.expression]
        case _:
            return False
    seen = [one for one in sources if one.seen]
    return any(isinstance(one, exp.Column) and is_about(one, source, seen, scope) for one in given)
