"""DELETE, UPDATE and MERGE: statements that become calls of a table's own methods, and return their commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.written import shown
from lakehouse.session.session import Session
from lakehouse.sql.condition import renamed, written_again
from lakehouse.sql.merge import Sides, clauses
from lakehouse.sql.query import bind
from lakehouse.sql.target import aliases, check_statement, condition_text, find_target, under_with

if TYPE_CHECKING:
    from lakehouse.core.commit import Commit
    from lakehouse.table.table import Table


def delete(session: Session, tree: exp.Delete) -> Commit:
    """Delete the rows that pass WHERE; without one, all."""
    check_statement(tree, ("this", "where"))
    target = find_target(session, tree.this)
    return target.delete(_where(tree, target))


def update(session: Session, tree: exp.Update) -> Commit:
    """Set columns of the rows that pass WHERE; without one, of all."""
    check_statement(tree, ("this", "expressions", "where"))
    target = find_target(session, tree.this)
    sides = Sides.of(target.schema.names, aliases(tree.this))
    changes = sides.assignments(tree.expressions)
    return target.update(changes, _where(tree, target))


def merge(session: Session, tree: exp.Merge, *, as_of: Any, engine: str) -> Commit:
    """Merge the rows of a table or query into a table."""
    check_statement(tree, ("this", "using", "on", "whens", "with_"))
    target = find_target(session, tree.this)
    source, called = _source(tree)
    with bind(session, source, as_of=as_of, engine=engine) as query:
        rows = query.rows()
        sides = Sides.of(target.schema.names, aliases(tree.this), _names(rows), called)
        on = written_again(renamed(tree.args["on"], sides.prefixed))
        return target.merge_when(rows, on, clauses(tree.args["whens"].expressions, sides))


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


def _names(rows: Any) -> list[str]:
    return list(rows.column_names if isinstance(rows, pa.Table) else rows.columns)
