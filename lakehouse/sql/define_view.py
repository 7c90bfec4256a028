"""CREATE VIEW and DROP VIEW, and the rows of DESCRIBE and SHOW about a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
from sqlglot import exp

from lakehouse.arguments import refuse_surrogates
from lakehouse.core.view import View
from lakehouse.errors import AlreadyExists, InvalidName, InvalidStatement, OnlySpark, ViewNotFound
from lakehouse.predicate.literals import quoted_text
from lakehouse.predicate.written import shown
from lakehouse.schema.names import check_distinct, check_table_name
from lakehouse.session.session import Session
from lakehouse.sql.allowed import check_parts
from lakehouse.sql.names import plain_parts
from lakehouse.sql.parse import query_text
from lakehouse.sql.query import bind
from lakehouse.sql.target import check_statement
from lakehouse.sql.translation import translate
from lakehouse.sql.types import type_name
from lakehouse.sql.view import MOST_DEEP, read_query, view_of

_MOST_LETTERS = 128


def view_names(session: Session) -> list[str]:
    """Names of the views, sorted."""
    return [one.name for one in session.catalog.views() if one.is_there(None)]


def create_view(
    session: Session,
    name: str,
    text: str,
    columns: Sequence[str] | None = None,
    comment: Any = None,
    *,
    or_replace: bool = False,
    if_not_exists: bool = False,
) -> None:
    """Store a query under a name; see `Lake.create_view`."""
    check_table_name(name)
    if or_replace and if_not_exists:
        raise InvalidStatement("a view is replaced, or made if there is none, but not both", view=name)
    if comment is not None and not isinstance(comment, str):
        raise InvalidStatement("a view's comment is a text", found=repr(comment)[:100])
    query = read_query(text)
    if "\0" in text + (comment or ""):
        raise InvalidStatement("a view's text cannot hold the character of code 0", view=name)
    refuse_surrogates(comment or "", "the comment")
    try:
        translation, _ = translate(session, query, "duckdb")
    except OnlySpark:
        translation, _ = translate(session, query, "spark")
    if name.casefold() in translation.views:
        raise InvalidStatement("a view cannot read itself", view=name)
    if translation.depth >= MOST_DEEP:
        raise InvalidStatement("views are nested too deeply", view=name, most=MOST_DEEP)
    found = View(uuid4().hex, name, text, _columns(query, translation.columns, columns), comment)
    try:
        session.catalog.create_view(found, replaces=or_replace)
    except AlreadyExists as error:
        if not if_not_exists or "view" not in error.facts:
            raise


def _columns(query: exp.Expr, given: Sequence[str], named: Sequence[str] | None) -> tuple[tuple[str, str | None], ...]:
    """The view's columns with the query's; by their places where the query has no names to tell them by."""
    first = query
    while not isinstance(first, exp.Select) and isinstance(first.this, exp.Query):
        first = first.this
    items = first.expressions if isinstance(first, exp.Select) else []
    unnamed = [one for one in items if not isinstance(one, exp.Alias | exp.Column | exp.Star)]
    folded = [one.casefold() for one in given]
    if named is None:
        if unnamed:
            raise InvalidStatement("a view's columns need names; write AS and a name", found=shown(unnamed[0]))
        named = given
    if len(named) != len(given):
        raise InvalidStatement("as many names as columns are needed", names=len(named), columns=len(given))
    for one in named:
        _check_column(one)
    check_distinct(named)
    if unnamed or len(set(folded)) < len(folded):
        return tuple((name, None) for name in named)
    return tuple(zip(named, given, strict=True))


def _check_column(name: Any) -> None:
    """Raise `InvalidName` for what neither engine can name. Columns of system tables may begin with an underscore."""
    is_text = isinstance(name, str) and 0 < len(name) <= _MOST_LETTERS and name.isprintable()
    if not is_text or any(quote in name for quote in "`\"'"):
        raise InvalidName(
            "bad column name; use no quotes, backticks or control characters, and at most 128 characters",
            column=repr(name)[:200],
        )


def create_view_statement(session: Session, tree: exp.Create, text: str) -> None:
    """CREATE [OR REPLACE] VIEW [IF NOT EXISTS] v [(columns)] [COMMENT 'x'] AS query."""
    check_statement(tree, ("this", "kind", "exists", "replace", "properties", "expression"))
    schema = tree.this
    columns = [_column(one) for one in schema.expressions] if isinstance(schema, exp.Schema) else None
    said = tree.args["properties"].expressions if tree.args.get("properties") else []
    for one in said:
        if not isinstance(one, exp.SchemaCommentProperty) or len(said) > 1:
            raise InvalidStatement("a view takes its columns' names and a COMMENT only", found=shown(one))
    create_view(
        session,
        _plain_name(schema.this if isinstance(schema, exp.Schema) else schema),
        query_text(text),
        columns,
        said[0].this.name if said else None,
        or_replace=bool(tree.args.get("replace")),
        if_not_exists=bool(tree.args.get("exists")),
    )


def _column(node: exp.Expr) -> str:
    """A view's column, of which only the name is kept."""
    if isinstance(node, exp.ColumnDef) and node.args.get("kind") is not None:
        raise InvalidStatement("a view's columns have the types of its query; write their names", found=shown(node))
    if not isinstance(node, exp.Identifier):
        raise InvalidStatement("a view's columns are names only: CREATE VIEW v (a, b) AS ...", found=shown(node))
    return str(node.name)


def _plain_name(node: exp.Expr) -> str:
    parts = plain_parts(node)
    if len(parts) != 1 or not isinstance(parts[0], exp.Identifier):
        raise InvalidName("views have plain names, without a prefix but default", view=shown(node))
    check_parts(node, ("this", "db"))
    return str(parts[0].name)


def drop_view_statement(session: Session, tree: exp.Drop) -> None:
    """DROP VIEW [IF EXISTS] v."""
    check_statement(tree, ("tables", "exists", "kind"))
    tables = tree.args.get("tables") or []
    if len(tables) != 1:
        raise InvalidStatement("write DROP VIEW name, one view at a time")
    try:
        drop_view(session, _plain_name(tables[0]))
    except ViewNotFound:
        if not tree.args.get("exists"):
            raise


def drop_view(session: Session, name: str) -> None:
    """Drop a view. Raises `ViewNotFound`, and `InvalidStatement` for a table's name."""
    tables, _ = session.catalog.names()
    if view_of(session, name) is None and name.casefold() in {one.casefold() for one in tables}:
        raise InvalidStatement("this is a table; write DROP TABLE", table=name)
    session.catalog.drop_view(name)


def listed_views(session: Session) -> list[View]:
    """The views that there are now, by name."""
    return [one for one in session.catalog.views() if one.is_there(None)]


def view_text(view: View) -> str:
    """A CREATE VIEW that makes the same view."""
    columns = ", ".join(f"`{name}`" for name in view.names)
    comment = "" if view.comment is None else f"COMMENT {quoted_text(view.comment)}\n"
    return f"CREATE VIEW `{view.name}` ({columns})\n{comment}AS {view.text}"


def described_view(session: Session, view: View) -> pa.Table:
    """A row for each column, as of a table: types are those of the query, which is planned and not run."""
    node = exp.Table(this=exp.to_identifier(view.name, quoted=True))
    return described_query(session, exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)))


def described_query(session: Session, query: exp.Expr, as_of: Any = None) -> pa.Table:
    """The same of a query that has no name."""
    try:
        with bind(session, query, as_of=as_of, engine="duckdb") as bound:
            kinds = bound.schema()
    except OnlySpark:
        with bind(session, query, as_of=as_of, engine="spark") as bound:
            kinds = bound.schema()
    return pa.table(
        {
            "column": pa.array(kinds.names, pa.string()),
            "type": pa.array([_type_name(kind) for kind in kinds.types], pa.string()),
            "nullable": pa.array([True] * len(kinds), pa.bool_()),
            "role": pa.array([""] * len(kinds), pa.string()),
        }
    )


def _type_name(kind: Any) -> str:
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", kind.tz and "UTC")
    try:
        return type_name(kind)
    except KeyError:
        return str(kind).upper()
