"""Functions in DuckDB's words, where a call is written otherwise and the parser's writer does not know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from lakehouse.sql.arguments import pattern_of, replacement_of
from lakehouse.sql.generators import as_joins, as_query
from lakehouse.sql.lists import joined, over_elements, reduced, series, sorted_list, tested, union_of
from lakehouse.sql.meanings import meaning

Form = Callable[[Any], exp.Expr | None]


def said_by(name: str, *parts: str) -> Form:
    """The meaning of a name over the call's arguments, in the order of ``parts``."""
    return lambda node: meaning(name, *(node.args[part] for part in parts))


def _padded(node: exp.Pad) -> exp.Expr:
    fill = node.args.get("fill_pattern") or exp.Literal.string(" ")
    return meaning("lpad" if node.args.get("is_left") else "rpad", node.this, node.expression, fill)


def _grouped(node: exp.Group) -> exp.Expr | None:
    """``GROUP BY a, b WITH ROLLUP`` as ``GROUP BY ROLLUP (a, b)``; sets after a list say all by themselves."""
    if node.args.get("grouping_sets"):
        return exp.Group(expressions=[one.copy() for one in node.args["grouping_sets"]])
    for part, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if node.args.get(part):
            return exp.Group(expressions=[kind(expressions=[one.copy() for one in node.expressions])])
    return None


def _selected(select: exp.Select) -> None:
    """LATERAL VIEWs as joins, in place; and no row of totals where there is no row, which Spark does not give."""
    as_joins(select)
    group = select.args.get("group")
    if group is not None and any(
        isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets) for one in group.expressions
    ):
        some = exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Literal.number(0))
        having = select.args.get("having")
        select.set("having", exp.Having(this=some if having is None else exp.and_(having.this.copy(), some)))


def _pattern(node: exp.Expr) -> exp.Expr:
    return exp.Literal.string(pattern_of(node).re2)


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[one.copy() for one in arguments])


def _replaced(node: exp.RegexpReplace) -> exp.Expr:
    put_in, everywhere = exp.Literal.string(replacement_of(node)), exp.Literal.string("g")
    return _call("regexp_replace", node.this, _pattern(node), put_in, everywhere)


FORMS: dict[type[exp.Expr], Form] = {
    exp.ArrayAppend: said_by("arrayappend", "this", "expression"),
    exp.ArrayCompact: said_by("arraycompact", "this"),
    exp.ArrayExcept: said_by("arrayexcept", "this", "expression"),
    exp.ArrayFilter: lambda node: over_elements("list_filter", node),
    exp.ArrayIntersect: lambda node: meaning("arrayintersect", *node.expressions),
    exp.ArrayPosition: said_by("arrayposition", "this", "expression"),
    exp.ArrayPrepend: said_by("arrayprepend", "this", "expression"),
    exp.ArrayRemove: said_by("arrayremove", "this", "expression"),
    exp.ArraySlice: said_by("slice", "this", "start", "end"),
    exp.ArraySort: sorted_list,
    exp.ArrayToString: joined,
    exp.Exists: lambda node: tested("anytrue", node.this, node.expression) if node.args.get("expression") else None,
    exp.Flatten: said_by("flatten", "this"),
    exp.GenerateSeries: series,
    exp.Lateral: as_query,
    exp.Select: _selected,
    exp.Table: as_query,
    exp.MapContainsKey: lambda node: _call("map_contains", node.this, node.args["key"]),
    exp.Reduce: reduced,
    exp.Transform: lambda node: over_elements("list_transform", node),
    exp.BitLength: said_by("bits", "this"),
    exp.BitwiseCount: lambda node: type(node)(this=exp.cast(node.this.copy(), exp.DType.BIGINT, dialect="duckdb")),
    exp.Chr: lambda node: meaning("chr", *node.expressions),
    exp.DateFromUnixDate: lambda node: exp.cast(node.copy(), exp.DType.DATE, dialect="duckdb"),
    exp.Group: _grouped,
    exp.Kurtosis: lambda node: exp.Anonymous(this="kurtosis_pop", expressions=[node.this.copy()]),
    exp.JSONExtractScalar: lambda node: meaning(
        "json", node.this, exp.Literal.string(node.expression.sql(dialect="duckdb").strip("'"))
    ),
    exp.Pad: _padded,
    exp.RegexpCount: lambda node: _call("len", _call("regexp_extract_all", node.this, _pattern(node))),
    exp.RegexpExtract: lambda node: _call("regexp_extract", node.this, _pattern(node), node.args["group"]),
    exp.RegexpLike: lambda node: _call("regexp_matches", node.this, _pattern(node)),
    exp.RegexpReplace: _replaced,
    exp.RegexpSplit: lambda node: _call("regexp_split_to_array", node.this, _pattern(node)),
    exp.SplitPart: said_by("splitpart", "this", "delimiter", "part_index"),
    **dict.fromkeys(
        (exp.Dayname, exp.Monthname), lambda node: exp.Left(this=node.copy(), expression=exp.Literal.number(3))
    ),
}
"""By kind of node; nothing where it may stay as it is."""
NAMED_FORMS: dict[str, Form] = {
    "array_union": union_of,
    "arrays_overlap": lambda node: meaning("overlap", *node.expressions),
    "forall": lambda node: tested("alltrue", *node.expressions),
    "octet_length": lambda node: meaning("octets", *node.expressions),
    "pmod": lambda node: meaning("pmod", *node.expressions),
    "raise_error": lambda node: _call("error", *node.expressions),
    "weekday": lambda node: meaning("weekday", *node.expressions),
}
"""The same of functions that the parser keeps by name."""
