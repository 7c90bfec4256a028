"""INSERT in all its forms, TRUNCATE and CREATE TABLE AS SELECT: rows that are added, or put in the place of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.core.interval import ALL_TIME, Interval
from lakehouse.core.keys import KeyScope
from lakehouse.errors import AlreadyExists, InvalidStatement
from lakehouse.operations.clauses import source_schema
from lakehouse.predicate import parse, whole_scope
from lakehouse.session.session import Session
from lakehouse.sql.allowed import check_parts
from lakehouse.sql.define import create_arguments, new_name
from lakehouse.sql.query import bind, fixed_rows
from lakehouse.sql.target import check_statement, condition_text, find_target, real_column, under_with, writer
from lakehouse.sql.tree import put
from lakehouse.table.tables import create_table, dropped_unless_filled, open_table, table_names

if TYPE_CHECKING:
    from lakehouse.table.table import Table
    from lakehouse.table.transaction import Transaction


def insert(session: Session, tree: exp.Insert, *, as_of: Any, engine: str | None, tx: Transaction | None = None) -> Any:
    """Append the rows of VALUES (calculated in process) or of a query (by the engine), column by column from the left.

    Columns that are not named get their default for new rows, else null. With OVERWRITE or REPLACE WHERE they stand in
    the place of others. Returns the commit, or in a transaction the operation.
    """
    check_statement(tree, ("this", "expression", "by_name", "with_", "where", "overwrite"))
    named = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    if named and tree.args.get("by_name"):
        raise InvalidStatement("columns are listed, or taken BY NAME from the query, but not both")
    node = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    target = find_target(session, node)
    columns = [real_column(target, name) for name in named] or list(target.schema.names)
    replaced = _replaced(tree, node, target)
    if replaced is None:
        with _rows(session, tree, target, columns, as_of, engine) as rows:
            return writer(target, tx).append(rows)
    interval, keys = replaced
    if tx is not None:
        with _rows(session, tree, target, columns, as_of, engine) as rows:
            return tx.table(target.name).replace(rows, interval, keys=keys)
    with target.begin_replace(interval, keys) as operation:  # before the query: nobody else replaces what it reads
        # What was committed since then stays beside the new rows, so that the query must not read it too.
        point = operation.base_version if as_of is None else as_of
        with _rows(session, tree, target, columns, point, engine) as rows:
            operation.write(rows)
        return operation.commit()


def truncate(session: Session, tree: exp.TruncateTable, *, tx: Transaction | None = None) -> Any:
    """Drop every row of a table, of which no one is read."""
    check_statement(tree, ("expressions",))
    if len(tree.expressions) != 1:
        raise InvalidStatement("write TRUNCATE TABLE name, one table at a time")
    node = tree.expressions[0]
    check_parts(node, ("this", "db"))
    target = find_target(session, node)
    return writer(target, tx).drop(ALL_TIME)


def create_as(session: Session, tree: exp.Create, *, as_of: Any, engine: str | None) -> Table:
    """Create a table with the columns and rows of a query: none if the query fails, an empty one if the process dies.

    With IF NOT EXISTS, and a table of that name, no query is run.
    """
    check_statement(tree, ("this", "kind", "exists", "properties", "expression"))
    name = new_name(tree.this)
    if tree.args.get("exists") and name in table_names(session):
        return open_table(session, name)
    with bind(session, tree.expression, as_of=as_of, engine=engine) as query:
        rows = query.rows()
        columns = pa.schema([field.with_nullable(True) for field in source_schema(rows)])
        arguments = create_arguments(tree, columns.names)
        try:
            table = create_table(session, name, columns, **arguments)
        except AlreadyExists as error:
            if not tree.args.get("exists") or "view" in error.facts:
                raise
            return open_table(session, name)
        with dropped_unless_filled(session, name):
            table.append(rows)
        return table


@contextmanager
def _rows(
    session: Session, tree: exp.Insert, target: Table, columns: list[str], as_of: Any, engine: str | None
) -> Iterator[Any]:
    """The rows of an INSERT under the table's names, while what they are read from is held."""
    source = tree.args.get("expression")
    if source is None:
        raise InvalidStatement("an INSERT needs VALUES or a query", table=target.name)
    if isinstance(source, exp.Values) and tree.args.get("with_") is None:
        rows = fixed_rows(session, _typed(source, [target.schema.field(name).type for name in columns]))
        yield _fitted(target, rows, columns, by_name=False)
        return
    with bind(session, under_with(tree, source), as_of=as_of, engine=engine) as query:
        yield _fitted(target, query.rows(), columns, by_name=bool(tree.args.get("by_name")))


def _fitted(target: Table, rows: Any, columns: list[str], *, by_name: bool) -> Any:
    found = list(rows.column_names if isinstance(rows, pa.Table) else rows.columns)
    if by_name:
        columns = [real_column(target, name) for name in found]
    if len(found) != len(columns):
        raise InvalidStatement(
            "as many values as columns are needed; name the columns: INSERT INTO t (a, b) ...",
            columns=",".join(columns),
            found=len(found),
        )
    given = {*columns, *target.spec.defaults_for_new}
    missing = [name for name in target.schema.names if name not in given]
    return _with_columns(rows, columns, missing)


def _replaced(tree: exp.Insert, node: exp.Expr, target: Table) -> tuple[Interval, KeyScope | None] | None:
    """The interval and keys in whose place the rows stand; None if they are added.

    Raises `InvalidStatement` for a condition that says anything else: rows of it would have to be looked for.
    """
    condition = tree.args.get("where")
    if tree.args.get("overwrite"):
        if condition is not None:
            raise InvalidStatement("write INSERT OVERWRITE t, or INSERT INTO t REPLACE WHERE condition")
        return ALL_TIME, None
    if condition is None:
        return None
    found = whole_scope(parse(condition_text(condition, node, target), target.schema).tree, target.spec)
    if found is None:
        raise InvalidStatement(
            "REPLACE WHERE takes an interval of the time column, or values of cluster columns, or both: "
            "at >= '2013-01-05' AND at < '2013-01-06' AND client IN (1, 2)",
            time=target.time or "none",
            cluster_by=",".join(target.cluster_by) or "none",
        )
    return found


def _typed(values: exp.Values, kinds: Sequence[pa.DataType]) -> exp.Expr:
    """VALUES in which numbers for a double, and times and dates in quotes, are typed by their columns."""
    values = values.copy()
    for row in values.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        for cell, kind in zip(cells, kinds, strict=False):
            typed = typed_cell(cell, kind)
            if typed is not cell:
                put(cell, typed)
    return values


def typed_cell(cell: exp.Expr, kind: pa.DataType) -> exp.Expr:
    """A number for a double, or a time or date in quotes, typed by its column; any other value as it is."""
    literal = cell.this if isinstance(cell, exp.Neg) else cell
    wanted = _type_of(literal, kind) if isinstance(literal, exp.Literal) else None
    if wanted is None:
        return cell
    cast = exp.Cast(this=literal.copy(), to=exp.DataType(this=wanted, nested=False))
    return exp.Neg(this=cast) if isinstance(cell, exp.Neg) else cast


def _type_of(literal: exp.Literal, kind: pa.DataType) -> exp.DType | None:
    if pa.types.is_floating(kind) and not literal.is_string:
        return exp.DType.DOUBLE
    if pa.types.is_date(kind) and literal.is_string:
        return exp.DType.DATE
    if pa.types.is_timestamp(kind) and literal.is_string:
        return exp.DType.TIMESTAMPTZ if kind.tz else exp.DType.TIMESTAMPNTZ
    return None


def _with_columns(rows: Any, columns: Sequence[str], missing: Sequence[str]) -> Any:
    """The rows under the table's names, with nulls where none are given."""
    if not isinstance(rows, pa.Table):
        nulls = [f"NULL AS `{name}`" for name in missing]
        return rows.toDF(*columns).selectExpr("*", *nulls)
    rows = rows.rename_columns(list(columns))
    for name in missing:
        rows = rows.append_column(name, pa.nulls(rows.num_rows))
    return rows
