"""What filters and statements are written in: Spark's SQL, where the parser would misread a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from lakehouse.errors import EngineUnavailable

_MOST = {"CEIL": 2, "FLOOR": 2, "INITCAP": 1, "PERCENTILE": 2, "POSITION": 3}
"""Most arguments of functions that the parser reads in a way of their own."""


def _counted(read: Callable[[Any], Any], most: int) -> Callable[[Any], Any]:
    """A function's own way of being read, and an error where more arguments stand than it has places for."""

    def counted(parser: Any) -> Any:
        first, depth, commas = parser._index, 0, 0
        found = read(parser)
        for token in parser._tokens[first : parser._index]:
            depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
            commas += token.token_type is TokenType.COMMA and depth == 0
        if commas >= most:
            parser.raise_error(f"too many arguments, at most {most}")
        return found

    return counted


_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


class _SparkParser(SparkParser):
    """The parser's own passes over arguments that a function has no place for: ``date(a, b)`` is a cast of ``a``."""

    FUNCTION_PARSERS: ClassVar = {
        **SparkParser.FUNCTION_PARSERS,
        **{
            name: _counted(SparkParser.FUNCTION_PARSERS[name], most)
            for name, most in _MOST.items()
            if name in SparkParser.FUNCTION_PARSERS
        },
    }

    RANGE_PARSERS: ClassVar = {  # FOR follows the sums of a PIVOT, and no comprehension
        kind: read for kind, read in SparkParser.RANGE_PARSERS.items() if kind is not TokenType.FOR
    }

    PLACEHOLDER_PARSERS: ClassVar = {
        **SparkParser.PLACEHOLDER_PARSERS,
        # where it stands in the text, which the tree does not keep: values are given in that order
        TokenType.PLACEHOLDER: lambda parser: exp.Placeholder(this=str(parser._prev.start), jdbc=True),
    }

    def _parse_pivot_aggregation(self) -> exp.Expr | None:
        """A calculation with sums, as in ``max(x) + 1``, not a function alone."""
        return self._parse_alias(self._parse_disjunction())

    def _warn_unsupported(self) -> None:
        """Say nothing of a statement that the parser cannot read whole: it becomes a node that every list refuses."""

    def validate_expression(self, expression: Any, args: list[Any] | None = None) -> Any:
        for given in args or ():
            if not _is_said(given, expression):
                self.raise_error(f"an argument too many, or of the wrong kind, for {expression.key}")
        return super().validate_expression(expression, args)


def _is_said(given: Any, call: exp.Expr) -> bool:
    """Whether an argument is somewhere in the call, or is a word that the call says otherwise: a unit, a format."""
    match given:
        case exp.Boolean() | exp.Null():
            return True
        case exp.Literal() if given.is_string:
            return True
        case exp.Column() | exp.Var() if isinstance(call.args.get("unit"), exp.Var):
            return True
        case exp.Expr():
            node: exp.Expr | None = given
            while node is not None and node is not call:
                node = node.parent
            return node is call or _is_negated(given, call.args.get("expression"))
    return True


def _is_negated(given: exp.Expr, part: Any) -> bool:
    """Whether a part is the argument times minus one, as ``date_sub`` is read as ``date_add``."""
    return isinstance(part, exp.Mul) and part.this.unnest() == given.unnest()


class _SparkGenerator(SparkGenerator):
    """Types by their own names: the parser's own dialect writes TIMESTAMP for TIME and STRING for UUID."""

    TYPE_MAPPING: ClassVar = {
        kind: name
        for kind, name in SparkGenerator.TYPE_MAPPING.items()
        if kind not in (exp.DType.TIME, exp.DType.UUID, exp.DType.BIT)
    }


class _SparkText(Spark):
    """Spark 4 reads a doubled quote in a string as one quote; the parser's own dialect ends the string there."""

    Parser = _SparkParser
    Generator = _SparkGenerator

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']


def _dialect() -> Spark:
    """The dialect. Raises `EngineUnavailable` beside the parser's compiled build, whose classes have no subclasses."""
    made = _SparkText()
    try:
        made.parser()
    except TypeError as error:
        raise EngineUnavailable(
            "the compiled build of sqlglot is installed, whose parser cannot be extended; take it away: "
            "pip uninstall sqlglotc",
            cause=error,
        ) from error
    return made


DIALECT = _dialect()
"""What filters and statements are written in."""
