"""Arguments that a function takes in one form only: literals that bound what it makes, and lists of a fixed length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.written import shown

_MOST_PADDED = 10_000
_MOST_REPEATED = 1_000


def check_arguments(node: exp.Expr) -> None:
    """Raise `InvalidInput` unless the arguments of a call are of the form that is asked of it.

    >>> check_arguments(exp.Repeat(this=exp.column("s"), times=exp.Literal.number(3)))
    """
    check = _CHECKS.get(type(node))
    if check is not None:
        check(node)


def whole_number(node: exp.Expr | None) -> int | None:
    """The number that a literal says, with its sign; None for anything else.

    >>> whole_number(exp.Neg(this=exp.Literal.number(7)))
    -7
    """
    if isinstance(node, exp.Neg):
        found = whole_number(node.this)
        return None if found is None else -found
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal() and len(node.name) < 10:
        return int(node.name)
    return None


def at_most(part: str, most: int) -> Callable[[exp.Expr], None]:
    """A check that an argument is a whole number in the statement's text, and no more than ``most``."""

    def check(node: exp.Expr) -> None:
        found = whole_number(node.args.get(part))
        if found is None or found > most:
            raise InvalidStatement("say a whole number here, no column", found=shown(node), most=most)

    return check


def _check_within(node: exp.WithinGroup) -> None:
    if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) or len(node.expression.expressions) != 1:
        raise InvalidStatement("WITHIN GROUP (ORDER BY x) stands after percentile_cont and percentile_disc")


def _check_percentile(node: exp.Expr) -> None:
    if not isinstance(node.parent, exp.WithinGroup):
        raise InvalidStatement("write percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", found=shown(node))


def _check_ignoring(node: exp.IgnoreNulls) -> None:
    if not isinstance(node.parent, exp.Window):
        raise InvalidStatement("IGNORE NULLS stands in window functions", found=shown(node))


def _check_length(least: int, most: int) -> Callable[[exp.Expr], None]:
    def check(node: exp.Expr) -> None:
        if not least <= len(node.expressions) <= most:
            raise InvalidStatement("wrong number of arguments", found=shown(node))

    return check


def _check_given(*parts: str) -> Callable[[exp.Expr], None]:
    """A check of arguments that the parser lets a call leave out, and Spark does not."""

    def check(node: exp.Expr) -> None:
        if any(node.args.get(part) is None for part in parts):
            raise InvalidStatement("a function lacks an argument", found=shown(node))

    return check


def _check_separator(node: exp.GroupConcat) -> None:
    separator = node.args.get("separator")
    if separator is not None and not (isinstance(separator, exp.Literal) and separator.is_string):
        raise InvalidStatement("what stands between the texts is text in quotes", found=shown(node))


_CHECKS: dict[type[exp.Expr], Callable[[Any], None]] = {
    exp.Chr: _check_length(1, 1),
    exp.GroupConcat: _check_separator,
    exp.Grouping: _check_length(1, 1),
    exp.GroupingId: _check_length(1, 64),
    exp.IgnoreNulls: _check_ignoring,
    exp.Pad: at_most("expression", _MOST_PADDED),
    exp.Repeat: at_most("times", _MOST_REPEATED),
    exp.SplitPart: _check_given("delimiter", "part_index"),
    exp.Translate: _check_given("from_", "to"),
    exp.WithinGroup: _check_within,
    **dict.fromkeys((exp.PercentileCont, exp.PercentileDisc), _check_percentile),
}
