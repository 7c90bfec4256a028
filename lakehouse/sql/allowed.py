"""The closed list of what a query may be made of: kinds of nodes with their parts, and functions.

What is not listed is refused, so that a new version of the parser adds nothing by itself. Left out on purpose: all that
calls code or reaches files, the network, the session or its settings; chance; functions that make much out of little,
but where a number in the statement says how much (`lakehouse.sql.arguments`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from lakehouse.arguments import nearest
from lakehouse.errors import InvalidInput, InvalidStatement, OnlySpark
from lakehouse.predicate.parts import unread
from lakehouse.predicate.written import shown
from lakehouse.sql.arguments import check_arguments, check_count, is_apart
from lakehouse.sql.byname import is_all
from lakehouse.sql.functions import FUNCTIONS, NAMED, NAMES, SPARK_ONLY, SPARK_ONLY_NAMED
from lakehouse.sql.generators import check_generator, check_lateral
from lakehouse.sql.literals import whole_number
from lakehouse.sql.pivots import check_pivot
from lakehouse.sql.ranges import bounds_of, is_range
from lakehouse.sql.samples import check_sample
from lakehouse.sql.tree import too_deep

_MAX_DEPTH = 200
_BINARY = ("this", "expression")
_SET = ("this", "expression", "distinct", "with_", "order", "limit", "offset")
NODES: dict[type[exp.Expr], tuple[str, ...]] = {
    # Queries
    exp.Select: (
        "with_", "expressions", "distinct", "from_", "joins", "laterals", "where", "group", "having", "qualify",
        "windows", "order", "limit", "offset",
    ),
    exp.Union: (*_SET, "by_name"),
    exp.Intersect: _SET,
    exp.Except: _SET,
    exp.Subquery: ("this", "alias", "with_", "order", "limit", "offset", "pivots"),
    exp.With: ("expressions", "recursive"),
    exp.CTE: ("this", "alias"),
    exp.Distinct: ("expressions",),
    exp.From: ("this",),
    exp.Join: ("this", "method", "side", "kind", "on", "using"),
    exp.Lateral: ("this", "view", "outer", "alias"),
    exp.Table: ("this", "db", "catalog", "alias", "version", "sample", "pivots"),
    exp.TableSample: ("percent", "size", "seed"),
    exp.Pivot: (
        "expressions", "fields", "unpivot", "include_nulls", "alias", "columns", "identify_pivot_strings",
        "prefixed_pivot_columns", "pivot_column_naming", "value_columns_first",
    ),
    exp.PivotAlias: ("this", "alias"),
    exp.TableAlias: ("this", "columns"),
    exp.Version: ("this", "expression", "kind"),
    exp.Values: ("expressions", "alias", "pivots"),
    exp.Where: ("this",),
    exp.Group: ("expressions", "all", "rollup", "cube", "grouping_sets"),
    exp.Rollup: ("expressions",),
    exp.Cube: ("expressions",),
    exp.GroupingSets: ("expressions",),
    exp.Having: ("this",),
    exp.Qualify: ("this",),
    exp.Order: ("this", "expressions"),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression",),
    exp.Offset: ("expression",),
    exp.Window: ("this", "partition_by", "order", "spec", "over", "alias"),
    exp.WindowSpec: ("kind", "start", "start_side", "end", "end_side"),
    exp.Filter: _BINARY,
    exp.IgnoreNulls: ("this",),
    exp.WithinGroup: _BINARY,
    # Names and literals
    exp.Star: ("except_",),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Dot: _BINARY,
    exp.Identifier: ("this", "quoted"),
    exp.Alias: ("this", "alias"),
    exp.Aliases: ("this", "expressions"),
    exp.Literal: ("this", "is_string"),
    exp.RawString: ("this",),
    exp.HexString: ("this",),
    exp.Null: (),
    exp.Boolean: ("this",),
    exp.Interval: ("this", "unit"),
    exp.IntervalSpan: _BINARY,
    exp.Var: ("this",),
    exp.DataType: ("this", "expressions", "nested"),
    exp.DataTypeParam: ("this",),
    exp.JSONPath: ("expressions",),
    exp.JSONPathRoot: (),
    exp.JSONPathKey: ("this",),
    exp.JSONPathSubscript: ("this",),
    # Operators
    exp.Paren: ("this",),
    exp.Tuple: ("expressions",),
    exp.Bracket: ("this", "expressions", "offset", "safe"),
    exp.And: _BINARY,
    exp.Or: _BINARY,
    exp.Not: ("this",),
    exp.Is: _BINARY,
    exp.In: ("this", "expressions", "query"),
    exp.Exists: _BINARY,
    exp.Lambda: ("this", "expressions"),
    exp.Between: ("this", "low", "high"),
    exp.Like: (*_BINARY, "negate"),
    exp.ILike: (*_BINARY, "negate"),
    exp.Escape: _BINARY,
    exp.EQ: _BINARY,
    exp.NEQ: _BINARY,
    exp.LT: _BINARY,
    exp.LTE: _BINARY,
    exp.GT: _BINARY,
    exp.GTE: _BINARY,
    exp.NullSafeEQ: _BINARY,
    exp.NullSafeNEQ: _BINARY,
    exp.Add: _BINARY,
    exp.Sub: _BINARY,
    exp.Mul: _BINARY,
    exp.Div: (*_BINARY, "typed", "safe"),
    exp.IntDiv: _BINARY,
    exp.Mod: _BINARY,
    exp.Neg: ("this",),
    exp.DPipe: (*_BINARY, "safe"),
    exp.BitwiseAnd: _BINARY,
    exp.BitwiseOr: _BINARY,
    exp.BitwiseXor: _BINARY,
    exp.BitwiseNot: ("this",),
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to", "safe", "requires_string"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
}  # fmt: skip
"""Kinds of nodes, and the parts that each may have."""
TYPES = frozenset({
    exp.DType.BOOLEAN, exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.FLOAT,
    exp.DType.DOUBLE, exp.DType.DECIMAL, exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.BINARY, exp.DType.DATE,
    exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ,
})  # fmt: skip
_UNITS = re.compile(
    r"(?:MICROSECOND|MILLISECOND|SECOND|MINUTE|HOUR|DAY|DOY|WEEK|MONTH|QUARTER|YEAR)S?|MON|MM|DD|YY|YYYY",
    re.IGNORECASE,
)
_LISTED = (exp.Values, exp.GroupingSets, exp.Rollup, exp.Cube)
_IN_PIVOT = (exp.In, exp.Pivot, exp.PivotAlias)
_JOINS = frozenset({"", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"})
_CHAINS = (exp.And, exp.Or, exp.Add, exp.Sub, exp.Mul, exp.DPipe, exp.Union)
_FORMATS: tuple[type[exp.Expr], ...] = (exp.StrToUnix, exp.TimeToStr, exp.TsOrDsToDate, exp.UnixToStr)
_DEFAULT_TIME = "%Y-%mstrict-%dstrict %Hstrict:%Mstrict:%Sstrict"
"""What the parser says for the format of a time that Spark reads where none is given."""
_PLAIN = re.compile(r"[0-9 :.+-]+")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"[0-9A-Fa-f]*")
_WORDS = re.compile(r"[A-Za-z_ ]*")
_QUOTED = (exp.Identifier, exp.Literal, exp.RawString, exp.HexString, exp.Var, exp.Anonymous, exp.JSONPathKey)
"""Nodes whose text is written in quotes, or checked by itself."""
_TRUNCATED = re.compile("WEEK|MON|MONTH|MM|QUARTER|YEAR|YY|YYYY", re.IGNORECASE)
_WRITTEN = re.compile("|".join(sorted(map(re.escape, set(Spark.TIME_MAPPING.values())), key=len, reverse=True)))
"""What the parser makes of the letters of a format. A % that it leaves was in the text, and means more to DuckDB."""
_LETTER = re.compile("[A-Za-z]")
_FORMAT = re.compile(r"[A-Za-z0-9 :/.,_-]*")


def check_allowed(tree: exp.Expr, engine: str) -> None:
    """Raise `InvalidInput`, naming the construct, unless every node of a query is on the list for this engine."""
    waiting: list[tuple[exp.Expr, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise too_deep(most=_MAX_DEPTH)
        _check_node(node, engine)
        for child in node.iter_expressions():
            chained = type(child) is type(node) and isinstance(node, _CHAINS)
            waiting.append((child, depth if chained else depth + 1))


def _check_node(node: exp.Expr, engine: str) -> None:
    kind = type(node)
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in NAMED:
        parts: tuple[str, ...] = ("this", "expressions")
        check_count(node)
    elif isinstance(node.parent, exp.Table) and is_range(node.parent) and node.arg_key == "this":
        parts = ("this", "expressions")
        bounds_of(node.parent)
    elif kind in NODES or kind in FUNCTIONS:
        parts = NODES[kind] if kind in NODES else FUNCTIONS[kind]
    else:
        raise refused(node)
    check_parts(node, parts)
    if isinstance(node, exp.Func) and node.error_messages():  # the parser looks at the outermost call only
        raise InvalidStatement("a function lacks an argument", found=shown(node))
    if engine == "duckdb" and (kind in SPARK_ONLY or _has_spark_form(node)):
        raise OnlySpark('only Spark calculates this as Spark does; use engine="spark"', found=shown(node))
    _check_words(node)
    _check_place(node)
    check_arguments(node)


def check_parts(node: exp.Expr, parts: Sequence[str]) -> None:
    """Raise `InvalidInput` for a node that says something in a part that is not listed."""
    part = unread(node, parts, {})
    if part is not None:
        raise refused(node, part.rstrip("_"))


def _has_spark_form(node: exp.Expr) -> bool:
    """Whether a function stands with an argument that makes it Spark's own: a unit, or a format to read by."""
    match node:
        case exp.DateDiff():
            return node.args.get("unit") is not None
        case exp.TsOrDsToDate():
            return node.args.get("format") is not None
        case exp.DateTrunc():
            return not _TRUNCATED.fullmatch(node.args["unit"].name)
        case exp.TimeToStr() | exp.UnixToStr():
            return bool(_LETTER.search(_WRITTEN.sub("", node.args["format"].name if node.args.get("format") else "")))
        case exp.Anonymous():
            return str(node.this).lower() in SPARK_ONLY_NAMED
        case exp.SHA2():
            return whole_number(node.args.get("length")) not in (0, 256)
        case exp.StrToUnix():
            return node.args.get("format") is not None and node.args["format"].name != _DEFAULT_TIME
        case exp.SubstringIndex():
            return not is_apart(node.args["delimiter"])
        case exp.ApproxDistinct():
            return node.args.get("accuracy") is not None
    return False


def _check_words(node: exp.Expr) -> None:
    """Parts that the parser keeps as bare text."""
    if not isinstance(node, _QUOTED) and not all(
        _WORDS.fullmatch(value) for value in node.args.values() if isinstance(value, str)
    ):
        raise refused(node)
    match node:
        case exp.Literal() if not node.is_string and not _NUMBER.fullmatch(node.name):
            raise refused(node)
        case exp.HexString() if not _DIGITS.fullmatch(node.name):
            raise refused(node)
        case exp.Var() if not _UNITS.fullmatch(node.name) and not is_all(node):
            raise refused(node, node.name[:100])
        case exp.Interval() if not isinstance(node.this, exp.Literal) or not _PLAIN.fullmatch(node.this.name):
            raise InvalidStatement("an interval is a number with a unit, as in INTERVAL '2' HOUR", found=shown(node))
        case exp.Interval() if not isinstance(node.args.get("unit"), exp.Var | exp.IntervalSpan):
            raise InvalidStatement("an interval needs a unit, as in INTERVAL '2' HOUR", found=shown(node))
        case exp.Join() if node.args.get("method") and (
            str(node.args["method"]).upper() != "NATURAL" or node.args.get("on") or node.args.get("using")
        ):
            raise refused(node, str(node.args["method"])[:100])
        case exp.Join() if str(node.args.get("kind") or "").upper() not in _JOINS:
            raise refused(node, str(node.args["kind"])[:100])
    if isinstance(node, _FORMATS) and node.args.get("format") is not None:
        written = node.args["format"]
        if not isinstance(written, exp.Literal) or not _FORMAT.fullmatch(_WRITTEN.sub("", written.name)):
            raise InvalidStatement("a format is text in quotes, of letters, digits, blanks and : / . , - _")


def _check_place(node: exp.Expr) -> None:
    """Nodes that are allowed in some places only."""
    match node:
        case exp.Dot() if not isinstance(node.expression, exp.Identifier):
            raise refused(node)
        case exp.DataType() if node.this not in TYPES:
            raise InvalidStatement("a query casts to simple types only", found=str(node.this))
        case exp.Star() if not _is_listed(node):
            raise InvalidStatement("a * stands in the list after SELECT, or in count(*)")
        case exp.Tuple() if not isinstance(node.parent, _LISTED) and not _is_compared(node) and not _is_in_pivot(node):
            raise InvalidStatement("a list in parentheses stands after VALUES or IN, or beside =, <> or IN and another")
        case exp.Order() if node.this is not None and not isinstance(node.parent, exp.GroupConcat):
            raise refused(node)
        case exp.Aliases() if not isinstance(node.this, exp.Explode | exp.Inline):
            raise refused(node)
        case exp.PivotAlias() if node.find_ancestor(exp.Pivot) is None:
            raise refused(node)
    _check_made(node)


def _check_made(node: exp.Expr) -> None:
    """What makes rows of others, or columns: where it stands, and how."""
    match node:
        case exp.Table() if not isinstance(node.this, exp.Identifier):
            if not isinstance(node.this, exp.Explode | exp.Inline) and not is_range(node):
                raise InvalidStatement(
                    "this table function is not allowed; name a table of the lake, or use range, explode or inline",
                    found=shown(node.this),
                )
            if len(node.parts) > 1 or node.args.get("version"):
                raise InvalidStatement("a function has no prefix and no version", found=shown(node.this))
        case exp.Explode() | exp.Inline():
            check_generator(node)
        case exp.Lateral():
            check_lateral(node)
        case exp.Pivot():
            check_pivot(node)
        case exp.TableSample():
            check_sample(node)


def _is_compared(row: exp.Tuple) -> bool:
    """Whether a row of values stands beside ``=``, ``<>`` or IN with rows of as many values, or a query."""
    place = row.parent
    match place:
        case exp.EQ() | exp.NEQ():
            beside = [place.this, place.expression]
        case exp.In() if isinstance(place.this, exp.Tuple):
            beside = [place.this, *place.expressions]
        case _:
            return False
    return all(isinstance(one, exp.Tuple) and len(one.expressions) == len(row.expressions) > 1 for one in beside)


def _is_in_pivot(row: exp.Tuple) -> bool:
    """Whether a row stands where PIVOT and UNPIVOT have columns and values of several."""
    place = row.parent
    while isinstance(place, _IN_PIVOT) and not isinstance(place, exp.Pivot):
        place = place.parent
    return isinstance(place, exp.Pivot)


def _is_listed(star: exp.Expr) -> bool:
    """Whether a star is an item of a SELECT list, with a prefix or without, or the whole argument of a count."""
    item = star.parent if isinstance(star.parent, exp.Column) else star
    return isinstance(item.parent, exp.Select) or (isinstance(star.parent, exp.Count) and star.arg_key == "this")


def refused(node: exp.Expr, part: str = "") -> InvalidInput:
    """The error for a construct that is not on the list."""
    found = f"{shown(node)} {part}".strip()
    if isinstance(node, exp.Func):
        close = nearest(shown(node).removesuffix("()"), NAMES.split())
        return InvalidStatement("this function is not allowed", found=found, **close, functions=NAMES)
    return InvalidStatement(
        "not allowed in a statement; use SELECT with joins, WITH, sub-queries, set operations and window functions",
        found=found,
    )
