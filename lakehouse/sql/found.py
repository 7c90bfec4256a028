"""What queries that find rows to change have in common: rows are named by their ids, and looked at one by one."""

from __future__ import annotations

from sqlglot import exp

from lakehouse.core.spec import ROW_ID
from lakehouse.errors import UnknownColumn
from lakehouse.operations.clauses import ROW_TIME
from lakehouse.sql.tree import found_in, named
from lakehouse.table.table import Table


def refuse_row_ids(statement: exp.Expr) -> None:
    """Raise `UnknownColumn` for a statement that names row ids, which are no column of a table."""
    if any(one.name.casefold() == ROW_ID for one in found_in(statement, exp.Identifier)):
        raise UnknownColumn("no such column", column=ROW_ID)


def naming_items(target: Table, called: str) -> list[exp.Expr]:
    """The items of a SELECT that name a row of the table by id, with its time; ``called`` is the table there."""
    table = exp.to_identifier(called, quoted=True)
    columns = {ROW_ID: ROW_ID, **dict.fromkeys(target.spec.times, ROW_TIME)}
    return [named(exp.column(name, table=table.copy(), quoted=True), as_) for name, as_ in columns.items()]


def is_over_rows(value: exp.Expr) -> bool:
    """Whether an expression is calculated over several rows of its own query, as an aggregate is."""
    return any(one.find_ancestor(exp.Query) is None for one in found_in(value, exp.AggFunc, exp.Window))
