"""CREATE OR REPLACE TABLE AS: a query's rows in the place of a table's, or a new table in the place of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from sqlglot import exp

from lakehouse.core.beside import replacement
from lakehouse.core.interval import ALL_TIME
from lakehouse.core.spec import TableSpec
from lakehouse.schema import define_table
from lakehouse.session.session import Session
from lakehouse.sql.define import create_arguments, new_name
from lakehouse.sql.insert import create_as
from lakehouse.sql.query import bind
from lakehouse.sql.target import check_statement, refuse_view
from lakehouse.table.tables import create_table, dropped_unless_filled, open_table, table_names

if TYPE_CHECKING:
    from lakehouse.table.table import Table


def replace_as(session: Session, tree: exp.Create, *, as_of: Any, engine: str | None) -> Table:
    """Put a query's columns and rows in the place of a table's; create the table if there is none.

    Where the table's columns and layout are those that the statement says, it stays the same table: its rows and its
    properties are replaced in one commit, as rows are by INSERT OVERWRITE, and its history goes on. Else a new table,
    which nobody sees, is filled and takes the name in one commit, in which the old one is dropped. A query that fails
    changes nothing; what a process that died has filled is dropped by a collection.
    """
    check_statement(tree, ("this", "kind", "replace", "properties", "expression"))
    name = new_name(tree.this)
    refuse_view(session, tree.this)
    if name not in table_names(session):
        created = tree.copy()
        created.set("replace", None)
        return create_as(session, created, as_of=as_of, engine=engine)
    with bind(session, tree.expression, as_of=as_of, engine=engine) as query:
        columns = pa.schema([field.with_nullable(True) for field in query.schema()])
    arguments = create_arguments(tree, columns.names)
    target = open_table(session, name)
    spec = define_table(name, columns, **arguments)
    if not _is_same(spec, target.spec):
        return _exchanged(session, tree, name, columns, arguments, as_of, engine)
    with target.begin_replace(ALL_TIME) as operation:  # before the query, as for INSERT OVERWRITE
        if target.properties != spec.properties:
            operation.set_table_properties(spec.properties)
        point = operation.base_version if as_of is None else as_of
        with bind(session, tree.expression, as_of=point, engine=engine) as query:
            operation.write(query.rows())
        operation.commit()
    return open_table(session, name)


def _is_same(spec: TableSpec, held: TableSpec) -> bool:
    """Whether a table has the columns and layout that a statement says; comments of columns do not count."""
    return (
        spec.schema.equals(held.schema)
        and not held.defaults_for_new
        and all(
            getattr(spec, part) == getattr(held, part)
            for part in ("time", "grain", "primary_key", "cluster_by", "write_order")
        )
    )


def _exchanged(
    session: Session,
    tree: exp.Create,
    name: str,
    columns: pa.Schema,
    arguments: dict[str, Any],
    as_of: Any,
    engine: str | None,
) -> Table:
    """A new table with the rows, in the place of the old one."""
    new = replacement(uuid4().hex)
    table = create_table(session, new, columns, **arguments)
    with dropped_unless_filled(session, new):
        with bind(session, tree.expression, as_of=as_of, engine=engine) as query:
            table.append(query.rows())
        session.catalog.replace_table(name, new)
    return open_table(session, name)
