"""A checked query as the text of one engine, written anew from its tree: nothing of the user's text is copied."""

from __future__ import annotations

from typing import Any

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.generators.spark import SparkGenerator

from lakehouse.errors import InvalidInput
from lakehouse.predicate.literals import text_term
from lakehouse.predicate.parse import PARSER_ERRORS
from lakehouse.sql.tree import most_nested, put

_MOST_COPIED = 5
_WHOLE = frozenset({exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT})


class _SparkGenerator(SparkGenerator):
    def literal_sql(self, expression: exp.Literal) -> str:
        return text_term(expression.name).spark if expression.is_string else str(expression.name)

    def identifier_sql(self, expression: exp.Identifier) -> str:
        if "${" in expression.name:  # Spark puts settings and the environment in place of it, even in quotes
            raise InvalidInput("Spark cannot take this name", name=expression.name)
        return "`" + expression.name.replace("`", "``") + "`"


class _DuckDBGenerator(DuckDBGenerator):
    def literal_sql(self, expression: exp.Literal) -> str:
        return text_term(expression.name).duckdb if expression.is_string else str(expression.name)

    def identifier_sql(self, expression: exp.Identifier) -> str:
        return '"' + expression.name.replace('"', '""') + '"'


class _SparkText(Spark):
    Generator = _SparkGenerator


class _DuckDBText(DuckDB):
    Generator = _DuckDBGenerator


def write(tree: exp.Expr, engine: str) -> str:
    """The text of a query for ``spark`` or ``duckdb``. Raises `InvalidInput` for what the engine has no words for."""
    dialect: Any = {"spark": _SparkText, "duckdb": _DuckDBText}[engine]
    tree = tree.copy() if engine == "spark" else _for_duckdb(_named(tree.copy()))
    try:
        return str(tree.sql(dialect=dialect, comments=False, identify=True, unsupported_level=ErrorLevel.RAISE))
    except InvalidInput:
        raise
    except PARSER_ERRORS as error:
        raise InvalidInput("the statement cannot be written for this engine", engine=engine, cause=error) from error


def _for_duckdb(tree: exp.Expr) -> exp.Expr:
    """What Spark means, in DuckDB's words, where the two differ and the parser's writer does not know it."""
    if most_nested(tree, _is_copied) > _MOST_COPIED:
        raise InvalidInput(
            'conversions to whole numbers and logarithms are nested too deeply; use sub-queries, or engine="spark"',
            most=_MOST_COPIED,
        )
    for node in reversed(list(tree.walk(bfs=False))):  # children first: parents are replaced by copies
        match node:
            case exp.Like() | exp.ILike() if not isinstance(node.parent, exp.Escape):
                put(node, exp.Escape(this=node.copy(), expression=exp.Literal.string("\\")))
            case exp.Cast() if node.to.this in _WHOLE and not _is_whole(node.this):
                put(node, _truncated(node))
            case exp.Ln() | exp.Log():
                put(node, _of_positives(node))
            case exp.IsNan():
                put(node, exp.Coalesce(this=node.copy(), expressions=[exp.false()]))
            case exp.TsOrDsToDate():
                put(node, exp.cast(node.this.copy(), exp.DType.DATE, dialect="duckdb"))
            case exp.DayOfWeek():
                put(node, exp.Paren(this=exp.Add(this=node.copy(), expression=exp.Literal.number(1))))
            case exp.DateTrunc() | exp.TsOrDsAdd() | exp.AddMonths():
                put(node, exp.cast(node.copy(), exp.DType.DATE, dialect="duckdb"))
            case exp.Quantile():
                put(node, exp.Anonymous(this="quantile_cont", expressions=[node.this, node.args["quantile"]]))
    return tree


def _is_copied(node: exp.Expr) -> bool:
    """Whether what stands in a node is written several times."""
    return isinstance(node, exp.Ln | exp.Log) or (
        isinstance(node, exp.Cast) and node.to.this in _WHOLE and not _is_whole(node.this)
    )


def _of_positives(node: exp.Expr) -> exp.Expr:
    """A logarithm that is null, as in Spark, where there is none."""
    numbers = [one for one in (node.this, node.args.get("expression")) if one is not None]
    tests = [exp.GT(this=one.copy(), expression=exp.Literal.number(0)) for one in numbers]
    return exp.Case(ifs=[exp.If(this=exp.and_(*tests), true=node.copy())])


def _is_whole(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and (node.is_string or node.name.isdecimal())


def _truncated(cast: exp.Cast) -> exp.Expr:
    """A conversion to an integer that cuts fractions off, where DuckDB would round. DuckDB alone knows the type."""
    kind = exp.Anonymous(this="typeof", expressions=[cast.this.copy()])
    floating = exp.In(this=kind, expressions=[exp.Literal.string("DOUBLE"), exp.Literal.string("FLOAT")])
    decimal = exp.StartsWith(this=kind.copy(), expression=exp.Literal.string("DECIMAL"))
    return exp.Case(
        ifs=[
            exp.If(this=floating, true=_cut(cast, "DOUBLE")),
            exp.If(this=decimal, true=_cut(cast, "DECIMAL(38, 10)")),
        ],
        default=cast.copy(),
    )


def _cut(cast: exp.Cast, through: str) -> exp.Expr:
    number = exp.TryCast(this=cast.this.copy(), to=exp.DataType.build(through))
    return exp.Cast(this=exp.Anonymous(this="trunc", expressions=[number]), to=cast.to.copy())


def _named(tree: exp.Expr) -> exp.Expr:
    """The query with a name for each column of its result that has none: its expression, as written."""
    first = tree
    while not isinstance(first, exp.Select) and isinstance(first.this, exp.Query):
        first = first.this
    for item in first.expressions if isinstance(first, exp.Select) else ():
        if not isinstance(item, exp.Alias | exp.Column | exp.Star):
            put(item, exp.alias_(item.copy(), item.sql(dialect=Spark, comments=False), quoted=True, copy=False))
    return tree
