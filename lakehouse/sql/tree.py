"""Changes of a statement's tree that cost what they touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

Node = TypeVar("Node", bound=exp.Expr)


def put(old: exp.Expr, new: Node) -> Node:
    """Put one node in another's place; a root has none.

    The parser's own ``replace`` numbers all neighbours again, so that a list of n takes n squared.
    """
    parent, key, index = old.parent, old.arg_key, old.index
    if parent is None or key is None or index is None:
        old.replace(new)
        return new
    above: exp.Expr | None = parent
    while above is not None and above._hash is not None:
        above._hash = None
        above = above.parent
    parent.args[key][index] = new
    new.parent, new.arg_key, new.index = parent, key, index
    old.parent = old.arg_key = old.index = None
    return new


def most_nested(tree: exp.Expr, is_counted: Callable[[exp.Expr], bool]) -> int:
    """How many nodes of a kind stand one in the other at most."""
    most, waiting = 0, [(tree, 0)]
    while waiting:
        node, count = waiting.pop()
        count += is_counted(node)
        most = max(most, count)
        waiting += [(child, count) for child in node.iter_expressions()]
    return most
