"""The table that a statement changes, and what the statement calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lakehouse.arguments import unknown_column
from lakehouse.errors import InvalidStatement
from lakehouse.predicate.written import shown
from lakehouse.session.session import Session
from lakehouse.sql.allowed import check_parts
from lakehouse.sql.condition import renamed, written_again
from lakehouse.sql.merge import Sides
from lakehouse.sql.names import table_name
from lakehouse.sql.view import live_view
from lakehouse.table.tables import open_table, table_names

if TYPE_CHECKING:
    from lakehouse.table.table import Table
    from lakehouse.table.transaction import Transaction, TransactionTable


def find_target(session: Session, node: exp.Expr) -> Table:
    """The table of the lake to change. Raises `TableNotFound`, and `InvalidStatement` for one at a version."""
    if isinstance(node, exp.Table) and node.args.get("version") is not None:
        raise InvalidStatement("only the newest version of a table can be changed", table=node.name)
    refuse_view(session, node)
    name = table_name(node, table_names(session))
    check_parts(node, ("this", "db", "alias"))
    if node.args.get("alias") is not None:
        check_parts(node.args["alias"], ("this",))
    return open_table(session, name)


def refuse_view(session: Session, node: exp.Expr) -> None:
    """Raise `InvalidStatement` for a view, which nothing can be changed through."""
    view = live_view(session, node)
    if view is not None:
        raise InvalidStatement("a view is read-only; change the tables that it reads", view=view.name)


def writer(target: Table, tx: Transaction | None) -> Table | TransactionTable:
    """What takes a statement's change: the table, which commits it, or the table in a transaction."""
    return target if tx is None else tx.table(target.name)


def check_statement(tree: exp.Expr, allowed: Sequence[str]) -> None:
    """Raise `InvalidStatement` for a statement that says something in a part that is not listed."""
    extra = [key for key, value in tree.args.items() if value and key not in allowed]
    if extra:
        raise InvalidStatement("not allowed in this statement", statement=tree.key.upper(), found=extra[0].rstrip("_"))


def aliases(node: exp.Expr) -> tuple[str, ...]:
    """The one name by which a statement calls a table or query."""
    name = node.alias_or_name
    return (name,) if name else ()


def condition_text(condition: exp.Expr, node: exp.Expr, target: Table) -> str:
    """A condition on the rows of the target alone, as a filter of the table."""
    if condition.find(exp.Query) is not None:
        raise InvalidStatement("a sub-query cannot stand here")
    sides = Sides.of(target.schema.names, aliases(node))
    return written_again(renamed(condition, sides.bare))


def under_with(statement: exp.Expr, query: exp.Expr) -> exp.Expr:
    """A statement's query with the queries of the statement's own WITH, which stand before the query's."""
    with_ = statement.args.get("with_")
    if with_ is None:
        return query
    if not isinstance(query, exp.Query) or with_.args.get("recursive"):
        raise InvalidStatement("WITH stands before a query here, and is not recursive", found=shown(query))
    query, own = query.copy(), query.args.get("with_")
    listed = [*with_.expressions, *(own.expressions if own is not None else ())]
    query.set(
        "with_", exp.With(expressions=[one.copy() for one in listed], recursive=own and own.args.get("recursive"))
    )
    return query


def real_column(target: Table, name: Any) -> str:
    """A column of the target by the name that a statement writes. Raises `UnknownColumn`."""
    if not isinstance(name, str | exp.Identifier):
        raise InvalidStatement("write the columns' names only: INSERT INTO t (a, b) ...", found=shown(name))
    written = name if isinstance(name, str) else name.name
    for column in target.schema.names:
        if column.casefold() == written.casefold():
            return str(column)
    raise unknown_column("no such column in the table", written, target.schema.names)
