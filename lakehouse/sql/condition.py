"""Conditions and expressions taken out of a statement, as text for `lakehouse.predicate`."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from lakehouse.errors import InvalidInput, InvalidStatement
from lakehouse.predicate.dialect import DIALECT
from lakehouse.predicate.parse import PARSER_ERRORS, parse_condition
from lakehouse.predicate.written import shown
from lakehouse.sql.normal import normalized

Rename = Callable[[exp.Column], tuple[str | None, str]]


def renamed(node: exp.Expr, rename: Rename) -> exp.Expr:
    """A copy in which each column has the prefix and name that ``rename`` gives it."""
    found = node.copy()
    for column in list(found.find_all(exp.Column)):
        if column.args.get("db") is not None:
            raise InvalidStatement("a column has one prefix at most here", found=shown(column))
        prefix, name = rename(column)
        column.set("table", None if prefix is None else exp.to_identifier(prefix))
        column.set("this", exp.to_identifier(name))
    return found


def written_again(node: exp.Expr) -> str:
    """An expression's text, every name quoted. Raises `InvalidInput` unless it is read back as the same tree."""
    node = normalized(exp.Paren(this=node.copy())).this
    for name in node.find_all(exp.Identifier):
        name.set("quoted", True)
    try:
        text = str(node.sql(dialect=DIALECT, comments=False))
        again = normalized(exp.Paren(this=parse_condition(text))).this
    except InvalidInput:
        raise
    except PARSER_ERRORS as error:
        raise InvalidStatement(
            "this expression cannot be used here; write it differently", found=shown(node)
        ) from error
    if again != node:
        raise InvalidStatement("this expression cannot be used here; write it differently", found=shown(node))
    return text
