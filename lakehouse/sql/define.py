"""CREATE TABLE and DROP TABLE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lakehouse.core.chunk import DIVIDING
from lakehouse.errors import InvalidName, InvalidStatement, TableNotFound
from lakehouse.predicate.dialect import DIALECT
from lakehouse.predicate.parsing import PARSER_ERRORS
from lakehouse.predicate.written import shown
from lakehouse.schema.read import refuse_finer_times
from lakehouse.session.session import Session
from lakehouse.sql.allowed import check_parts
from lakehouse.sql.names import plain_parts, table_name
from lakehouse.sql.target import check_statement
from lakehouse.sql.view import live_view
from lakehouse.table.tables import create_table as create
from lakehouse.table.tables import table_names

if TYPE_CHECKING:
    from lakehouse.table.table import Table

GRAINS = {f"{grain.value}{end}": grain.value for grain in DIVIDING for end in ("", "s")}
_DIVIDED = (exp.Anonymous, exp.PartitionedByBucket)


def create_table(session: Session, tree: exp.Create) -> Table:
    """Create a table.

    ``PARTITIONED BY (days(ts), bucket(16, c))`` says the time column, the grain and a hashed cluster column; so does
    ``CLUSTERED BY (c) INTO 16 BUCKETS``, and ``CLUSTER BY (c)`` one that is not hashed. One that says no time column
    makes a timeless table.
    """
    schema = tree.this
    if not isinstance(schema, exp.Schema):
        raise InvalidStatement(
            "write CREATE TABLE name (column type, ...), and PARTITIONED BY (days(time column)) where rows have a time"
        )
    check_statement(tree, ("this", "kind", "exists", "properties"))
    columns = [one for one in schema.expressions if isinstance(one, exp.ColumnDef)]
    names = {one.name.casefold(): one.name for one in columns}
    arguments = create_arguments(tree, list(names.values()))
    name = new_name(schema.this)
    ddl = ", ".join(_column_text(one) for one in columns)
    key = _primary_key(schema, columns, names)
    return create(session, name, ddl, if_not_exists=bool(tree.args.get("exists")), primary_key=key, **arguments)


def create_arguments(tree: exp.Create, columns: Sequence[str]) -> dict[str, Any]:
    """What a CREATE TABLE says beside columns: time column, grain, cluster columns, properties and order of writes."""
    if tree.args.get("kind") != "TABLE":
        raise InvalidStatement("only tables are created: CREATE TABLE", found=str(tree.args.get("kind")))
    names = {one.casefold(): one for one in columns}
    arguments: dict[str, Any] = {"cluster_by": {}, "properties": {}}
    for one in tree.args["properties"].expressions if tree.args.get("properties") else ():
        _read_property(one, names, arguments)
    return arguments


def new_name(node: exp.Expr) -> str:
    """The name of a table to be. Raises `InvalidName` for one with a prefix."""
    parts = plain_parts(node)
    if len(parts) != 1:
        raise InvalidName(
            "tables have plain names, without a prefix but default", table=".".join(part.name for part in parts)
        )
    check_parts(node, ("this", "db"))
    return str(parts[0].name)


def _column_text(column: exp.ColumnDef) -> str:
    column = column.copy()
    kept = [
        one for one in column.args.get("constraints") or () if not isinstance(one.kind, exp.PrimaryKeyColumnConstraint)
    ]
    column.set("constraints", kept)
    for kind in column.find_all(exp.DataType):
        refuse_finer_times(kind, column.name)  # the writer leaves the size out
    try:
        return str(column.sql(dialect=DIALECT, identify=True, comments=False))
    except PARSER_ERRORS as error:
        raise InvalidStatement("a column needs a name and a type, as in client BIGINT", column=column.name) from error


def _primary_key(schema: exp.Schema, columns: Sequence[exp.ColumnDef], names: Mapping[str, str]) -> tuple[str, ...]:
    listed: list[str] = []
    for one in schema.expressions:
        if isinstance(one, exp.PrimaryKey):
            check_parts(one, ("expressions", "include"))
            if one.args.get("include") is not None:
                check_parts(one.args["include"], ())
            listed += [_real(part, names) for part in one.expressions]
        elif not isinstance(one, exp.ColumnDef):
            raise InvalidStatement("beside columns a table takes PRIMARY KEY (a, b) only", found=shown(one))
    for column in columns:
        kinds = [one.kind for one in column.args.get("constraints") or ()]
        for kind in kinds:
            if isinstance(kind, exp.PrimaryKeyColumnConstraint):
                check_parts(kind, ())
                listed.append(column.name)
    return tuple(listed)


def _real(node: exp.Expr, names: Mapping[str, str]) -> str:
    """A column's name as it was declared; an unknown one as it is, for `Lake.create_table` to refuse."""
    named = node.this if isinstance(node, exp.Ordered) else node
    if not isinstance(named, exp.Identifier | exp.Column) or (node is not named and node.args.get("desc")):
        raise InvalidStatement("a column's name is expected here", found=shown(node))
    check_parts(named, ("this", "quoted"))
    return names.get(node.name.casefold(), str(node.name))


def _read_property(node: exp.Expr, names: Mapping[str, str], arguments: dict[str, Any]) -> None:
    match node:
        case exp.FileFormatProperty() if node.name.lower() == "lakehouse":
            pass
        case exp.PartitionedByProperty():
            check_parts(node.this, ("expressions",))
            for part in node.this.expressions:
                _read_partition(part, names, arguments)
        case exp.ClusteredByProperty():
            check_parts(node, ("expressions", "buckets"))
            buckets = _buckets(node.args.get("buckets"))
            arguments["cluster_by"].update(dict.fromkeys((_real(one, names) for one in node.expressions), buckets))
        case exp.ClusterProperty():
            check_parts(node, ("expressions",))
            arguments["cluster_by"].update(dict.fromkeys((_real(one, names) for one in node.expressions), 0))
        case exp.SchemaCommentProperty():
            arguments["properties"]["comment"] = node.this.name
        case exp.Property() if type(node) is exp.Property:
            _read_pair(node, arguments)
        case _:
            raise InvalidStatement(
                "a table takes USING lakehouse, PARTITIONED BY, CLUSTER(ED) BY, COMMENT and TBLPROPERTIES only",
                found=shown(node),
            )


def _buckets(node: exp.Expr | None) -> int:
    if not isinstance(node, exp.Literal) or not node.name.isdecimal():
        raise InvalidStatement(
            "say how many buckets, as in bucket(16, client)", found="" if node is None else shown(node)
        )
    return int(node.name)


def _read_partition(part: exp.Expr, names: Mapping[str, str], arguments: dict[str, Any]) -> None:
    check_parts(part, ("this", "expressions", "expression") if type(part) in _DIVIDED else ("this",))
    if isinstance(part, exp.PartitionedByBucket):
        arguments["cluster_by"][_real(part.this, names)] = _buckets(part.expression)
        return
    called = part.name.lower() if isinstance(part, exp.Anonymous) else part.key
    inner = part.expressions[0] if isinstance(part, exp.Anonymous) and len(part.expressions) == 1 else part.this
    column = inner.this if isinstance(inner, exp.TsOrDsToDate) else inner
    if called not in GRAINS or not isinstance(column, exp.Column):
        raise InvalidStatement(
            "tables are divided by time, and cluster columns: PARTITIONED BY (days(ts), bucket(16, client))",
            found=shown(part),
        )
    if "time" in arguments:
        raise InvalidStatement("a table is divided by one time column", found=shown(part))
    arguments.update(time=_real(column, names), grain=GRAINS[called])


def _read_pair(node: exp.Property, arguments: dict[str, Any]) -> None:
    key = ".".join(one.name for one in node.this.find_all(exp.Identifier)) or str(node.this.name)
    value = node.args["value"]
    if not isinstance(value, exp.Literal | exp.Boolean):
        raise InvalidStatement("a property's value is a text, number or boolean", key=key, found=shown(value))
    text = str(value.this).lower() if isinstance(value, exp.Boolean) else str(value.name)
    if key == "write_order":
        arguments["write_order"] = text
    else:
        arguments["properties"][key] = text


def drop_table(session: Session, tree: exp.Drop) -> None:
    """Take a table out of the lake; with IF EXISTS, where it is there."""
    check_statement(tree, ("tables", "exists", "kind"))
    tables = tree.args.get("tables") or []
    if tree.args.get("kind") != "TABLE" or len(tables) != 1:
        raise InvalidStatement("write DROP TABLE name")
    view = live_view(session, tables[0])
    if view is not None:
        raise InvalidStatement("this is a view; write DROP VIEW", view=view.name)
    try:
        name = table_name(tables[0], table_names(session))
        check_parts(tables[0], ("this", "db"))
        session.catalog.drop_table(name)
    except TableNotFound:
        if not tree.args.get("exists"):
            raise
