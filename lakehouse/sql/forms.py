"""Functions in DuckDB's words, where a call is written otherwise and the parser's writer does not know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from lakehouse.sql.arguments import pattern_of, replacement_of, weekday_of
from lakehouse.sql.generators import as_joins, as_query
from lakehouse.sql.lists import joined, over_elements, over_entries, reduced, series, sorted_list, tested, union_of
from lakehouse.sql.literals import whole_number
from lakehouse.sql.meanings import cast, meaning

Form = Callable[[Any], exp.Expr | None]
_AFTER_LIST = "after_list"
"""Marks sets that stood after a list, as in ``GROUP BY a GROUPING SETS (())``: of no rows they have no total at all."""


def said_by(name: str, *parts: str) -> Form:
    """The meaning of a name over the call's arguments, in the order of ``parts``."""
    return lambda node: meaning(name, *(node.args[part] for part in parts))


def _padded(node: exp.Pad) -> exp.Expr:
    fill = node.args.get("fill_pattern") or exp.Literal.string(" ")
    return meaning("lpad" if node.args.get("is_left") else "rpad", node.this, node.expression, fill)


def _grouped(node: exp.Group) -> exp.Expr | None:
    """``GROUP BY a, b WITH ROLLUP`` as ``GROUP BY ROLLUP (a, b)``; sets after a list say all by themselves."""
    if node.args.get("grouping_sets"):
        made = exp.Group(expressions=[one.copy() for one in node.args["grouping_sets"]])
        made.meta[_AFTER_LIST] = bool(node.expressions)
        return made
    for part, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if node.args.get(part):
            return exp.Group(expressions=[kind(expressions=[one.copy() for one in node.expressions])])
    return None


def _selected(select: exp.Select) -> None:
    """LATERAL VIEWs as joins, in place; and no row of totals where there is no row, which Spark does not give."""
    as_joins(select)
    group = select.args.get("group")
    if group is not None and (group.meta_get(_AFTER_LIST) or any(map(_has_totals, group.expressions))):
        some = exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Literal.number(0))
        having = select.args.get("having")
        select.set("having", exp.Having(this=some if having is None else exp.and_(having.this.copy(), some)))


def _has_totals(group: exp.Expr) -> bool:
    """Whether a group is of several sets. ``GROUPING SETS (())`` is of one, the sum of all rows: of none, too."""
    if isinstance(group, exp.GroupingSets) and len(group.expressions) == 1:
        return _has_totals(group.expressions[0])
    return isinstance(group, exp.Rollup | exp.Cube | exp.GroupingSets)


def _counted(node: exp.Count) -> exp.Expr | None:
    """``count(a, b)``: of rows in which none is null."""
    if not node.expressions:
        return None
    tests = [exp.Not(this=exp.Is(this=one.copy(), expression=exp.Null())) for one in (node.this, *node.expressions)]
    return exp.Count(this=exp.Case(ifs=[exp.If(this=exp.and_(*tests), true=exp.true())]), big_int=True)


def _pattern(node: exp.Expr) -> exp.Expr:
    return exp.Literal.string(pattern_of(node).re2)


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[one.copy() for one in arguments])


def _replaced(node: exp.RegexpReplace) -> exp.Expr:
    put_in, everywhere = exp.Literal.string(replacement_of(node)), exp.Literal.string("g")
    return _call("regexp_replace", node.this, _pattern(node), put_in, everywhere)


def _next_day(node: exp.NextDay) -> exp.Expr:
    day = cast(exp.Cast(this=node.this, to=exp.DataType.build("date")), "DATE")
    return meaning("nextday", day or node.this, exp.Literal.number(weekday_of(node)))


_TRIED: dict[type[exp.Expr], str] = {
    exp.SafeAdd: "tryadd",
    exp.SafeMultiply: "trymultiply",
    exp.SafeSubtract: "trysubtract",
}


def _tried(node: exp.Expr) -> exp.Expr:
    """A sum, difference or product that is null where it overflows; a whole number in the text is an INT or BIGINT."""
    return meaning(_TRIED[type(node)], *(_typed(node.args[part]) for part in ("this", "expression")))


def _typed(node: exp.Expr) -> exp.Expr:
    number = whole_number(node)
    if number is None or not -(1 << 31) <= number < 1 << 31:
        return node
    return exp.cast(node.copy(), exp.DType.INT, dialect="duckdb")


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
    exp.BitwiseLeftShift: said_by("shiftleft", "this", "expression"),
    exp.BitwiseRightShift: said_by("shiftright", "this", "expression"),
    exp.Factorial: said_by("factorial", "this"),
    exp.FromBase64: said_by("unbase64", "this"),
    exp.Hex: said_by("hex", "this"),
    exp.Levenshtein: said_by("levenshtein", "this", "expression"),
    exp.MapFromEntries: said_by("mapfromentries", "this"),
    exp.NextDay: _next_day,
    exp.RegexpExtractAll: lambda node: meaning("regexpextractall", node.this, _pattern(node), node.args["group"]),
    exp.RegexpInstr: lambda node: meaning("regexpinstr", node.this, _pattern(node)),
    **dict.fromkeys(_TRIED, _tried),
    exp.SHA: said_by("sha", "this"),
    exp.SHA2: said_by("sha2", "this"),
    exp.StrToUnix: said_by("unixtimestamp", "this"),
    exp.SubstringIndex: said_by("substringindex", "this", "delimiter", "count"),
    exp.ToBase64: said_by("base64", "this"),
    exp.Unhex: said_by("unhex", "this"),
    exp.BitLength: said_by("bits", "this"),
    exp.BitwiseCount: lambda node: type(node)(this=exp.cast(node.this.copy(), exp.DType.BIGINT, dialect="duckdb")),
    exp.Chr: lambda node: meaning("chr", *node.expressions),
    exp.Count: _counted,
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
    "array_repeat": lambda node: meaning("arrayrepeat", *node.expressions),
    "array_union": union_of,
    "arrays_overlap": lambda node: meaning("overlap", *node.expressions),
    "forall": lambda node: tested("alltrue", *node.expressions),
    "hypot": lambda node: meaning("hypot", *node.expressions),
    "json_array_length": lambda node: meaning("jsonarraylength", *node.expressions),
    **dict.fromkeys(("map_filter", "transform_keys", "transform_values"), over_entries),
    "octet_length": lambda node: meaning("octets", *node.expressions),
    "pmod": lambda node: meaning("pmod", *node.expressions),
    "raise_error": lambda node: _call("error", *node.expressions),
    "weekday": lambda node: meaning("weekday", *node.expressions),
}
"""The same of functions that the parser keeps by name."""
