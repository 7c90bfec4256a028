"""WITH RECURSIVE: an anchor, and a step that is repeated until it gives no row, or too often.

DuckDB has no limit of its own, and Spark's depends on its settings, so each row counts the steps that it took, in a
column that the statement cannot see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from lakehouse.engine.recursion import MOST_STEPS, TOO_MANY
from lakehouse.errors import InvalidStatement
from lakehouse.sql.tree import found_in, named

COUNTER = "lake_steps_taken"
STEPS = "steps"
"""Mark of the query in Spark's text, which says its own limit there."""
CORRELATED = "lake_correlated"
"""Mark of a query of WITH that has a column of a query around it."""
_RECURSION = "lake_recursion"
"""Mark of what a recursion gives, beside its steps."""
_NOT_IN_STEP = ("with_", "group", "having", "qualify", "distinct", "windows", "order", "limit", "offset")


def is_recursive(query: exp.CTE) -> bool:
    """Whether a query of WITH, in a resolved statement, names itself."""
    return any(one.name == query.alias for one in query.this.find_all(exp.Table))


def parts_of(query: exp.CTE) -> tuple[exp.Expr, exp.Select, exp.Table]:
    """The anchor, the step, and where the step names the query. Raises `InvalidInput` for any other form."""
    whole = query.this
    if not isinstance(whole, exp.Union) or whole.args.get("distinct") is not False:
        raise InvalidStatement("a query that names itself is: anchor UNION ALL step, the step with the name")
    if any(whole.args.get(part) for part in ("with_", "order", "limit", "offset")):
        raise InvalidStatement("a query that names itself has no WITH, ORDER BY or LIMIT of its own")
    anchor, step = whole.this, whole.expression.unnest()
    if any(one.name == query.alias for one in anchor.find_all(exp.Table)):
        raise InvalidStatement("the first part of a query that names itself must not name it")
    names = [one for one in step.find_all(exp.Table) if one.name == query.alias]
    if not isinstance(step, exp.Select) or len(names) != 1 or not isinstance(names[0].parent, exp.From | exp.Join):
        raise InvalidStatement("the step names its query once, in its own FROM")
    if names[0].parent.parent is not step or names[0].args.get("pivots"):
        raise InvalidStatement("the step names its query once, in its own FROM, not in a sub-query")
    if any(step.args.get(part) for part in _NOT_IN_STEP) or any(
        one.find(exp.AggFunc, exp.Window) for one in step.expressions
    ):
        raise InvalidStatement("a step is a SELECT without GROUP BY, DISTINCT, sums, windows, ORDER BY and LIMIT")
    _check_joins(step)
    return anchor, step, names[0]


def _check_joins(step: exp.Select) -> None:
    for join in step.args.get("joins") or ():
        if str(join.args.get("side") or "") or str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI", "OUTER"):
            raise InvalidStatement("a step joins by JOIN and CROSS JOIN only")


def counted(query: exp.CTE, names: Sequence[str]) -> list[exp.CTE]:
    """The query as two: one whose rows count their steps and fail after too many, and one without the count."""
    anchor, step, own = parts_of(query)
    inner = f"{query.alias}_{STEPS}"
    listed = [exp.to_identifier(name, quoted=True) for name in names]
    begun = exp.Select(
        expressions=[exp.Star(), named(exp.Literal.number(0), COUNTER)],
        from_=exp.From(
            this=exp.Subquery(
                this=anchor.copy(),
                alias=exp.TableAlias(
                    this=exp.to_identifier("lake_anchor"), columns=[one.copy() for one in listed]
                ),
            )
        ),
    )  # fmt: skip
    taken = exp.column(COUNTER, table=own.alias_or_name, quoted=True)
    own.set("this", exp.to_identifier(inner, quoted=True))
    alias = own.args["alias"]
    if alias.args.get("columns"):
        alias.set("columns", [*alias.args["columns"], exp.to_identifier(COUNTER, quoted=True)])
    more = exp.Add(this=taken, expression=exp.Literal.number(1))
    within = exp.LT(this=taken.copy(), expression=exp.Literal.number(MOST_STEPS))
    failed = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(TOO_MANY)])
    step.append("expressions", named(exp.Case(ifs=[exp.If(this=within, true=more)], default=failed), COUNTER))
    steps = exp.CTE(
        this=exp.Union(this=begun, expression=step.copy(), distinct=False),
        alias=exp.TableAlias(
            this=exp.to_identifier(inner, quoted=True), columns=[*listed, exp.to_identifier(COUNTER, quoted=True)]
        ),
    )
    steps.meta[STEPS] = MOST_STEPS + 5
    whole = exp.Select(
        expressions=[exp.column(name, table=inner, quoted=True) for name in names],
        from_=exp.From(this=exp.Table(this=exp.to_identifier(inner, quoted=True))),
        # never false; it keeps the count, and with it the failure, from being optimized away
        where=exp.Where(
            this=exp.LTE(
                this=exp.column(COUNTER, table=inner, quoted=True), expression=exp.Literal.number(MOST_STEPS)
            )
        ),
    )  # fmt: skip
    plain = exp.CTE(this=whole, alias=exp.TableAlias(this=query.args["alias"].this.copy()))
    plain.meta[_RECURSION] = True
    return [steps, plain]


def put_first(tree: exp.Expr) -> None:
    """Move recursions, with what they read, to the WITH at the beginning of a resolved query, whose names are unique.

    DuckDB 2.0.0 loses rows where several of them stand in one condition of a LATERAL query (its optimizer
    `projection_pullup`), and none where they are only named there. A query of WITH gives the same rows at either place
    unless it has a column of a query around it: such recursions stay where they are.
    """
    withs = [one for one in found_in(tree, exp.With) if one.parent is not tree]
    inner = {one.alias: one for with_ in withs for one in with_.expressions}
    moved: dict[str, exp.CTE] = {}
    for one in inner.values():
        needed = _needed(one, inner) if one.meta_get(_RECURSION) else {}
        if not any(other.meta_get(CORRELATED) for other in needed.values()):
            moved |= needed
    if not moved:
        return
    for one in moved.values():
        one.pop()
    for with_ in withs:
        if not with_.expressions:
            with_.pop()
    first = tree.args.get("with_")
    made: list[exp.Expr] = []
    for query in first.expressions if first is not None else ():
        _move_read(query, moved, made)
        made.append(query)
    while moved:
        _move(next(iter(moved)), moved, made)
    tree.set("with_", exp.With(expressions=made, recursive=True))


def _needed(query: exp.CTE, inner: Mapping[str, exp.CTE]) -> dict[str, exp.CTE]:
    """A query of WITH and those that it reads, but for those within it."""
    found: dict[str, exp.CTE] = {}
    waiting = [query]
    while waiting:
        one = waiting.pop()
        found[one.alias] = one
        within = {other.alias for other in one.find_all(exp.CTE)}
        read = {table.name for table in one.find_all(exp.Table)}
        waiting += [inner[name] for name in read - within - found.keys() if name in inner]
    return found


def _move(name: str, moved: dict[str, exp.CTE], made: list[exp.Expr]) -> None:
    """Put one of the ``moved`` behind those ``made``, after those that it reads."""
    query = moved.pop(name)
    _move_read(query, moved, made)
    made.append(query)


def _move_read(query: exp.Expr, moved: dict[str, exp.CTE], made: list[exp.Expr]) -> None:
    for table in query.find_all(exp.Table):
        if table.name in moved:
            _move(table.name, moved, made)
