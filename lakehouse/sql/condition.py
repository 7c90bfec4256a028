"""Conditions and expressions taken out of a statement, as text for `lakehouse.predicate`."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from lakehouse.errors import InvalidInput, InvalidStatement
from lakehouse.predicate.dialect import DIALECT
from lakehouse.predicate.parsing import PARSER_ERRORS, parse_condition
from lakehouse.predicate.written import shown
from lakehouse.sql.normal import normalized
from lakehouse.sql.tree import copied, found_in

Rename = Callable[[exp.Column], tuple[str | None, str]]


def renamed(node: exp.Expr, rename: Rename) -> exp.Expr:
    """A copy in which each column has the prefix and name that ``rename`` gives it."""
    found = copied(node)
    for column in found_in(found, exp.Column):
        if column.args.get("db") is not None:
            raise InvalidStatement("a column has one prefix at most here", found=shown(column))
        prefix, name = rename(column)
        column.set("table", None if prefix is None else exp.to_identifier(prefix))
        column.set("this", exp.to_identifier(name))
    return found


def plain(node: exp.Expr) -> exp.Expr:
    """An expression in one form, every name quoted. The node is changed."""
    found = normalized(exp.Paren(this=node)).this
    for name in found_in(found, exp.Identifier):
        name.set("quoted", True)
    return found  # type: ignore[no-any-return]


def written_plainly(node: exp.Expr) -> str:
    """The text of an expression that `plain` gives. Raises `InvalidInput` for one that cannot be written."""
    try:
        return str(copied(node).sql(dialect=DIALECT, comments=False, copy=False))
    except PARSER_ERRORS as error:
        raise _unusable(node) from error


def written_again(node: exp.Expr) -> str:
    """An expression's text, every name quoted. Raises `InvalidInput` unless it is read back as the same tree."""
    node = plain(node)
    text = written_plainly(node)
    try:
        again = normalized(exp.Paren(this=parse_condition(text))).this
    except InvalidInput:
        raise
    except PARSER_ERRORS as error:
        raise _unusable(node) from error
    if again != node:
        raise _unusable(node)
    return text


def _unusable(node: exp.Expr) -> InvalidStatement:
    return InvalidStatement("this expression cannot be used here; write it differently", found=shown(node))
