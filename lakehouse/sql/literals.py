"""Numbers that stand in the text of a statement."""

from __future__ import annotations

from sqlglot import exp


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
