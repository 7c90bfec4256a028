"""Functions that make rows of a list or map: where they may stand, and what they are in DuckDB's words.

Both engines get them as items of a FROM. One in a SELECT list becomes a ``LATERAL VIEW`` under a name that no statement
can say.
"""

from __future__ import annotations

from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.written import shown
from lakehouse.sql.tree import named

Generator = exp.Explode | exp.Inline
HIDDEN = "lake_generated_"
_ONE = HIDDEN + "one"
_UNDER = ("group", "having", "qualify")


def check_generator(node: exp.Expr) -> None:
    """Raise `InvalidInput` unless rows are made where Spark makes them: in a FROM, or as an item of a SELECT list."""
    place = node.parent
    if node.args.get("expressions") or node.find(exp.Query, exp.AggFunc, exp.Window) is not None:
        raise InvalidStatement("it makes rows of one list or map, not of a query, sum or window", found=shown(node))
    alias = place.args.get("alias") if isinstance(place, exp.Lateral | exp.Table) else None
    if not isinstance(place, exp.Alias | exp.Aliases) and not (alias is not None and alias.args.get("columns")):
        default_names(node)
    if isinstance(place, exp.Lateral | exp.Table):
        return
    item = place if isinstance(place, exp.Alias | exp.Aliases) else node
    if not isinstance(item.parent, exp.Select) or item.arg_key != "expressions":
        raise InvalidStatement("it stands alone in a SELECT list, or in LATERAL VIEW, or in a FROM", found=shown(node))
    _check_select(item.parent, node)


def check_lateral(node: exp.Lateral) -> None:
    """Raise `InvalidInput` unless LATERAL is a query in parentheses or a generator, on the right of a plain join."""
    is_query = isinstance(node.this, exp.Subquery) and not node.args.get("view")
    if not is_query and not isinstance(node.this, Generator):
        raise InvalidStatement(
            "LATERAL takes a query in parentheses, LATERAL VIEW one of explode, posexplode, inline",
            found=shown(node.this),
        )
    if node.args.get("outer") and not node.args.get("view"):
        raise InvalidStatement("write LATERAL VIEW OUTER, or LEFT JOIN LATERAL", found=shown(node))
    join = node.parent
    if isinstance(join, exp.Join) and (
        str(join.args.get("side") or "").upper() not in ("", "LEFT")
        or str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI")
        or join.args.get("using")
        or join.args.get("method")
    ):
        raise InvalidStatement("LATERAL stands after a comma, JOIN, CROSS JOIN or LEFT JOIN, without USING and NATURAL")


def _check_select(select: exp.Select, node: exp.Expr) -> None:
    if sum(isinstance(item.unalias(), Generator) or isinstance(item, exp.Aliases) for item in select.expressions) > 1:
        raise InvalidStatement("a SELECT list makes rows once; use LATERAL VIEW for more", found=shown(node))
    if any(select.args.get(part) for part in _UNDER) or any(
        one.find(exp.AggFunc, exp.Window) is not None for one in select.expressions
    ):
        raise InvalidStatement(
            "rows are made in a SELECT without sums and windows; use LATERAL VIEW", found=shown(node)
        )


def default_names(node: exp.Expr) -> list[str]:
    """What Spark calls the columns of a list's rows; a map's, and a struct's, are to be named in the statement."""
    if isinstance(node, exp.Inline):
        raise InvalidStatement("name the columns: inline(...) AS (a, b), or LATERAL VIEW inline(...) x AS a, b")
    return ["pos", "col"] if isinstance(node, exp.Posexplode) else ["col"]


def name_columns(node: exp.Expr, number: int) -> None:
    """Give an item of a FROM that makes rows a name, and its columns theirs. Raises `InvalidInput` for too many."""
    alias = node.args.get("alias") or exp.TableAlias()
    if alias.args.get("this") is None:
        alias.set("this", exp.to_identifier(f"lake_view_{number}", quoted=True))
    if not alias.args.get("columns"):
        alias.set("columns", [exp.to_identifier(name) for name in default_names(node.this)])
    count, least = len(alias.args["columns"]), 2 if isinstance(node.this, exp.Posexplode) else 1
    if not isinstance(node.this, exp.Inline) and not least <= count <= least + 1:
        raise InvalidStatement("not as many names as columns", found=shown(node.this), names=count)
    node.set("alias", alias)


def from_select_list(select: exp.Select, number: int) -> None:
    """Make a LATERAL VIEW of an item that makes rows, in place."""
    for place, item in enumerate(select.expressions):
        made = item.this if isinstance(item, exp.Aliases) else item.unalias()
        if not isinstance(made, Generator):
            continue
        if isinstance(item, exp.Aliases):
            names = [one.name for one in item.expressions]
        else:
            names = [item.alias] if isinstance(item, exp.Alias) else default_names(made)
        called = f"{HIDDEN}{number}"
        inner = [exp.to_identifier(f"{called}_{one}", quoted=True) for one in range(len(names))]
        view = exp.Lateral(
            this=made.copy(),
            view=True,
            alias=exp.TableAlias(this=exp.to_identifier(called, quoted=True), columns=inner),
        )
        name_columns(view, number)
        columns = [
            named(exp.column(one.name, table=called, quoted=True), name) for one, name in zip(inner, names, strict=True)
        ]
        select.set("expressions", [*select.expressions[:place], *columns, *select.expressions[place + 1 :]])
        select.append("laterals", view)
        if select.args.get("from_") is None:
            one = exp.Select(expressions=[exp.Alias(this=exp.Literal.number(1), alias=exp.to_identifier(_ONE))])
            select.set(
                "from_",
                exp.From(this=exp.Subquery(this=one, alias=exp.TableAlias(this=exp.to_identifier(_ONE)))),
            )
        return


def is_hidden(alias: str) -> bool:
    """Whether an item of a FROM is one that the statement does not write."""
    return alias.startswith(HIDDEN)


def as_query(node: exp.Expr) -> exp.Expr | None:
    """An item of a FROM that makes rows, as a query of DuckDB's."""
    made = node.this
    if not isinstance(made, Generator):
        return None
    names = [one.name for one in node.args["alias"].args["columns"]]
    is_outer = isinstance(made, exp.ExplodeOuter)
    has_nothing = is_outer and not node.args.get("view")
    lists = _or_nothing(made, len(names)) if has_nothing else _lists(made, made.this, len(names))
    items = [named(_call("unnest", one), name) for one, name in zip(lists, names, strict=True)]
    alias = exp.TableAlias(this=node.args["alias"].this.copy())
    query = exp.Subquery(this=exp.Select(expressions=items))
    if isinstance(node, exp.Lateral):
        return exp.Lateral(this=query, outer=node.args.get("outer") or (is_outer and not has_nothing), alias=alias)
    query.set("alias", alias)
    return query


def _lists(made: exp.Expr, value: exp.Expr, count: int) -> list[exp.Expr]:
    """As many lists, of one length, as there are columns."""
    if isinstance(made, exp.Inline):
        element = exp.to_identifier("lake_x")
        return [
            _call(
                "list_transform",
                value,
                exp.Lambda(
                    this=_call("struct_extract_at", element, exp.Literal.number(place)), expressions=[element.copy()]
                ),
            )
            for place in range(1, count + 1)
        ]
    has_places = isinstance(made, exp.Posexplode)
    parts = [value] if count == 1 + has_places else [_call("map_keys", value), _call("map_values", value)]
    return [*([_call("range", _call("len", parts[0]))] if has_places else []), *parts]


def _or_nothing(made: exp.Expr, count: int) -> list[exp.Expr]:
    """The same for one that makes a row of nulls where there is no element."""
    lists = _lists(made, made.this, count)
    filled = exp.Coalesce(this=_call("len", lists[-1]), expressions=[exp.Literal.number(0)])
    nothing = exp.Array(expressions=[exp.Null()])
    return [
        exp.Case(
            ifs=[exp.If(this=exp.EQ(this=filled.copy(), expression=exp.Literal.number(0)), true=nothing.copy())],
            default=one,
        )
        for one in lists
    ]


def as_joins(select: exp.Select) -> None:
    """LATERAL VIEWs as joins, which DuckDB has: those with OUTER keep rows that nothing is made of."""
    for view in select.args.get("laterals") or ():
        is_outer = view.args.get("outer")
        view.set("outer", None)
        join = exp.Join(this=view, side="LEFT", on=exp.true()) if is_outer else exp.Join(this=view, kind="CROSS")
        select.append("joins", join)
    select.set("laterals", None)


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[one.copy() for one in arguments])
