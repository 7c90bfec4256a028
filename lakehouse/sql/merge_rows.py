"""MERGE with what only queries take: one query joins source and table, and says of each row which clause it meets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lakehouse.core.spec import ROW_ID
from lakehouse.errors import InvalidStatement, UnknownColumn
from lakehouse.operations.clauses import CLAUSE, Found
from lakehouse.predicate.written import shown
from lakehouse.session.session import Session
from lakehouse.sql.found import is_over_rows, naming_items, refuse_row_ids
from lakehouse.sql.insert import typed_cell
from lakehouse.sql.merge import Sides, Written
from lakehouse.sql.query import bind, check_query
from lakehouse.sql.system import SCHEMA
from lakehouse.sql.target import under_with
from lakehouse.sql.tree import copied, found_in, named

if TYPE_CHECKING:
    from lakehouse.table.table import Table

_GIVEN = "_lake_given"
"""What is TRUE in rows of the source; null where there is none."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The query of a MERGE's rows, the table in it, and what becomes of the rows that it gives."""

    query: exp.Expr
    target: exp.Table
    clauses: tuple[Found, ...]
    is_repeatable: bool
    """Several rows may name one row of the table: all of those are deleted."""


def finder(
    session: Session, joined: Joined, *, as_of: Any, engine: str | None
) -> Callable[[int], AbstractContextManager[Any]]:
    """What finds the rows: the table at the base of the operation, all else there or at ``as_of``."""

    @contextmanager
    def find(base: int) -> Iterator[Any]:
        if as_of is not None:
            _set_version(joined.target, base)
        point = base if as_of is None else as_of
        with bind(session, joined.query, as_of=point, engine=engine, row_ids=[joined.target]) as bound:
            yield bound.rows()

    return find


def _set_version(node: exp.Table, number: int) -> None:
    said = exp.Version(this="VERSION", kind="AS OF", expression=exp.Literal.number(number))
    node.set("version", said)


def check_alone(
    session: Session, tree: exp.Merge, sides: Sides, written: Sequence[Written], *, as_of: Any, engine: str | None
) -> None:
    """Raise `UnknownColumn` for a sub-query of a clause about one side that names a column of the other alone.

    In the query of both sides such a name would mean a column, which is null in every row of the clause.
    """
    names = _names(tree)
    for one in written:
        values = one.values.values() if isinstance(one.values, Mapping) else ()
        said = [held for held in (one.condition, *values) if held is not None and found_in(held, exp.Query)]
        if one.kind == "matched" or not said:
            continue
        node = _target_node(tree, names)
        if as_of is not None:
            _set_version(node, session.catalog.resolve(None))
        items = [named(_resolved(held, one.sides, names), f"_c{place}") for place, held in enumerate(said)]
        rows = node if one.kind == "left" else _rows_of(tree.args["using"], names.source)
        query = under_with(tree, exp.Select(expressions=items, from_=exp.From(this=rows)))
        check_query(session, query, as_of=as_of, engine=engine)


def joined_rows(tree: exp.Merge, target: Table, sides: Sides, written: Sequence[Written]) -> Joined:
    """Join the source to the table by ON. Raises `InvalidStatement` for what no query can say."""
    refuse_row_ids(tree)
    if found_in(tree.args["on"], exp.Query):
        raise InvalidStatement("ON of a MERGE takes no sub-query; put it into the query after USING")
    names = _names(tree)
    meets = [_meets(one, names) for one in written]
    items = [*naming_items(target, names.target), named(_numbered(meets), CLAUSE)]
    found = []
    for number, one in enumerate(written):
        before = [meets[place] for place in range(number) if written[place].kind == one.kind]
        held: dict[str, str | None] = {}
        for name, value in _values(one, target, names).items():
            is_null = isinstance(value, exp.Null)  # which has a type of the engine's choice
            held[name] = None if is_null else f"_v{len(items)}"
            if not is_null:
                items.append(named(_guarded(value, meets[number], before), f"_v{len(items)}"))
        found.append(Found(number, one.kind == "not matched", None if one.values is None else held))
    joined = _joined(tree, items, _resolved(tree.args["on"], sides, names), names, {one.kind for one in written})
    matched = [(one.condition, one.values) for one in written if one.kind == "matched"]
    return Joined(joined, _node_in(joined), tuple(found), matched == [(None, None)])


def _joined(tree: exp.Merge, items: list[exp.Expr], on: exp.Expr, names: _Names, kinds: set[str]) -> exp.Expr:
    """The rows of source and table, joined, that meet a clause."""
    node = _target_node(tree, names)
    rows = exp.Select(expressions=items, from_=exp.From(this=_given_rows(tree.args["using"], names.source)))
    rows.set("joins", [exp.Join(this=node, on=on, **_kind(kinds))])
    met = exp.Not(this=exp.Is(this=_column(None, CLAUSE), expression=exp.Null()))
    held = exp.Subquery(this=rows, alias=_table_alias("_lake_joined"))
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=held), where=exp.Where(this=met))
    return under_with(tree, query)


def _target_node(tree: exp.Merge, names: _Names) -> exp.Table:
    """The table that is changed, by its whole name, which no query of WITH has."""
    schema = exp.to_identifier(SCHEMA, quoted=True)
    return exp.Table(this=tree.this.this.copy(), db=schema, alias=_table_alias(names.target))


def _node_in(query: exp.Expr) -> exp.Table:
    """The table that is changed, in the query, which may be a copy."""
    rows = query.args["from_"].this.this
    node: exp.Table = rows.args["joins"][0].this
    return node


@dataclass(frozen=True, slots=True)
class _Names:
    """What the query calls the two sides."""

    target: str
    source: str


def _names(tree: exp.Merge) -> _Names:
    return _Names(tree.this.alias_or_name, tree.args["using"].alias_or_name or "_lake_rows")


def _kind(kinds: set[str]) -> dict[str, str]:
    """The join that has all rows that the clauses are about, of the source to the table."""
    if "left" in kinds:
        return {"side": "FULL" if "not matched" in kinds else "RIGHT"}
    return {"side": "LEFT"} if "not matched" in kinds else {"kind": "INNER"}


def _given_rows(using: exp.Expr, alias: str) -> exp.Expr:
    """The rows after USING, each with a mark that it is one."""
    return _rows_of(using, alias, named(exp.true(), _GIVEN))


def _rows_of(using: exp.Expr, alias: str, *more: exp.Expr) -> exp.Expr:
    rows = exp.Select(expressions=[exp.Star(), *more], from_=exp.From(this=using.copy()))
    return exp.Subquery(this=rows, alias=_table_alias(alias))


def _meets(one: Written, names: _Names) -> exp.Expr:
    """Whether a row of the join is one that a clause is about, and passes its condition."""
    sides: Mapping[str, tuple[bool, bool]] = {
        "matched": (True, True),
        "not matched": (False, True),
        "left": (True, False),
    }
    has_target, has_source = sides[one.kind]
    parts = [_is_there(_column(names.target, ROW_ID), has_target), _is_there(_column(names.source, _GIVEN), has_source)]
    if one.condition is not None:
        parts.append(exp.Paren(this=_of_row(one.condition, one.sides, names)))
    return exp.and_(*parts, copy=False, wrap=False)


def _is_there(column: exp.Column, wanted: bool) -> exp.Expr:
    is_null = exp.Is(this=column, expression=exp.Null())
    return exp.Not(this=is_null) if wanted else is_null


def _numbered(meets: Sequence[exp.Expr]) -> exp.Expr:
    """The number of the first clause that a row meets; null if it meets none."""
    return exp.Case(ifs=[exp.If(this=copied(one), true=exp.Literal.number(k)) for k, one in enumerate(meets)])


def _guarded(value: exp.Expr, met: exp.Expr, before: Sequence[exp.Expr]) -> exp.Expr:
    """A value that is calculated for rows that meet its clause and none before it: others may have none."""
    ifs = [exp.If(this=copied(one), true=exp.Null()) for one in before]
    return exp.Case(ifs=[*ifs, exp.If(this=copied(met), true=value)])


def _values(one: Written, target: Table, names: _Names) -> dict[str, exp.Expr]:
    """The new values of a clause, by column."""
    if one.values is None:
        return {}
    if one.values is True:
        shared = {name: one.sides.source.get(name.casefold()) for name in target.schema.names}
        return {name: _column(names.source, held) for name, held in shared.items() if held is not None}
    return {
        name: typed_cell(_of_row(value, one.sides, names), target.schema.field(name).type)
        for name, value in one.values.items()
    }


def _of_row(node: exp.Expr, sides: Sides, names: _Names) -> exp.Expr:
    """An expression that is calculated row by row. Raises `InvalidStatement` for one over several rows."""
    found = _resolved(node, sides, names)
    if is_over_rows(found):
        raise InvalidStatement("a MERGE looks at row by row; calculate over rows in the query after USING")
    return found


def _resolved(node: exp.Expr, sides: Sides, names: _Names) -> exp.Expr:
    """A copy in which columns outside of sub-queries name their side, and those inside none that is not there."""
    found = exp.Paren(this=copied(node))
    for column in list(found.find_all(exp.Column)):
        if column.find_ancestor(exp.Query) is not None:
            _refuse_absent(column, sides, names)
        elif isinstance(column.this, exp.Identifier):
            _resolve(column, sides, names)
    made: exp.Expr = found.this
    made.pop()
    return made


def _refuse_absent(column: exp.Column, sides: Sides, names: _Names) -> None:
    there = {names.target: sides.has_target_row, names.source: bool(sides.source_aliases)}
    first = column.parts[0].name.casefold()
    if len(column.parts) > 1 and any(first == name.casefold() and not is_there for name, is_there in there.items()):
        raise UnknownColumn("this clause has no row of that side", column=shown(column))


def _resolve(column: exp.Column, sides: Sides, names: _Names) -> None:
    """Give a column, or the column whose part is named, the prefix of its side."""
    parts = list(column.parts)
    first = parts[0].name.casefold()
    is_prefixed = len(parts) > 1 and first in sides.target_aliases | sides.source_aliases
    named = parts[:2] if is_prefixed else parts[:1]
    bare = exp.Column(this=named[-1].copy(), table=named[0].copy() if is_prefixed else None)
    side, name = sides.prefixed(bare)
    prefix = names.target if side == "target" else names.source
    rest = parts[len(named) :]
    whole = [exp.to_identifier(one, quoted=True) for one in (prefix, name)] + [one.copy() for one in rest]
    if len(whole) > 4:
        raise InvalidStatement("a column has too many parts", found=shown(column))
    keys = ("this", "table", "db", "catalog")
    for key, part in zip(keys, [*reversed(whole), None, None], strict=False):
        column.set(key, part)


def _column(table: str | None, name: str) -> exp.Column:
    return exp.column(name, table=None if table is None else exp.to_identifier(table, quoted=True), quoted=True)


def _table_alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))
