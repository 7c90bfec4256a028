"""DELETE, UPDATE and MERGE: statements that become calls of a table's own methods.

Each returns the commit, or in a transaction the operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.errors import InvalidPredicate, InvalidStatement, UnknownColumn
from lakehouse.operations.clauses import Whens, read_clauses, read_source
from lakehouse.operations.merge import require_unique
from lakehouse.predicate import parse, parse_expression
from lakehouse.predicate.written import shown
from lakehouse.session.session import Session
from lakehouse.sql.found import is_over_rows, naming_items, refuse_row_ids
from lakehouse.sql.insert import typed_cell
from lakehouse.sql.merge import Sides, Written, clauses, written_clauses
from lakehouse.sql.merge_rows import check_alone, finder, joined_rows
from lakehouse.sql.query import bind
from lakehouse.sql.sources import side
from lakehouse.sql.target import aliases, check_statement, condition_text, find_target, under_with, writer
from lakehouse.sql.tree import named

if TYPE_CHECKING:
    from lakehouse.table.table import Table
    from lakehouse.table.transaction import Transaction


def delete(session: Session, tree: exp.Delete, *, tx: Transaction | None = None) -> Any:
    """Delete the rows that pass WHERE, beside some row of what USING names; without WHERE, all."""
    check_statement(tree, ("this", "using", "where"))
    target = find_target(session, tree.this)
    said = _as_filter(tree, target)
    if said is None:
        return writer(target, tx).change_found(_finder(session, tree, target, {}), None)
    return writer(target, tx).delete(said.where)


def update(session: Session, tree: exp.Update, *, tx: Transaction | None = None) -> Any:
    """Set columns of the rows that pass WHERE, by rows of what FROM names; without WHERE, of all."""
    check_statement(tree, ("this", "expressions", "from_", "where"))
    target = find_target(session, tree.this)
    values = dict(Sides.of(target.schema.names, aliases(tree.this)).pairs(tree.expressions))
    said = _as_filter(tree, target)
    if said is None:
        return writer(target, tx).change_found(_finder(session, tree, target, values), list(values))
    return writer(target, tx).update(said.values, said.where)


@dataclass(frozen=True, slots=True)
class _Filter:
    """A statement's condition and values as filters say them."""

    where: str
    values: Mapping[str, str]


def _as_filter(tree: exp.Expr, target: Table) -> _Filter | None:
    """A statement as filters say it, which prunes by more; None where only a query can say it."""
    if _looks_at_others(tree):
        return None
    sides = Sides.of(target.schema.names, aliases(tree.this))
    try:
        said = _Filter(_where(tree, target), sides.assignments(tree.expressions))
        parse(said.where, target.schema)
        for name, value in said.values.items():
            parse_expression(value, target.schema, target.schema.field(name))
    except (InvalidPredicate, InvalidStatement, UnknownColumn) as error:
        if isinstance(error, InvalidPredicate) and not error.is_beyond:
            raise
        return None  # of what is wrong for a query, too, that says more
    return said


def _looks_at_others(tree: exp.Expr) -> bool:
    """Whether a statement's rows depend on more than what is in them."""
    return bool(tree.args.get("using") or tree.args.get("from_")) or tree.find(exp.Query) is not None


def _finder(
    session: Session, tree: exp.Expr, target: Table, values: Mapping[str, exp.Expr]
) -> Callable[[int], pa.Table]:
    """What finds the rows of a statement that looks at others, in process: all its tables are read at one version."""
    refuse_row_ids(tree)
    node = tree.this.copy()
    items = naming_items(target, node.alias_or_name)
    for name, value in values.items():
        held = typed_cell(value.copy(), target.schema.field(name).type)
        if is_over_rows(held):
            raise InvalidStatement("a column is set by its row; calculate over rows in a sub-query", column=name)
        items.append(named(held, name))
    where = tree.args.get("where")
    query = exp.Select(expressions=items, from_=exp.From(this=node), where=None if where is None else where.copy())
    joins = _joins(tree)
    if joins:
        query.set("joins", joins)
        query.set("distinct", exp.Distinct())  # what finds a row twice and says the same of it says it once

    nulls = [name for name, value in values.items() if isinstance(value, exp.Null)]

    def find(base: int) -> pa.Table:
        with bind(session, query, as_of=base, engine="duckdb", row_ids=[node]) as bound:
            rows: pa.Table = bound.rows()
        if joins:
            require_unique(rows, target.name)
        for name in nulls:  # which have a type of the engine's choice
            rows = rows.drop_columns([name]).append_column(name, pa.nulls(rows.num_rows))
        return rows

    return find


def _joins(tree: exp.Expr) -> list[exp.Join]:
    """What stands after FROM of an UPDATE, or USING of a DELETE, as joins to the table that is changed."""
    from_ = tree.args.get("from_")
    joins: list[exp.Join] = []
    for source in [from_.this] if from_ is not None else tree.args.get("using") or []:
        own = source.copy()
        inner = own.args.get("joins") or []
        own.set("joins", None)
        joins += [exp.Join(this=own, kind="CROSS"), *inner]
    for join in joins:
        if side(join) in ("RIGHT", "FULL"):
            raise InvalidStatement(
                "a RIGHT or FULL join has rows without one to change; put it into a sub-query", found=shown(join)
            )
    return joins


def merge(session: Session, tree: exp.Merge, *, as_of: Any, engine: str | None, tx: Transaction | None = None) -> Any:
    """Merge the rows of a table or query into a table."""
    check_statement(tree, ("this", "using", "on", "whens", "with_"))
    target = find_target(session, tree.this)
    source, called = _source(tree)
    with bind(session, source, as_of=as_of, engine=engine) as query:
        columns = query.schema()
        sides = Sides.of(target.schema.names, aliases(tree.this), columns.names, called)
        written = written_clauses(tree.args["whens"].expressions, sides)
        said = _as_filters(tree, target, columns, sides, written)
        if said is not None:
            return writer(target, tx).merge_when(query.rows(), *said)
    joined = joined_rows(tree, target, sides, written)
    check_alone(session, tree, sides, written, as_of=as_of, engine=engine)
    find = finder(session, joined, as_of=as_of, engine=engine)
    return writer(target, tx).merge_found(find, joined.clauses, is_repeatable=joined.is_repeatable)


def _as_filters(
    tree: exp.Merge, target: Table, columns: pa.Schema, sides: Sides, written: Sequence[Written]
) -> tuple[str, Whens] | None:
    """ON and the clauses as filters say them; None where only a query can say one of them."""
    try:
        on, whens = sides.text(tree.args["on"]), clauses(written)
        read_clauses(target.spec, read_source(columns.empty_table(), target.spec), on, whens)
    except (InvalidPredicate, InvalidStatement, UnknownColumn) as error:
        if isinstance(error, InvalidPredicate) and not error.is_beyond:
            raise
        return None
    return on, whens


def _source(tree: exp.Merge) -> tuple[exp.Expr, tuple[str, ...]]:
    """The query of a MERGE's rows, and what its conditions call it."""
    using = tree.args["using"]
    called = aliases(using)
    if not isinstance(using, exp.Subquery | exp.Table | exp.Values):
        raise InvalidStatement("MERGE takes a table or a query in parentheses after USING", found=shown(using))
    return under_with(tree, exp.Select(expressions=[exp.Star()], from_=exp.From(this=using.copy()))), called


def _where(tree: exp.Expr, target: Table) -> str:
    where = tree.args.get("where")
    return "TRUE" if where is None else condition_text(where.this, tree.this, target)
