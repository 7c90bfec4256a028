"""What of a query a scan can do: read only columns that are needed, and leave out rows that cannot matter.

The query keeps all its conditions; a scan's filter is one that rows would have to pass anyway. So it is enough that
nothing is pushed wrongly, and what is not understood is not pushed: a name that could mean two things, a condition that
a table's filter cannot say, the side of an outer join that is filled with nulls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from lakehouse.errors import InvalidInput
from lakehouse.predicate import parse
from lakehouse.sql.condition import renamed, written_again
from lakehouse.sql.names import Reference


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a query wants of one table: ``columns`` in the table's order, rows that pass ``where`` (None: all)."""

    columns: tuple[str, ...]
    where: str | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """One item of a FROM: its alias and columns, folded; ``columns`` is None where they are not known.

    ``kept`` says that no join of this FROM fills it with nulls.
    """

    node: exp.Expr
    alias: str
    columns: frozenset[str] | None
    join: exp.Join | None
    kept: bool = True


def pushed(references: Sequence[Reference], schemas: Mapping[str, pa.Schema]) -> dict[str, Wanted]:
    """What to ask of each table reference's scan, by relation. ``schemas`` are the tables', by relation too.

    Cost: one walk of the SELECT around each reference.
    """
    known = {id(reference.node): schemas[reference.relation] for reference in references}
    return {one.relation: _wanted(one, schemas[one.relation], known) for one in references}


def _wanted(reference: Reference, schema: pa.Schema, known: Mapping[int, pa.Schema]) -> Wanted:
    node = reference.node
    select = node.parent.parent if isinstance(node.parent, exp.From | exp.Join) else None
    if not isinstance(select, exp.Select) or node.args["alias"].args.get("columns"):
        return Wanted(tuple(schema.names))  # renamed columns are not followed
    sources = list(_sources(select, known))
    source = next(one for one in sources if one.node is node)
    filters = [_text(one, schema) for one in _conditions(select, source, sources)]
    return Wanted(_columns(select, source, schema), " AND ".join(one for one in filters if one) or None)


def _columns(select: exp.Select, source: _Source, schema: pa.Schema) -> tuple[str, ...]:
    """Columns whose names stand anywhere in the SELECT: more than are needed at times, never fewer."""
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            prefix = item.args.get("table")
            if prefix is None or prefix.name.casefold() == source.alias:
                return tuple(schema.names)
    written = {one.name.casefold() for one in select.find_all(exp.Identifier)}
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


def _sources(select: exp.Select, known: Mapping[int, pa.Schema]) -> Iterator[_Source]:
    joins = list(select.args.get("joins") or ())
    items = [(select.args["from_"].this, None), *((join.this, join) for join in joins)]
    for place, (node, join) in enumerate(items):
        later = [_side(one) for one in joins[place:]]
        own = "" if join is None else _side(join)
        kept = own not in ("LEFT", "FULL") and not {"RIGHT", "FULL"} & set(later)
        yield _Source(node, node.alias_or_name.casefold(), _known_columns(node, known), join, kept)


def _side(join: exp.Join) -> str:
    return str(join.args.get("side") or "").upper()


def _kind(join: exp.Join) -> str:
    return str(join.args.get("kind") or "").upper()


def _known_columns(node: exp.Expr, known: Mapping[int, pa.Schema]) -> frozenset[str] | None:
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return frozenset(column.name.casefold() for column in alias.args["columns"])
    if id(node) in known:
        return frozenset(name.casefold() for name in known[id(node)].names)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select) and not node.this.is_star:
        return frozenset(name.casefold() for name in node.this.named_selects)
    return None


def _conditions(select: exp.Select, source: _Source, sources: Sequence[_Source]) -> Iterator[exp.Expr]:
    """Conditions that rows of a source have to pass whatever else they meet, each about this source alone."""
    own = sources.index(source)
    where = select.args.get("where")
    if where is not None and source.kept and _is_seen(source):
        seen = [one for one in sources if _is_seen(one)]
        yield from (one for one in _conjuncts(where.this) if _is_about(one, source, seen))
    for place, one in enumerate(sources[own:], own):
        on = None if one.join is None else one.join.args.get("on")
        if one.join is None or on is None:
            continue
        joined_here = place == own and _side(one.join) in ("", "LEFT")
        kept_so_far = source.kept and _is_seen(source) and _side(one.join) == "" and _kind(one.join) != "ANTI"
        if joined_here or kept_so_far:
            seen = [other for other in sources[: place + 1] if other is one or _is_seen(other)]
            yield from (condition for condition in _conjuncts(on) if _is_about(condition, source, seen))


def _is_seen(source: _Source) -> bool:
    """Whether a source's columns can be named after its join."""
    return source.join is None or _kind(source.join) not in ("SEMI", "ANTI")


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
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


def _is_about(condition: exp.Expr, source: _Source, sources: Sequence[_Source]) -> bool:
    """Whether every column of a condition can only be one of this source's own."""
    if condition.find(exp.Query) is not None or source.columns is None:
        return False
    columns = list(condition.find_all(exp.Column))
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


def _text(condition: exp.Expr, schema: pa.Schema) -> str | None:
    """The condition as a filter of the table; None if a filter cannot say it."""
    try:
        text = written_again(renamed(condition, lambda column: (None, column.name)))
        parse(text, schema)
    except InvalidInput:
        return None
    return f"({text})"
