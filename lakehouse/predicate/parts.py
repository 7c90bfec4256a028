"""The closed list of what a filter may be made of: kinds of nodes, and the parts of each that the translation reads.

The parser may say something of a node in a part of its own: ``x NOT LIKE y`` is a ``Like`` whose ``negate`` is set. A
part that is set and that nobody reads would be left out silently, so it is refused, and a new version of the parser
adds no meaning by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from lakehouse.predicate.written import refused

_ONE = ("this",)
_BINARY = ("this", "expression")
READ: Mapping[type[exp.Expr], tuple[str, ...]] = {
    # Names and literals
    exp.Column: ("this", "table"),
    exp.Identifier: ("this",),
    exp.Literal: ("this", "is_string"),
    exp.RawString: _ONE,
    exp.HexString: _ONE,
    exp.Null: (),
    exp.Boolean: _ONE,
    exp.DataType: ("this", "expressions"),
    exp.DataTypeParam: _ONE,
    # Operators
    exp.Paren: _ONE,
    exp.And: _BINARY,
    exp.Or: _BINARY,
    exp.Not: _ONE,
    exp.Is: _BINARY,
    exp.In: ("this", "expressions"),
    exp.Between: ("this", "low", "high"),
    exp.Like: (*_BINARY, "negate"),
    exp.Escape: _BINARY,
    exp.EQ: _BINARY,
    exp.NEQ: _BINARY,
    exp.LT: _BINARY,
    exp.LTE: _BINARY,
    exp.GT: _BINARY,
    exp.GTE: _BINARY,
    exp.NullSafeEQ: _BINARY,
    exp.NullSafeNEQ: _BINARY,
    exp.Add: _BINARY,
    exp.Sub: _BINARY,
    exp.Mul: _BINARY,
    exp.Div: _BINARY,
    exp.Mod: _BINARY,
    exp.IntDiv: _BINARY,
    exp.Neg: _ONE,
    exp.DPipe: _BINARY,
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    # Functions
    exp.Anonymous: ("this", "expressions"),
    exp.Abs: _ONE,
    exp.Coalesce: ("this", "expressions"),
    exp.Contains: _BINARY,
    exp.Day: _ONE,
    exp.DayOfMonth: _ONE,
    exp.DayOfYear: _ONE,
    exp.EndsWith: _BINARY,
    exp.Hour: _ONE,
    exp.IsNan: _ONE,
    exp.Length: _ONE,
    exp.Minute: _ONE,
    exp.Month: _ONE,
    exp.Nullif: _BINARY,
    exp.Quarter: _ONE,
    exp.Second: _ONE,
    exp.StartsWith: _BINARY,
    exp.TsOrDsToDate: _ONE,
    exp.Year: _ONE,
}
"""By kind of node, the parts that decide what it is translated to."""
SAID: Mapping[type[exp.Expr], Mapping[str, object]] = {
    exp.Identifier: {"quoted": True},
    exp.Div: {"safe": True},
    exp.DPipe: {"safe": True},
    exp.TryCast: {"safe": True},
    exp.TsOrDsToDate: {"safe": True},
}
"""Parts that the parser sets in this one way for every query, or that change nothing: names match in any case, what is
cast cannot fail, and dividing by zero and joining null give null in any case."""


def check_parts(tree: exp.Expr) -> None:
    """Raise `InvalidInput`, naming the construct, unless every node of a filter and every set part is listed."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        read = READ.get(type(node))
        if read is None:
            raise refused(node)
        part = unread(node, read, SAID.get(type(node), {}))
        if part is not None:
            raise refused(node, part)
        waiting += node.iter_expressions()


def unread(node: exp.Expr, read: Collection[str], said: Mapping[str, object]) -> str | None:
    """A part of a node that is set, is not among those that are read and says something else than ``said``.

    >>> found = exp.Like(this=exp.column("x"), expression=exp.Literal.string("a%"), negate=True)
    >>> unread(found, ("this", "expression"), {}), unread(found, ("this", "expression", "negate"), {})
    ('negate', None)
    """
    for key, value in node.args.items():
        if key in read or value is None or value is False or value == [] or value == "":
            continue
        if key not in said or value is not said[key]:
            return key
    return None
