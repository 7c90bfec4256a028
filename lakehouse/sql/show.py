"""SHOW, DESCRIBE and USE: properties of tables, as Arrow tables; no row is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.core.spec import TableSpec
from lakehouse.core.view import View
from lakehouse.errors import InvalidStatement
from lakehouse.predicate.literals import quoted_text
from lakehouse.predicate.written import shown
from lakehouse.session.session import Session
from lakehouse.sql.allowed import check_parts
from lakehouse.sql.define_view import described_query, described_view, view_names, view_text
from lakehouse.sql.functions import NAMES
from lakehouse.sql.names import find_table, table_name
from lakehouse.sql.system import CATALOG, SCHEMA
from lakehouse.sql.target import check_statement
from lakehouse.sql.types import column_type_name, default_text
from lakehouse.sql.view import live_view, view_of
from lakehouse.sql.words import Show
from lakehouse.table.tables import open_table, table_names

if TYPE_CHECKING:
    from lakehouse.table.table import Table


_SCHEMA_WORDS = ("SCHEMA", "DATABASE", "NAMESPACE")


def show(session: Session, asked: Show) -> pa.Table:
    """What a SHOW asks for."""
    if asked.table is None:
        return _LISTED[asked.what](session, asked.like)
    view = view_of(session, asked.table)
    if view is not None:
        return _of_view(view, asked.what)
    return _SHOWN[asked.what](open_table(session, find_table(asked.table, table_names(session))), asked.key)


def is_like(name: str, pattern: str | None) -> bool:
    """Whether a name fits a pattern of SHOW: ``*`` is any text, ``|`` stands between patterns, case does not count.

    >>> is_like("Trips", "tr*s|x"), is_like("trips", "rip"), is_like("trips", None)
    (True, False, True)
    """
    return pattern is None or any(_fits(name.casefold(), one.strip().casefold()) for one in pattern.split("|"))


def _fits(name: str, pattern: str) -> bool:
    """In time of their lengths' product: each piece is looked for once, from the left."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == first
    *middle, last = rest
    if not name.startswith(first) or not name.endswith(last) or len(name) < len(first) + len(last):
        return False
    place, end = len(first), len(name) - len(last)
    for piece in middle:
        found = name.find(piece, place, end)
        if found < 0:
            return False
        place = found + len(piece)
    return True


def _tables(session: Session, like: str | None) -> pa.Table:
    """A row for each table: name, time column, grain and newest version."""
    tables = [open_table(session, name) for name in table_names(session) if is_like(name, like)]
    return pa.table(
        {
            "table": pa.array([one.name for one in tables], pa.string()),
            "time": pa.array([one.time for one in tables], pa.string()),
            "grain": pa.array([one.grain for one in tables], pa.string()),
            "version": pa.array([one.version for one in tables], pa.int64()),
        }
    )


def _schemas(session: Session, like: str | None) -> pa.Table:
    return pa.table({"namespace": pa.array([one for one in (SCHEMA,) if is_like(one, like)], pa.string())})


def _catalogs(session: Session, like: str | None) -> pa.Table:
    return pa.table({"catalog": pa.array([one for one in (CATALOG,) if is_like(one, like)], pa.string())})


def _current(session: Session, like: str | None) -> pa.Table:
    return pa.table({"catalog": pa.array([CATALOG]), "namespace": pa.array([SCHEMA])})


def _functions(session: Session, like: str | None) -> pa.Table:
    return pa.table({"function": pa.array([one for one in NAMES.split() if is_like(one, like)], pa.string())})


def _views(session: Session, like: str | None) -> pa.Table:
    """A row for each view, in the columns that Spark lists them in."""
    names = [one for one in view_names(session) if is_like(one, like)]
    return pa.table(
        {
            "namespace": pa.array([SCHEMA] * len(names), pa.string()),
            "viewName": pa.array(names, pa.string()),
            "isTemporary": pa.array([False] * len(names), pa.bool_()),
        }
    )


def _of_view(view: View, what: str) -> pa.Table:
    match what:
        case "COLUMNS":
            return pa.table({"col_name": pa.array(view.names, pa.string())})
        case "CREATE TABLE":
            return pa.table({"createtab_stmt": pa.array([view_text(view)], pa.string())})
    raise InvalidStatement("a view has no properties", view=view.name)


def _columns(table: Table, key: str | None) -> pa.Table:
    return pa.table({"col_name": pa.array(table.schema.names, pa.string())})


def _create_table(table: Table, key: str | None) -> pa.Table:
    return pa.table({"createtab_stmt": pa.array([create_text(table)], pa.string())})


def _table_properties(table: Table, key: str | None) -> pa.Table:
    found = [(name, held) for name, held in sorted(_all_properties(table).items()) if key in (None, name)]
    return pa.table({"key": pa.array([name for name, _ in found], pa.string()),
                     "value": pa.array([held for _, held in found], pa.string())})  # fmt: skip


def _all_properties(table: Table) -> dict[str, str]:
    """The properties that a CREATE TABLE says: the table's, and the order of writes where it is not the usual one."""
    order = table.spec.write_order
    return {**table.properties, **({} if order == "commit" else {"write_order": order})}


_LISTED: Mapping[str, Callable[[Session, str | None], pa.Table]] = {
    "TABLES": _tables,
    "SCHEMAS": _schemas,
    "VIEWS": _views,
    "CATALOGS": _catalogs,
    "CURRENT SCHEMA": _current,
    "FUNCTIONS": _functions,
}
_SHOWN: Mapping[str, Callable[[Table, str | None], pa.Table]] = {
    "COLUMNS": _columns,
    "CREATE TABLE": _create_table,
    "TBLPROPERTIES": _table_properties,
}


def create_text(table: Table) -> str:
    """A CREATE TABLE that makes a table of the same columns, layout and properties."""
    columns = [f"{_quoted(one.name)} {_column_text(table, one)}" for one in table.schema]
    if table.primary_key:
        columns.append(f"PRIMARY KEY ({', '.join(map(_quoted, table.primary_key))})")
    lines = [f"CREATE TABLE {_quoted(table.name)} (", ",\n".join(f"  {one}" for one in columns), ")", "USING lakehouse"]
    if table.time:
        lines.append(f"PARTITIONED BY ({table.grain}s({_quoted(table.time)}))")
    for name, buckets in table.cluster_by.items():
        lines.append(
            f"CLUSTERED BY ({_quoted(name)}) INTO {buckets} BUCKETS" if buckets else f"CLUSTER BY ({_quoted(name)})"
        )
    held = [f"{quoted_text(name)} = {quoted_text(value)}" for name, value in sorted(_all_properties(table).items())]
    if held:
        lines.append(f"TBLPROPERTIES ({', '.join(held)})")
    return "\n".join(lines)


def _column_text(table: Table, column: pa.Field) -> str:
    """A column as CREATE TABLE says it, but for its name."""
    default, comment = default_text(table.spec, column), table.spec.history(column).comment
    parts = [
        column_type_name(column, has_comments=True),
        "" if column.nullable else "NOT NULL",
        "" if default is None else f"DEFAULT {default}",
        f"COMMENT {quoted_text(comment)}" if comment else "",
    ]
    return " ".join(filter(None, parts))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def use(tree: exp.Use) -> None:
    """USE default, which changes nothing: the lake has one schema. Raises `InvalidStatement` for any other."""
    check_statement(tree, ("this", "kind"))
    kind = str(tree.args.get("kind") or "SCHEMA").upper()
    node = tree.this
    if kind not in _SCHEMA_WORDS or not isinstance(node, exp.Table) or len(node.parts) != 1:
        raise InvalidStatement("write USE default")
    _require_schema(node)


def describe(session: Session, tree: exp.Describe, as_of: Any = None) -> pa.Table:
    """A row for each column at a version: name, type in Spark's words, whether it takes nulls, what it is to the table.

    DESCRIBE EXTENDED also gives its default and its comment; DESCRIBE HISTORY gives the table's commits instead, newest
    first, at any version.
    """
    check_statement(tree, ("this", "kind", "style"))
    style = str(tree.args.get("style") or "").upper()
    if isinstance(tree.this, exp.Query | exp.Values):
        check_parts(tree, ("this",))
        return described_query(session, tree.this, as_of)
    kind = str(tree.args.get("kind") or "TABLE").upper()
    if kind in _SCHEMA_WORDS:
        return _described_schema(tree.this)
    if kind != "TABLE" or style not in (
        "",
        "EXTENDED",
        "FORMATTED",
        "HISTORY",
    ):
        raise InvalidStatement(
            "write DESCRIBE table, DESCRIBE HISTORY table, DESCRIBE SCHEMA default or DESCRIBE QUERY query",
            found=f"{kind} {style}",
        )
    if not isinstance(tree.this, exp.Table):
        raise InvalidStatement("write DESCRIBE table, or DESCRIBE QUERY query", found=shown(tree.this))
    check_parts(tree.this, ("this", "db"))
    view = live_view(session, tree.this)
    if view is not None:
        if style == "HISTORY":
            raise InvalidStatement("a view has no rows, and no history of them", view=view.name)
        return described_view(session, view)
    table = open_table(session, table_name(tree.this, table_names(session)))
    if style == "HISTORY":
        history: pa.Table = table.log(definitions=True).to_arrow()
        return history
    # A table that a version had not yet, or has no more, is VersionNotFound, as for its rows.
    return _described(
        table.spec if as_of is None else table.unheld_scan(as_of=as_of).spec,
        has_notes=style in ("EXTENDED", "FORMATTED"),
    )


def _described_schema(node: exp.Expr) -> pa.Table:
    """What Spark says of a schema, of the only one that there is."""
    _require_schema(node)
    said = {"Catalog Name": CATALOG, "Namespace Name": SCHEMA, "Comment": ""}
    return pa.table({"info_name": pa.array(said, pa.string()), "info_value": pa.array(said.values(), pa.string())})


def _require_schema(node: exp.Expr) -> None:
    if not isinstance(node, exp.Table) or len(node.parts) != 1:
        raise InvalidStatement("the lake has one schema", schema=SCHEMA)
    check_parts(node, ("this",))
    if node.name.casefold() != SCHEMA:
        raise InvalidStatement("the lake has one schema", schema=SCHEMA)


def _described(spec: TableSpec, *, has_notes: bool) -> pa.Table:
    columns = {
        "column": pa.array(spec.schema.names, pa.string()),
        "type": pa.array([column_type_name(field) for field in spec.schema], pa.string()),
        "nullable": pa.array([field.nullable for field in spec.schema], pa.bool_()),
        "role": pa.array([role_in(spec, name) for name in spec.schema.names], pa.string()),
    }
    if has_notes:
        columns["default"] = pa.array([default_text(spec, field) for field in spec.schema], pa.string())
        columns["comment"] = pa.array([spec.history(field).comment or None for field in spec.schema], pa.string())
    return pa.table(columns)


def role_in(spec: TableSpec, name: str) -> str:
    """What a column is to its table, in words; nothing for one that is only read."""
    buckets = spec.cluster_by.get(name)
    roles = [
        f"time by {spec.grain.value}" if name == spec.time else "",
        "primary key" if name in spec.primary_key else "",
        "" if buckets is None else f"cluster in {buckets} buckets" if buckets else "cluster",
    ]
    return ", ".join(role for role in roles if role)
