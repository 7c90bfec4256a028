"""INSERT, DELETE, UPDATE and MERGE: statements that become calls of a table's own methods, and return their commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.errors import InvalidStatement, UnknownColumn
from lakehouse.predicate.written import shown
from lakehouse.session.session import Session
from lakehouse.sql.allowed import check_parts
from lakehouse.sql.condition import renamed, written_again
from lakehouse.sql.merge import Sides, clauses
from lakehouse.sql.names import table_name
from lakehouse.sql.query import bind, fixed_rows
from lakehouse.table.tables import open_table, table_names

if TYPE_CHECKING:
    from lakehouse.core.commit import Commit
    from lakehouse.table.table import Table


def insert(session: Session, tree: exp.Insert, *, as_of: Any, engine: str) -> Commit:
    """Append the rows of VALUES (calculated in process) or of a query (by the engine), column by column from the left.

    Columns that are not named become null.
    """
    _check_parts(tree, ("this", "expression", "by_name", "with_"))
    named = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    if named and tree.args.get("by_name"):
        raise InvalidStatement("columns are listed, or taken BY NAME from the query, but not both")
    target = _target(session, tree.this.this if isinstance(tree.this, exp.Schema) else tree.this)
    columns = [_column(target, name) for name in named] or list(target.schema.names)
    source = tree.expression
    if isinstance(source, exp.Values) and tree.args.get("with_") is None:
        rows = fixed_rows(session, _typed(source, [target.schema.field(name).type for name in columns]))
        return _append(target, rows, columns, by_name=False)
    with bind(session, _under(tree, source), as_of=as_of, engine=engine) as query:
        return _append(target, query.rows(), columns, by_name=bool(tree.args.get("by_name")))


def _append(target: Table, rows: Any, columns: list[str], *, by_name: bool) -> Commit:
    found = _names(rows)
    if by_name:
        columns = [_column(target, name) for name in found]
    if len(found) != len(columns):
        raise InvalidStatement(
            "as many values as columns are needed; name the columns: INSERT INTO t (a, b) ...",
            columns=",".join(columns),
            found=len(found),
        )
    missing = [name for name in target.schema.names if name not in columns]
    return target.append(_with_columns(rows, columns, missing))


def delete(session: Session, tree: exp.Delete) -> Commit:
    """Delete the rows that pass WHERE; without one, all."""
    _check_parts(tree, ("this", "where"))
    target = _target(session, tree.this)
    return target.delete(_where(tree, target))


def update(session: Session, tree: exp.Update) -> Commit:
    """Set columns of the rows that pass WHERE; without one, of all."""
    _check_parts(tree, ("this", "expressions", "where"))
    target = _target(session, tree.this)
    sides = Sides.of(target.schema.names, _aliases(tree.this))
    changes = sides.assignments(tree.expressions)
    return target.update(changes, _where(tree, target))


def merge(session: Session, tree: exp.Merge, *, as_of: Any, engine: str) -> Commit:
    """Merge the rows of a table or query into a table."""
    _check_parts(tree, ("this", "using", "on", "whens", "with_"))
    target = _target(session, tree.this)
    source, aliases = _source(tree)
    with bind(session, source, as_of=as_of, engine=engine) as query:
        rows = query.rows()
        sides = Sides.of(target.schema.names, _aliases(tree.this), _names(rows), aliases)
        on = written_again(renamed(tree.args["on"], sides.prefixed))
        return target.merge_when(rows, on, clauses(tree.args["whens"].expressions, sides))


def _source(tree: exp.Merge) -> tuple[exp.Expr, tuple[str, ...]]:
    """The query of a MERGE's rows, and what its conditions call it."""
    using = tree.args["using"]
    aliases = _aliases(using)
    if not isinstance(using, exp.Subquery | exp.Table | exp.Values):
        raise InvalidStatement("MERGE takes a table or a query in parentheses after USING", found=shown(using))
    return _under(tree, exp.Select(expressions=[exp.Star()], from_=exp.From(this=using.copy()))), aliases


def _under(statement: exp.Expr, query: exp.Expr) -> exp.Expr:
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


def _aliases(node: exp.Expr) -> tuple[str, ...]:
    """The one name by which a statement calls a table or query."""
    name = node.alias_or_name
    return (name,) if name else ()


def _target(session: Session, node: exp.Expr) -> Table:
    if isinstance(node, exp.Table) and node.args.get("version") is not None:
        raise InvalidStatement("only the newest version of a table can be changed", table=node.name)
    name = table_name(node, table_names(session))
    check_parts(node, ("this", "alias"))
    if node.args.get("alias") is not None:
        check_parts(node.args["alias"], ("this",))
    return open_table(session, name)


def _check_parts(tree: exp.Expr, allowed: Sequence[str]) -> None:
    extra = [key for key, value in tree.args.items() if value and key not in allowed]
    if "overwrite" in extra:
        raise InvalidStatement("INSERT OVERWRITE is not taken; use table.replace(data, interval)")
    if extra:
        raise InvalidStatement("not allowed in this statement", statement=tree.key.upper(), found=extra[0].rstrip("_"))


def _where(tree: exp.Expr, target: Table) -> str:
    where = tree.args.get("where")
    if where is None:
        return "TRUE"
    if where.this.find(exp.Query) is not None:
        raise InvalidStatement("a sub-query cannot stand here; use MERGE INTO ... USING (sub-query)")
    sides = Sides.of(target.schema.names, _aliases(tree.this))
    return written_again(renamed(where.this, sides.bare))


def _column(target: Table, name: Any) -> str:
    if not isinstance(name, str | exp.Identifier):
        raise InvalidStatement("write the columns' names only: INSERT INTO t (a, b) ...", found=shown(name))
    written = name if isinstance(name, str) else name.name
    for column in target.schema.names:
        if column.casefold() == written.casefold():
            return str(column)
    raise UnknownColumn("no such column in the table", column=written, columns=",".join(target.schema.names))


def _typed(values: exp.Values, kinds: Sequence[pa.DataType]) -> exp.Expr:
    """VALUES in which numbers for a double, and times and dates in quotes, are typed by their columns."""
    values = values.copy()
    for row in values.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        for cell, kind in zip(cells, kinds, strict=False):
            literal = cell.this if isinstance(cell, exp.Neg) else cell
            wanted = _type_of(literal, kind) if isinstance(literal, exp.Literal) else None
            if wanted is not None:
                literal.replace(exp.Cast(this=literal.copy(), to=exp.DataType(this=wanted, nested=False)))
    return values


def _type_of(literal: exp.Literal, kind: pa.DataType) -> exp.DType | None:
    if pa.types.is_floating(kind) and not literal.is_string:
        return exp.DType.DOUBLE
    if pa.types.is_date(kind) and literal.is_string:
        return exp.DType.DATE
    if pa.types.is_timestamp(kind) and literal.is_string:
        return exp.DType.TIMESTAMPTZ if kind.tz else exp.DType.TIMESTAMPNTZ
    return None


def _names(rows: Any) -> list[str]:
    return list(rows.column_names if isinstance(rows, pa.Table) else rows.columns)


def _with_columns(rows: Any, columns: Sequence[str], missing: Sequence[str]) -> Any:
    """The rows under the table's names, with nulls where none are given."""
    if not isinstance(rows, pa.Table):
        nulls = [f"NULL AS `{name}`" for name in missing]
        return rows.toDF(*columns).selectExpr("*", *nulls)
    rows = rows.rename_columns(list(columns))
    for name in missing:
        rows = rows.append_column(name, pa.nulls(rows.num_rows))
    return rows
