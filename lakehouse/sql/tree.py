"""Walks, copies and changes of a statement's tree that cost what they touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlglot import exp

from lakehouse.errors import InvalidStatement

Node = TypeVar("Node", bound=exp.Expr)
_POSITIONS = frozenset({"line", "col", "start", "end"})
"""What the parser notes of a name's place in the text: nobody asks for it once there is a tree."""


def too_deep(**facts: Any) -> InvalidStatement:
    """The error for a statement that is nested more deeply than can be read."""
    return InvalidStatement(
        "the statement is nested too deeply; take parentheses away, or name inner queries by WITH", **facts
    )


def copied(tree: Node) -> Node:
    """A copy, without comments and places in the text: those are most of what the parser's own ``copy`` copies.

    >>> copied(exp.column("a", table="t")) == exp.column("a", table="t")
    True
    """
    made = type(tree)()
    waiting: list[tuple[exp.Expr, exp.Expr]] = [(tree, made)]
    while waiting:
        node, copy = waiting.pop()
        if node._meta:
            copy._meta = {key: value for key, value in node._meta.items() if key not in _POSITIONS} or None
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                held = copy.args[key] = type(value)()
                held.parent, held.arg_key = copy, key
                waiting.append((value, held))
            elif type(value) is list:
                copy.args[key] = [_begun(one, copy, key, place, waiting) for place, one in enumerate(value)]
            else:
                copy.args[key] = value
    return made


def _begun(value: object, parent: exp.Expr, key: str, place: int, waiting: list[tuple[exp.Expr, exp.Expr]]) -> object:
    """A member of a list: a node's copy, yet to be filled, or the value itself."""
    if not isinstance(value, exp.Expr):
        return value
    held = type(value)()
    held.parent, held.arg_key, held.index = parent, key, place
    waiting.append((value, held))
    return held


def nodes_of(tree: exp.Expr) -> list[exp.Expr]:
    """A node and all below it, each before what is below it, in the order of the text.

    >>> [node.key for node in nodes_of(exp.column("a", table="t"))]
    ['column', 'identifier', 'identifier']
    """
    found: list[exp.Expr] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        first = len(waiting)
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                waiting.append(value)
            elif type(value) is list:
                waiting += [one for one in value if isinstance(one, exp.Expr)]
        if len(waiting) - first > 1:
            waiting[first:] = reversed(waiting[first:])
    return found


def found_in(tree: exp.Expr, *kinds: type[Node]) -> list[Node]:
    """The nodes of some kinds in a tree, in the order of `nodes_of`."""
    return [node for node in nodes_of(tree) if isinstance(node, kinds)]


def named(value: exp.Expr, name: str) -> exp.Alias:
    """A value under a quoted name.

    >>> named(exp.column("a"), "b").sql()
    'a AS "b"'
    """
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


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
