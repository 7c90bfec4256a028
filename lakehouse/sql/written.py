"""A checked query as the text of one engine, written anew from its tree: nothing of the user's text is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import ErrorLevel, Generator, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.generators.spark import SparkGenerator

from lakehouse.errors import InvalidInput, InvalidStatement, OnlySpark
from lakehouse.predicate.literals import text_term
from lakehouse.predicate.parsing import PARSER_ERRORS
from lakehouse.sql.forms import FORMS, NAMED_FORMS, Form
from lakehouse.sql.meanings import PREFIX, cast, meaning, text_of, written_out
from lakehouse.sql.recursion import STEPS
from lakehouse.sql.sources import side
from lakehouse.sql.tree import most_nested, nodes_of, put

_MOST_COPIED = 5
_SECONDS = ("SECOND", "SECONDS")
_COMPARING = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)
"""Where Spark would leave out row groups for -0.0 that hold 0.0, which equals it."""


def _within_group(writer: Generator, node: exp.WithinGroup) -> str:
    """A percentile as both engines have it; the parser's writers make others of it."""
    if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        return str(Generator.withingroup_sql(writer, node))
    item = node.expression.expressions[0]
    name = "percentile_cont" if isinstance(node.this, exp.PercentileCont) else "percentile_disc"
    order = f"{writer.sql(item.this)}{' DESC' if item.args.get('desc') else ''}"
    return f"{name}({writer.sql(node.this.this)}) WITHIN GROUP (ORDER BY {order})"


_TODAY: dict[type[exp.Expr], Callable[[Generator, exp.Expr], str]] = {exp.CurrentDate: lambda *_: "current_date()"}
"""Without brackets it would be a column of that name, if there is one: that of its own result, too."""


def _is_zero(node: exp.Expr) -> bool:
    literal = node.this if isinstance(node, exp.Cast) else node
    return isinstance(literal, exp.Literal) and not literal.is_string and not literal.name.strip("0.eE+-")


class _SparkGenerator(SparkGenerator):
    TRANSFORMS: ClassVar = {
        **SparkGenerator.TRANSFORMS,
        **_TODAY,
        exp.With: Generator.with_sql,
        exp.WithinGroup: _within_group,
    }

    def cte_sql(self, expression: exp.CTE) -> str:
        most = expression.meta_get(STEPS)
        limit = "" if most is None else f" MAX RECURSION LEVEL {most}"  # whatever the session's own limit is
        return f"{self.sql(expression, 'alias')}{limit} AS {self.wrap(expression)}"

    def lateral_sql(self, expression: exp.Lateral) -> str:
        alias = expression.args.get("alias")
        if alias is None or not expression.args.get("view"):
            return f"LATERAL {self.sql(expression, 'this')}{f' AS {self.sql(alias)}' if alias else ''}"
        columns = ", ".join(self.sql(one) for one in alias.args["columns"])
        outer = "OUTER " if expression.args.get("outer") else ""
        return f" LATERAL VIEW {outer}{self.sql(expression, 'this')} {self.sql(alias, 'this')} AS {columns}"

    def neg_sql(self, expression: exp.Neg) -> str:
        if isinstance(expression.parent, _COMPARING) and _is_zero(expression.this):
            return self.sql(expression.this)
        return str(super().neg_sql(expression))

    def literal_sql(self, expression: exp.Literal) -> str:
        return text_term(expression.name).spark if expression.is_string else str(expression.name)

    def identifier_sql(self, expression: exp.Identifier) -> str:
        if "${" in expression.name:  # Spark puts settings and the environment in place of it, even in quotes
            raise InvalidStatement("Spark cannot take this name", name=expression.name)
        return "`" + expression.name.replace("`", "``") + "`"


class _DuckDBGenerator(DuckDBGenerator):
    TRANSFORMS: ClassVar = {
        **DuckDBGenerator.TRANSFORMS,
        **_TODAY,
        exp.CurrentTimestamp: lambda *_: "now()",
        exp.WithinGroup: _within_group,
    }

    def literal_sql(self, expression: exp.Literal) -> str:
        return text_term(expression.name).duckdb if expression.is_string else str(expression.name)

    def _add_arrayagg_null_filter(self, array_agg_sql: str, array_agg_expr: exp.ArrayAgg, column_expr: exp.Expr) -> str:
        """Leave nulls out of a list; the parser's own writer does so where it sees a column, and sets no brackets."""
        if not array_agg_expr.args.get("nulls_excluded") or isinstance(array_agg_expr.parent, exp.Filter):
            return str(super()._add_arrayagg_null_filter(array_agg_sql, array_agg_expr, column_expr))
        values = column_expr.expressions if isinstance(column_expr, exp.Distinct) else [column_expr]
        tests = " AND ".join(f"({self.sql(one)}) IS NOT NULL" for one in values)
        return f"{array_agg_sql} FILTER(WHERE {tests})"

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        name, arguments = str(expression.this), expression.expressions
        if name.startswith(PREFIX):
            return written_out(name, arguments, [self.sql(one) for one in arguments])
        return str(super().anonymous_sql(expression))

    def identifier_sql(self, expression: exp.Identifier) -> str:
        return '"' + expression.name.replace('"', '""') + '"'


class _SparkText(Spark):
    Generator = _SparkGenerator


class _DuckDBText(DuckDB):
    Generator = _DuckDBGenerator


def write(tree: exp.Expr, engine: str) -> str:
    """The text of a query for ``spark`` or ``duckdb``. The tree is changed in place: it is not to be used again.

    Raises `InvalidInput` for what the engine has no words for.
    """
    dialect: Any = {"spark": _SparkText, "duckdb": _DuckDBText}[engine]()
    tree = tree if engine == "spark" else _for_duckdb(_named(tree))
    try:
        writer = dialect.generator(comments=False, identify=True, unsupported_level=ErrorLevel.RAISE)
        return str(writer.generate(tree, copy=False))
    except InvalidInput:
        raise
    except PARSER_ERRORS as error:
        raise InvalidStatement("the statement cannot be written for this engine", engine=engine, cause=error) from error


def _for_duckdb(tree: exp.Expr) -> exp.Expr:
    """What Spark means, in DuckDB's words, where the two differ and the parser's writer does not know it."""
    nodes = nodes_of(tree)
    if sum(map(_is_copied, nodes)) > _MOST_COPIED and most_nested(tree, _is_copied) > _MOST_COPIED:
        raise OnlySpark(
            'logarithms are nested too deeply; use sub-queries, or engine="spark"',
            most=_MOST_COPIED,
        )
    for node in reversed(nodes):  # children first: parents are replaced by copies
        form = NAMED_FORMS.get(str(node.this).lower()) if isinstance(node, exp.Anonymous) else _FORMS.get(type(node))
        by = form(node) if form is not None else None
        if by is not None:
            put(_whole(node) if type(node) in _EMPTY else node, by)
    return _sorted_whole(tree)


def _sorted_whole(tree: exp.Expr) -> exp.Expr:
    """Where a join fills its left side with nulls, have each ORDER BY begin with what DuckDB knows nothing of.

    For an ORDER BY with LIMIT, DuckDB 2.0.0 leaves rows of the left side unread that cannot be among the first by the
    first key: the rows of the right side that they would have met then appear as rows that met none. A LIMIT around
    such a query counts, too, and a caller that reads its first rows only.
    """
    nodes = nodes_of(tree)
    if not any(isinstance(one, exp.Join) and side(one) in ("RIGHT", "FULL") for one in nodes):
        return tree
    for node in reversed(nodes):
        order = node.args.get("order") if isinstance(node, exp.Query) else None
        if order is None:
            continue
        if not isinstance(node, exp.Select):  # which is ordered by its own columns alone
            over = exp.Select(expressions=[exp.Star()])
            for part in ("order", "limit", "offset"):
                over.set(part, node.args.get(part))
                node.set(part, None)
            put(node, over)
            name = exp.TableAlias(this=exp.to_identifier("lake_sorted", quoted=True))
            over.set("from_", exp.From(this=exp.Subquery(this=node, alias=name)))
            tree = over if node is tree else tree
        unknown = exp.LT(this=exp.Anonymous(this="random"), expression=exp.Literal.number(0))
        order.set("expressions", [exp.Ordered(this=unknown), *order.expressions])
    return tree


def _is_copied(node: exp.Expr) -> bool:
    """Whether what stands in a node is written several times."""
    return isinstance(node, exp.Ln | exp.Log)


def _of_positives(node: exp.Expr) -> exp.Expr:
    """A logarithm that is null, as in Spark, where there is none."""
    numbers = [one for one in (node.this, node.args.get("expression")) if one is not None]
    tests = [exp.GT(this=one.copy(), expression=exp.Literal.number(0)) for one in numbers]
    return exp.Case(ifs=[exp.If(this=exp.and_(*tests), true=node.copy())])


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _converted(node: exp.Cast) -> exp.Expr | None:
    """A conversion that DuckDB makes otherwise than Spark: of text, to text, and of fractions to whole numbers."""
    if isinstance(node.parent, exp.GenerateSeries):  # a date that `series` reads
        return None
    if node.to.this in (exp.DType.TEXT, exp.DType.VARCHAR):
        name = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
        text = exp.Literal.string(text_of(name))
        return exp.Anonymous(this=PREFIX + "text", expressions=[text, node.this.copy()])
    if _is_number(node.this) and (node.this.name.isdecimal() or node.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT)):
        return None
    if node.to.this is exp.DType.TIMESTAMP:  # what the parser says for to_timestamp, which minds the offset of a text
        node.set("to", exp.DataType.build("timestamptz"))
    return cast(node, str(node.to.sql(dialect=_DuckDBText)))


def _of_part(node: exp.Substring) -> exp.Expr | None:
    """A substring; None where it begins at a plain place, and has a plain length if any."""
    start, length = node.args.get("start"), node.args.get("length")
    if start is None or (_is_number(start) and start.name != "0" and (length is None or _is_number(length))):
        return None
    if length is None:
        return meaning("from", node.this, start)
    return meaning("part", node.this, start, length)


def _whole(aggregate: exp.Expr) -> exp.Expr:
    """An aggregate with its FILTER and OVER."""
    while isinstance(aggregate.parent, exp.Filter | exp.Window) and aggregate.arg_key == "this":
        aggregate = aggregate.parent
    return aggregate


def _or_empty(node: exp.Expr) -> exp.Expr:
    """What an aggregate of no rows gives in Spark, where DuckDB gives null."""
    return exp.Coalesce(this=_whole(node).copy(), expressions=[_EMPTY[type(node)].copy()])


def _like(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node.parent, exp.Escape):
        return None
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))


def _of_arguments(node: exp.Expr) -> exp.Expr:
    return meaning(node.key, *(node.args[part] for part in ("this", "expression") if node.args.get(part)))


def _as_date(node: exp.Expr) -> exp.Expr:
    return exp.cast(node.copy(), exp.DType.DATE, dialect="duckdb")


_EMPTY: dict[type[exp.Expr], exp.Expr] = {
    exp.CountIf: exp.Literal.number(0),
    exp.ArrayAgg: exp.Array(),
    exp.ArrayUniqueAgg: exp.Array(),
}
_FORMS: dict[type[exp.Expr], Form] = {
    **FORMS,
    **dict.fromkeys(_EMPTY, _or_empty),
    **dict.fromkeys((exp.Like, exp.ILike), _like),
    **dict.fromkeys((exp.Cast, exp.TryCast), _converted),
    **dict.fromkeys((exp.IntDiv, exp.ArrayContains, exp.ArrayDistinct, exp.Reverse, exp.Sign), _of_arguments),
    **dict.fromkeys((exp.Left, exp.Right), lambda node: None if _is_number(node.expression) else _of_arguments(node)),
    **dict.fromkeys((exp.Ln, exp.Log), _of_positives),
    **dict.fromkeys((exp.DateTrunc, exp.TsOrDsAdd, exp.AddMonths), _as_date),
    **dict.fromkeys(
        (exp.Ceil, exp.Floor),
        lambda node: None if node.args.get("decimals") else exp.cast(node.copy(), exp.DType.BIGINT, dialect="duckdb"),
    ),
    exp.ArgMax: lambda node: exp.Anonymous(this="arg_max_null", expressions=[node.this, node.expression]),
    exp.ArgMin: lambda node: exp.Anonymous(this="arg_min_null", expressions=[node.this, node.expression]),
    exp.DayOfWeek: lambda node: exp.Paren(this=exp.Add(this=node.copy(), expression=exp.Literal.number(1))),
    exp.Extract: lambda node: meaning("extract", node.expression) if node.name.upper() in _SECONDS else None,
    exp.IsNan: lambda node: exp.Coalesce(this=node.copy(), expressions=[exp.false()]),
    exp.Quantile: lambda node: exp.Anonymous(this="quantile_cont", expressions=[node.this, node.args["quantile"]]),
    exp.StrPosition: lambda node: (
        meaning("strposition", node.this, node.args["substr"], node.args["position"])
        if node.args.get("position")
        else None
    ),
    exp.Substring: _of_part,
    exp.TsOrDsToDate: lambda node: cast(exp.Cast(this=node.this, to=exp.DataType.build("date")), "DATE"),
}
"""What is written otherwise for DuckDB; nothing where a node may stay as it is."""


def _named(tree: exp.Expr) -> exp.Expr:
    """The query with a name for each column of its result that has none: its expression, as written."""
    first = tree
    while not isinstance(first, exp.Select) and isinstance(first.this, exp.Query):
        first = first.this
    for item in first.expressions if isinstance(first, exp.Select) else ():
        if not isinstance(item, exp.Alias | exp.Column | exp.Star):
            put(item, exp.alias_(item.copy(), item.sql(dialect=Spark, comments=False), quoted=True, copy=False))
    return tree
