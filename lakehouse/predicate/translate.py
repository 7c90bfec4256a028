"""Translate a parsed filter, node by node, of which `lakehouse.predicate.parts` let every part through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.arguments import unknown_column
from lakehouse.core.column import is_uuid_column
from lakehouse.core.predicate import Compare, Operator
from lakehouse.core.spec import SIDES
from lakehouse.errors import InvalidPredicate
from lakehouse.predicate import functions as allowed
from lakehouse.predicate.compare import compare, natural, null_safe, one_of
from lakehouse.predicate.term import (
    ALWAYS,
    NEVER,
    Literal,
    Term,
    condition,
    conjunction,
    disjunction,
    is_null,
    negation,
    same,
)
from lakehouse.predicate.written import (
    beyond,
    hexadecimal,
    no_column,
    number,
    refused,
    shown,
    too_deep,
    typed_literal,
)

Qualified = Mapping[str, pa.Schema]
"""Tables by the name that columns of theirs are written with, in lower case."""
_MAX_DEPTH = 100
_MAX_TEXT = 10_000_000
_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.DayOfYear: "dayofyear",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
_TEXT_TESTS: dict[type[exp.Expr], str] = {
    exp.StartsWith: "startswith",
    exp.EndsWith: "endswith",
    exp.Contains: "contains",
}


class Translator:
    """Walks a parsed filter down to its columns and literals; every kind of node that it does not know is refused."""

    def __init__(self, schema: pa.Schema, qualified: Qualified | None = None) -> None:
        self._schema = schema
        self._qualified = qualified or {}
        self._folded: dict[str, str] = {name.casefold(): name for name in schema.names}
        self._read: set[str] = set()
        self._depth = 0

    def read(self) -> tuple[str, ...]:
        """The columns met so far, in the table's order."""
        return tuple(name for name in self._schema.names if name in self._read)

    def boolean(self, node: exp.Expr) -> Term:
        """The condition that a node is; NULL is one that no row passes."""
        found = self.value(node)
        if isinstance(found, Literal) and found.value is None:
            return same("CAST(NULL AS BOOLEAN)", NEVER, NEVER)
        if isinstance(found, Literal) or not pa.types.is_boolean(found.type):
            raise InvalidPredicate("a filter needs a condition that is true or false", found=shown(node))
        return found

    def term(self, node: exp.Expr | None) -> Term:
        """A node's term, a literal by itself."""
        found = self.value(node)
        return natural(found) if isinstance(found, Literal) else found

    def value(self, node: exp.Expr | None) -> Term | Literal:
        """The term or literal of a node; None is one that a text leaves out, as ``month()`` does its argument."""
        if node is None:
            raise InvalidPredicate("a function or an operator lacks an argument")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise too_deep(most=_MAX_DEPTH)
        try:
            found = self._value(node)
        finally:
            self._depth -= 1
        if isinstance(found, Term) and len(found.spark) > _MAX_TEXT:
            raise InvalidPredicate("the filter is too long", characters=len(found.spark), most=_MAX_TEXT)
        return found

    def _value(self, node: exp.Expr) -> Term | Literal:
        kind = type(node)
        if kind in _OPERATORS:
            return compare(self.value(node.this), _OPERATORS[kind], self.value(node.expression))
        if kind in _ARITHMETIC:
            return allowed.arithmetic(_ARITHMETIC[kind], self.term(node.this), self.term(node.expression))
        if kind in _PARTS:
            return allowed.date_part(_PARTS[kind], self.term(_without_cast(node.this)))
        if kind in _TEXT_TESTS:
            return self._text_test(_TEXT_TESTS[kind], node)
        found = _NODES.get(kind)
        if found is None:
            raise refused(node)
        return found(self, node)

    def _column(self, node: exp.Expr) -> Term:
        prefix = node.args.get("table")
        if prefix is not None and prefix.name.casefold() in self._qualified:
            return self._of_table(prefix.name.casefold(), node)
        if prefix is None and self._qualified and isinstance(node.this, exp.Identifier):
            return self._bare(node)
        if prefix is not None or not isinstance(node.this, exp.Identifier):
            raise InvalidPredicate("a filter names columns of the table only, without a prefix", found=shown(node))
        written = node.name
        name = written if written in self._schema.names else self._folded.get(written.casefold())
        if name is None:
            raise no_column(written, self._schema.names)
        if "`" in name or '"' in name or "${" in name:
            raise InvalidPredicate("a filter cannot name this column: quotes and ${ are taken for code", column=name)
        self._read.add(name)
        return _prunable(self._schema.field(name), f"`{name}`", f'"{name}"')

    def _of_table(self, prefix: str, node: exp.Expr) -> Term:
        """A column of one of several tables, which a query has as ``prefix``.``column``."""
        schema = self._qualified[prefix]
        folded = {name.casefold(): name for name in schema.names}
        name = node.name if node.name in schema.names else folded.get(node.name.casefold())
        if name is None:
            raise unknown_column("no such column", f"{prefix}.{node.name}", schema.names)
        if "`" in name or '"' in name or "${" in name:
            raise InvalidPredicate("a filter cannot name this column: quotes and ${ are taken for code", column=name)
        if schema is self._schema:
            self._read.add(name)
        side = SIDES.get(prefix, prefix)
        spark, duckdb = f"`{side}`.`{name}`", f'"{side}"."{name}"'
        if schema is self._schema and len(self._qualified) == 1:
            return _prunable(schema.field(name), spark, duckdb)
        return Term(schema.field(name).type, spark, duckdb, is_uuid=is_uuid_column(schema.field(name)))

    def _bare(self, node: exp.Expr) -> Term:
        """A column that is written without its table, where several could have it."""
        found = [
            prefix
            for prefix, schema in self._qualified.items()
            if any(name.casefold() == node.name.casefold() for name in schema.names)
        ]
        if not found:
            known = dict.fromkeys(name for schema in self._qualified.values() for name in schema.names)
            raise unknown_column("no such column", shown(node), known)
        if len(found) > 1:
            raise InvalidPredicate(
                "several tables have this column; write which one is meant",
                column=shown(node),
                tables=",".join(self._qualified),
            )
        return self._of_table(found[0], node)

    def _and(self, node: exp.Expr) -> Term:
        return conjunction([self.boolean(part) for part in _chain(node)])

    def _or(self, node: exp.Expr) -> Term:
        return disjunction([self.boolean(part) for part in _chain(node)])

    def _not(self, node: exp.Expr) -> Term:
        inner = node.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return is_null(self.term(inner.this), negated=True)
        return negation(self.boolean(inner))

    def _is(self, node: exp.Expr) -> Term:
        match node.expression:
            case exp.Null():
                return is_null(self.term(node.this))
            case exp.Boolean(this=bool(wanted)):
                term = self.boolean(node.this)
                if wanted:
                    return condition(f"coalesce({term.spark}, FALSE)", f"coalesce({term.duckdb}, FALSE)", term.true)
                return condition(
                    f"coalesce(NOT {term.spark}, FALSE)", f"coalesce(NOT {term.duckdb}, FALSE)", term.false
                )
        raise refused(node)

    def _in(self, node: exp.Expr) -> Term:
        options = node.expressions
        if not options:
            raise refused(node)
        return one_of(self.term(node.this), [self.value(option) for option in options])

    def _between(self, node: exp.Expr) -> Term:
        value = self.value(node.this)
        return conjunction(
            [
                compare(value, ">=", self.value(node.args["low"])),
                compare(value, "<=", self.value(node.args["high"])),
            ]
        )

    def _null_safe(self, node: exp.Expr) -> Term:
        return null_safe(self.value(node.this), self.value(node.expression), isinstance(node, exp.NullSafeNEQ))

    def _like(self, node: exp.Expr) -> Term:
        escape = "\\"
        if isinstance(node, exp.Escape):
            written = self.value(node.expression)
            if (
                not isinstance(node.this, exp.Like)
                or not isinstance(written, Literal)
                or not isinstance(written.value, str)
            ):
                raise refused(node)
            node, escape = node.this, written.value
        pattern = self.value(node.expression)
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            raise beyond("LIKE takes a pattern in quotes", found=shown(node.expression))
        found = allowed.like(self.term(node.this), pattern.value, escape)
        return negation(found) if node.args.get("negate") else found

    def _text_test(self, function: str, node: exp.Expr) -> Term:
        part = self.value(node.expression)
        prefix = part.value if isinstance(part, Literal) and isinstance(part.value, str) else None
        return allowed.text_test(
            function, self.term(node.this), natural(part) if isinstance(part, Literal) else part, prefix
        )

    def _cast(self, node: exp.Expr) -> Term | Literal:
        """Typed literals, and the few conversions that both engines do alike."""
        target = node.args["to"]
        inner = self.value(node.this)
        if isinstance(inner, Literal):
            return typed_literal(inner.value, target, node)
        if target.expressions:
            raise refused(node, "with a size")
        match target.this:
            case exp.DType.DATE:
                return allowed.to_date(inner)
            case exp.DType.DOUBLE:
                return allowed.to_double(inner)
            case exp.DType.BIGINT:
                return allowed.to_bigint(inner)
        raise beyond("a filter casts to DATE, DOUBLE and BIGINT only", found=shown(node))

    def _to_date(self, node: exp.Expr) -> Term | Literal:
        inner = self.value(node.this)
        return (
            typed_literal(inner.value, exp.DataType(this=exp.DType.DATE), node)
            if isinstance(inner, Literal)
            else allowed.to_date(inner)
        )

    def _case(self, node: exp.Expr) -> Term:
        subject = node.args.get("this")
        tests, branches = [], []
        for branch in node.args["ifs"]:
            if subject is None:
                tests.append(self.boolean(branch.this))
            else:
                tests.append(compare(self.value(subject), "=", self.value(branch.this)))
            branches.append(self.value(branch.args["true"]))
        default = node.args.get("default")
        branches.append(Literal(None) if default is None else self.value(default))
        return _case(tests, allowed.one_type(branches))

    def _if(self, node: exp.Expr) -> Term:
        otherwise = node.args.get("false")
        branches = [self.value(node.args["true"]), Literal(None) if otherwise is None else self.value(otherwise)]
        return _case([self.boolean(node.this)], allowed.one_type(branches))

    def _coalesce(self, node: exp.Expr) -> Term:
        terms = allowed.one_type([self.value(part) for part in (node.this, *node.expressions)])
        return Term(
            _first_type(terms),
            f"coalesce({', '.join(term.spark for term in terms)})",
            f"coalesce({', '.join(term.duckdb for term in terms)})",
        )

    def _nullif(self, node: exp.Expr) -> Term:
        value = self.term(node.this)
        equal = compare(value, "=", self.value(node.expression))
        return _case([equal], [Term(pa.null(), "NULL", "NULL"), value])

    def _named(self, node: exp.Expr) -> Term:
        """Functions that the parser leaves by name."""
        match str(node.this).lower(), node.expressions:
            case "isnull", [argument]:
                return is_null(self.term(argument))
            case "isnotnull", [argument]:
                return is_null(self.term(argument), negated=True)
        raise refused(node)

    def _negative(self, node: exp.Expr) -> Term | Literal:
        inner = self.value(node.this)
        if isinstance(inner, Literal):
            if isinstance(inner.value, int | float | Decimal) and not isinstance(inner.value, bool):
                # A minus sign would round a decimal to the 28 digits of Python's context.
                return Literal(inner.value.copy_negate() if isinstance(inner.value, Decimal) else -inner.value)
            raise refused(node)
        return allowed.negative(inner)


def _prunable(field: pa.Field, spark: str, duckdb: str) -> Term:
    """A column of the table that is read, by whose statistics files can be left out."""
    name, kind = field.name, field.type
    if pa.types.is_boolean(kind):
        return Term(kind, spark, duckdb, name, None, Compare(name, "=", True), Compare(name, "=", False))
    return Term(kind, spark, duckdb, name, is_uuid=is_uuid_column(field))


def _case(tests: Sequence[Term], branches: Sequence[Term]) -> Term:
    *results, otherwise = branches
    pairs = list(zip(tests, results, strict=True))
    spark = " ".join(f"WHEN {test.spark} THEN {result.spark}" for test, result in pairs)
    duckdb = " ".join(f"WHEN {test.duckdb} THEN {result.duckdb}" for test, result in pairs)
    return Term(
        _first_type(branches),
        f"(CASE {spark} ELSE {otherwise.spark} END)",
        f"(CASE {duckdb} ELSE {otherwise.duckdb} END)",
    )


def _first_type(terms: Sequence[Term]) -> pa.DataType:
    return next((term.type for term in terms if not pa.types.is_null(term.type)), pa.null())


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a run of one operator, however long, from left to right."""
    kind, operands = type(node), []
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if type(one) is kind:
            waiting += [one.expression, one.this]
        else:
            operands.append(one)
    return operands


def _without_cast(node: exp.Expr) -> exp.Expr:
    """The parser wraps arguments of calendar functions in a conversion that the user did not write."""
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


_NODES: dict[type[exp.Expr], Callable[[Translator, Any], Term | Literal]] = {
    exp.Column: Translator._column,
    exp.Paren: lambda self, node: self.value(node.this),
    exp.And: Translator._and,
    exp.Or: Translator._or,
    exp.Not: Translator._not,
    exp.Is: Translator._is,
    exp.In: Translator._in,
    exp.Between: Translator._between,
    exp.NullSafeEQ: Translator._null_safe,
    exp.NullSafeNEQ: Translator._null_safe,
    exp.Like: Translator._like,
    exp.Escape: Translator._like,
    exp.Cast: Translator._cast,
    exp.TryCast: Translator._cast,
    exp.TsOrDsToDate: Translator._to_date,
    exp.Case: Translator._case,
    exp.If: Translator._if,
    exp.Coalesce: Translator._coalesce,
    exp.Nullif: Translator._nullif,
    exp.Anonymous: Translator._named,
    exp.Neg: Translator._negative,
    exp.Abs: lambda self, node: allowed.absolute(self.term(node.this)),
    exp.IsNan: lambda self, node: allowed.is_nan(self.term(node.this)),
    exp.Length: lambda self, node: allowed.length(self.term(node.this)),
    exp.DPipe: lambda self, node: allowed.joined(self.term(node.this), self.term(node.expression)),
    exp.Null: lambda _, __: Literal(None),
    exp.Boolean: lambda _, node: same("TRUE", ALWAYS, NEVER) if node.this else same("FALSE", NEVER, ALWAYS),
    exp.Literal: lambda _, node: Literal(node.this) if node.is_string else number(node),
    exp.RawString: lambda _, node: Literal(node.this),
    exp.HexString: lambda _, node: hexadecimal(node),
}
"""Every kind of node that may stand in a filter, besides comparisons, arithmetic, date parts and text tests."""
