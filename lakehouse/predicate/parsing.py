"""Parse a filter. Only what `translate` lists gets through; the text that engines see is written anew from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from lakehouse.arguments import refuse_surrogates
from lakehouse.core.interval import Interval
from lakehouse.core.predicate import Predicate
from lakehouse.errors import InvalidInput, InvalidPredicate
from lakehouse.predicate.bounds import time_bounds
from lakehouse.predicate.compare import typed
from lakehouse.predicate.dialect import DIALECT
from lakehouse.predicate.expressions import is_expression, written
from lakehouse.predicate.faults import fault
from lakehouse.predicate.parts import check_parts
from lakehouse.predicate.translate import Qualified, Translator
from lakehouse.predicate.written import too_deep
from lakehouse.remembered import Remembered

MAX_LENGTH = 1_000_000
"""Most characters of a filter."""
_SHORT = 4_096
"""Longer filters are not remembered."""
PARSER_ERRORS = (
    SqlglotError, ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""What the parser raises for text that is wrong: its own errors, and others where it did not foresee the text."""


@dataclass(frozen=True, slots=True)
class ParsedPredicate:
    """A filter that was checked.

    ``tree`` serves pruning: no row outside it passes. ``columns`` are those that it reads, in the table's order.
    """

    text: str
    tree: Predicate
    columns: tuple[str, ...]
    spark: str
    duckdb: str

    def interval(self, time: str) -> Interval | None:
        """The interval outside of which no row passes, by the table's time column; None if the filter bounds it not."""
        return time_bounds(self.tree, time)

    def sql(self, dialect: str) -> str:
        """The filter for one engine; both let the same rows through, whatever their session's settings."""
        return {"spark": self.spark, "duckdb": self.duckdb}[dialect]


_known: Remembered[tuple[str, pa.Schema], ParsedPredicate] = Remembered(256)
"""The same looks are taken again and again. Schemas compare by columns."""


def parse(where: Any, schema: pa.Schema, qualified: Qualified | None = None) -> ParsedPredicate:
    """Parse a filter in Spark's SQL over a table's columns, or an expression of pyarrow or polars.

    Times without an offset are UTC. ``qualified`` names tables whose columns may be written as in ``target.x``. Raises
    `InvalidInput`, saying what is not allowed, for anything but one boolean expression of listed operators and
    functions.

    >>> schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("client", pa.int64())])
    >>> found = parse("ts >= '2013-01-05' AND client IN (1, 2)", schema)
    >>> str(found.interval("ts")), found.columns
    ('2013-01-05/9999-12-31T23:59:59.999999', ('ts', 'client'))
    >>> parse("reflect('java.lang.System', 'exit')", schema)
    Traceback (most recent call last):
    lakehouse.errors.InvalidPredicate: not allowed in a filter; ...
    """
    if is_expression(where):
        where = written(where, schema)
    if not isinstance(where, str) or not where.strip():
        raise InvalidPredicate(
            'a filter is one condition in SQL, as in "client = 1", or an expression of pyarrow or polars',
            where=repr(where)[:200],
        )
    if len(where) > MAX_LENGTH:
        raise InvalidPredicate("the filter is too long", characters=len(where), most=MAX_LENGTH)
    known = _known.get((where, schema)) if qualified is None else None
    if known is not None:
        return known
    found = translated(parse_condition(where), where, schema, qualified)
    if qualified is None and len(where) <= _SHORT:
        _known.put((where, schema), found)
    return found


def translated(node: exp.Expr, where: str, schema: pa.Schema, qualified: Qualified | None = None) -> ParsedPredicate:
    """A filter from its tree; ``where`` is how it was written."""
    check_parts(node)
    translator = Translator(schema, qualified)
    try:
        term = translator.boolean(node)
    except RecursionError as error:
        raise too_deep(where=where[:200]) from error
    return ParsedPredicate(where, term.true, translator.read(), term.spark, term.duckdb)


@dataclass(frozen=True, slots=True)
class ParsedExpression:
    """A value that was checked, of a column's type. ``columns`` are those that it reads, in the table's order."""

    text: str
    columns: tuple[str, ...]
    spark: str
    duckdb: str

    def sql(self, dialect: str) -> str:
        """The value for one engine."""
        return {"spark": self.spark, "duckdb": self.duckdb}[dialect]


def parse_expression(
    text: Any, schema: pa.Schema, target: pa.Field, qualified: Qualified | None = None
) -> ParsedExpression:
    """Parse what a column is to become, in Spark's SQL over a table's columns.

    What a filter may say, this may: literals, columns, arithmetic, CASE and the listed functions. Raises `InvalidInput`
    for anything else, and for a value of a kind that the column does not store.

    >>> schema = pa.schema([("client", pa.int64()), ("name", pa.string())])
    >>> parse_expression("client + 1", schema, schema.field("client")).duckdb
    '("client" + CAST(1 AS BIGINT))'
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidPredicate(
            'a value is one expression in SQL, as in "value + 1"', column=target.name, found=repr(text)[:200]
        )
    node = parse_condition(text)
    check_parts(node)
    translator = Translator(schema, qualified)
    try:
        found = translator.value(node)
        term = typed(found, target.type)
    except RecursionError as error:
        raise too_deep(column=target.name) from error
    return ParsedExpression(text, translator.read(), term.spark, term.duckdb)


def equal_columns(on: str) -> Iterator[tuple[str, str]]:
    """Columns of ``target`` and ``source`` that a condition, which was checked, says are equal.

    >>> list(equal_columns("target.k = source.id AND source.v > 1"))
    [('k', 'id')]
    """
    for part in _conjuncts(on):
        match part.unnest():
            case exp.EQ(this=exp.Column() as one, expression=exp.Column() as other):
                sides = {one.table.casefold(): one.name, other.table.casefold(): other.name}
                if sides.keys() == {"target", "source"}:
                    yield sides["target"], sides["source"]


def equates_columns(on: str) -> bool:
    """Whether such a condition says nothing but that columns are equal.

    >>> equates_columns("target.k = source.id"), equates_columns("target.k = source.id AND source.v > 1")
    (True, False)
    """
    return len(list(equal_columns(on))) == len(_conjuncts(on))


def _conjuncts(on: str) -> list[exp.Expr]:
    node = parse_condition(on)
    return list(node.flatten()) if isinstance(node, exp.And) else [node]


def parse_condition(where: str) -> exp.Expr:
    """The tree of one expression, whatever it holds. Raises `InvalidInput` for anything else."""
    refuse_surrogates(where, "the condition")
    try:
        tokens = DIALECT.tokenize(where)
        if any(token.token_type is TokenType.SEMICOLON or token.comments for token in tokens):
            raise InvalidPredicate("a filter is one condition, without semicolons and comments", where=where[:200])
        statements = DIALECT.parser().parse(tokens, where)
    except InvalidInput:
        raise
    except RecursionError as error:
        raise too_deep(where=where[:200]) from error
    except PARSER_ERRORS as error:
        raise InvalidPredicate("not a condition in SQL", where=where[:200], **fault(error)) from error
    if len(statements) != 1 or statements[0] is None:
        raise InvalidPredicate("a filter is one condition", where=where[:200])
    return statements[0]
