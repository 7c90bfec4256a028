"""What of a query a scan can do: read only columns that are needed, and leave out rows that cannot matter.

The query keeps all its conditions; a scan's filter is one that rows would have to pass anyway. So it is enough that
nothing is pushed wrongly, and what is not understood is not pushed: a name that could mean two things, a condition that
a table's filter cannot say, the side of an outer join that is filled with nulls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from lakehouse.core.spec import ROW_ID
from lakehouse.errors import InvalidInput
from lakehouse.predicate import ParsedPredicate
from lakehouse.predicate.parsing import MAX_LENGTH, translated
from lakehouse.sql.condition import plain, renamed, written_plainly
from lakehouse.sql.names import Reference
from lakehouse.sql.samples import is_by_row
from lakehouse.sql.sources import Scope, Source, kind, side

_MORE_THAN_PICKS = ("group", "having", "qualify", "distinct", "limit", "offset")
"""Parts of a SELECT under which a condition on its rows is none on the rows of its FROM."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a query wants of one table: ``columns`` in the table's order, rows that pass ``where`` (None: all)."""

    columns: tuple[str, ...]
    where: ParsedPredicate | None = None


def pushed(tree: exp.Expr, references: Sequence[Reference], schemas: Mapping[str, pa.Schema]) -> dict[str, Wanted]:
    """What to ask of each table reference's scan, by relation. ``schemas`` are the tables', by relation too.

    Cost: one walk of the SELECT around each reference, and of those around that one.
    """
    scope = scope_of(tree, references, schemas)
    return {one.relation: _wanted(one.node, schemas[one.relation], scope) for one in references}


def scope_of(tree: exp.Expr, references: Sequence[Reference], schemas: Mapping[str, pa.Schema]) -> Scope:
    """What a resolved statement says of names, with the columns of its tables, whose schemas are given by relation."""
    columns = {
        id(one.node): frozenset(name.casefold() for name in schemas[one.relation].names)
        for one in references
        if not one.node.args["alias"].args.get("columns")
    }
    return Scope.of(tree, columns)


def _wanted(node: exp.Table, schema: pa.Schema, scope: Scope) -> Wanted:
    select = node.parent.parent if isinstance(node.parent, exp.From | exp.Join) else None
    if not isinstance(select, exp.Select) or id(node) not in scope.columns:
        return Wanted(tuple(schema.names))  # renamed columns are not followed
    if node.args.get("pivots"):
        return Wanted(tuple(schema.names))  # whose rows and columns are no table's
    source = next(one for one in scope.sources(select) if one.node is node)
    conditions = list(_conditions(select, node, scope)) if is_by_row(node) else []
    columns = _columns(select, source, schema, scope)
    if node.args.get("sample") and ROW_ID not in columns:
        columns = (*columns, ROW_ID)
    return Wanted(columns, _filter(conditions, schema))


def _columns(select: exp.Select, source: Source, schema: pa.Schema, scope: Scope) -> tuple[str, ...]:
    """Columns whose names stand anywhere in the SELECT: more than are needed at times, never fewer."""
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            prefix = item.args.get("table")
            if prefix is None or prefix.name.casefold() == source.alias:
                return tuple(schema.names)
    written = scope.words(select)
    found = tuple(name for name in schema.names if name.casefold() in written)
    return found or (_narrowest(schema),)


def _narrowest(schema: pa.Schema) -> str:
    """A column to count rows by."""

    def width(field: pa.Field) -> int:
        try:
            return int(field.type.bit_width)
        except ValueError:
            return 1 << 20

    return str(min(schema, key=width).name)


def _conditions(select: exp.Select, node: exp.Expr, scope: Scope) -> Iterator[exp.Expr]:
    """Conditions that rows of an item of a FROM have to pass whatever else they meet, each about this item alone."""
    sources = scope.sources(select)
    own = next(place for place, one in enumerate(sources) if one.node is node)
    source = sources[own]
    if source.kept and source.seen:
        where = select.args.get("where")
        found = [*(conjuncts(where.this) if where is not None else ()), *_inherited(select, scope)]
        seen = [one for one in sources if one.seen]
        yield from (one for one in found if is_about(one, source, seen, scope))
    for place, one in enumerate(sources[own:], own):
        on = None if one.join is None else one.join.args.get("on")
        if one.join is None or on is None:
            continue
        joined_here = place == own and side(one.join) in ("", "LEFT")
        kept_so_far = source.kept and source.seen and side(one.join) == "" and kind(one.join) != "ANTI"
        if joined_here or kept_so_far:
            seen = [other for other in sources[: place + 1] if other is one or other.seen]
            yield from (one for one in conjuncts(on) if is_about(one, source, seen, scope))


def _inherited(select: exp.Select, scope: Scope) -> Iterator[exp.Expr]:
    """Conditions of the SELECT around this one on its rows, in terms of its own FROM, where it only picks columns."""
    if any(select.args.get(key) for key in _MORE_THAN_PICKS) or any(
        one.find(exp.AggFunc, exp.Window) for one in select.expressions
    ):
        return
    outputs = scope.outputs(select)
    for around, node in scope.around(select):
        for condition in _conditions(around, node, scope) if outputs else ():
            columns = list(condition.find_all(exp.Column))
            if all((outputs or {}).get(one.name.casefold()) is not None for one in columns):
                yield _in_terms_of(condition, outputs or {})


def _in_terms_of(condition: exp.Expr, outputs: Mapping[str, exp.Column | None]) -> exp.Expr:
    held = exp.Paren(this=condition.copy())
    for column in list(held.find_all(exp.Column)):
        inner = outputs[column.name.casefold()]
        column.replace(inner.copy() if inner is not None else column)
    return held.this  # type: ignore[no-any-return]


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that a condition joins by AND."""
    waiting = [condition]
    while waiting:
        one = waiting.pop()
        match one:
            case exp.Paren():
                waiting.append(one.this)
            case exp.And():
                waiting += [one.expression, one.this]
            case _:
                yield one


def is_about(condition: exp.Expr, source: Source, sources: Sequence[Source], scope: Scope) -> bool:
    """Whether every column of a condition can only be one of this source's own."""
    columns = scope.columns_in(condition)
    if source.columns is None or columns is None:
        return False
    for column in columns:
        prefix, name = column.args.get("table"), column.name.casefold()
        if column.args.get("db") is not None or name not in source.columns:
            return False
        if prefix is None and any(
            one is not source and (one.columns is None or name in one.columns) for one in sources
        ):
            return False
        if prefix is not None and prefix.name.casefold() != source.alias:
            return False
    return bool(columns) and sum(one.alias == source.alias for one in sources) == 1


def _filter(conditions: Sequence[exp.Expr], schema: pa.Schema) -> ParsedPredicate | None:
    """A filter of the table that says those of some conditions that a filter can say; None if it can say none."""
    found = _said(conditions, schema)
    if found is None and len(conditions) > 1:
        found = _said([one for one in conditions if _said([one], schema) is not None], schema)
    return found


def _said(conditions: Sequence[exp.Expr], schema: pa.Schema) -> ParsedPredicate | None:
    """The filter that says all of them, made of their tree: its text is not parsed again. None if there is none."""
    if not conditions:
        return None
    parts: list[exp.Expr] = [exp.Paren(this=renamed(one, lambda column: (None, column.name))) for one in conditions]
    try:
        tree = plain(reduce(lambda one, other: exp.And(this=one, expression=other), parts))
        text = written_plainly(tree)
        return translated(tree, text, schema) if len(text) <= MAX_LENGTH else None
    except (InvalidInput, RecursionError):
        return None
