"""One statement, from text to result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from lakehouse.engine.duckdb import naming_ends
from lakehouse.errors import InvalidStatement, UnknownEngine
from lakehouse.session.session import Session
from lakehouse.sql.allowed import refused
from lakehouse.sql.alter import alter_table, alter_view, comment_on
from lakehouse.sql.asking import Limits, query_within
from lakehouse.sql.change import delete, merge, update
from lakehouse.sql.define import create_table, drop_table
from lakehouse.sql.define_view import create_view_statement, drop_view_statement
from lakehouse.sql.insert import create_as, insert, truncate
from lakehouse.sql.parse import Words, parse_statement
from lakehouse.sql.query import bind, bind_again
from lakehouse.sql.replace_table import replace_as
from lakehouse.sql.script import run_script
from lakehouse.sql.show import describe, show, use
from lakehouse.sql.values import Values, read_values

_ALTERING: Mapping[str, Callable[[Session, Words], Any]] = {
    "alter": alter_table,
    "alter view": alter_view,
    "comment": comment_on,
}
ENGINES = ("spark", "duckdb")


def run_statement(
    session: Session,
    text: Any,
    *,
    as_of: Any = None,
    engine: str | None = None,
    args: Any = None,
    limits: Limits | None = None,
) -> Any:
    """Run one statement of Spark's SQL over a lake's tables; see `Lake.sql`."""
    if engine is not None and engine not in ENGINES:
        raise UnknownEngine("no such engine; use spark or duckdb", engine=repr(engine)[:100])
    with session.works.runs(), naming_ends():
        if limits is not None:
            return query_within(session, text, as_of=as_of, engine=engine, args=args, limits=limits)
        return _run(session, text, as_of=as_of, engine=engine, args=args)


def _run(session: Session, text: Any, *, as_of: Any, engine: str | None, args: Any) -> Any:
    values = read_values(args)
    again = bind_again(session, text, as_of=as_of, engine=engine) if values is None and isinstance(text, str) else None
    if again is not None:
        return again.run()
    statement = parse_statement(text, values)
    if statement.kind == "script":
        return run_script(session, statement.steps, as_of=as_of, engine=engine)
    match statement.tree:
        case exp.Expr() as tree if statement.kind == "explain":
            return bind(session, tree, as_of=as_of, engine=engine).explain()
        case exp.Insert() as tree:
            return insert(session, tree, as_of=as_of, engine=engine)
        case exp.Merge() as tree:
            return merge(session, tree, as_of=as_of, engine=engine)
        case exp.Create() as tree if tree.args.get("kind") != "VIEW" and tree.args.get("expression") is not None:
            create = replace_as if tree.args.get("replace") else create_as
            return create(session, tree, as_of=as_of, engine=engine)
        case exp.Query() | exp.Values() as tree:
            return bind(session, tree, as_of=as_of, engine=engine, text=text if values is None else None).run()
    if as_of is not None:
        raise InvalidStatement("only queries are run as of a version; leave as_of out", as_of=as_of)
    if statement.show is not None:
        return show(session, statement.show)
    if statement.words is not None:
        return _ALTERING[statement.kind](session, statement.words)
    assert statement.tree is not None
    if isinstance(statement.tree, exp.Create | exp.Drop) and statement.tree.args.get("kind") == "VIEW":
        return _run_on_view(session, statement.tree, text, values)
    return _run_on_table(session, statement.tree)


def _run_on_view(session: Session, tree: exp.Create | exp.Drop, text: str, values: Values | None) -> None:
    if isinstance(tree, exp.Drop):
        drop_view_statement(session, tree)
        return
    if values is not None:
        raise InvalidStatement("a view keeps its query as it is written; write the values out")
    create_view_statement(session, tree, text)


def _run_on_table(session: Session, tree: exp.Expr) -> Any:
    match tree:
        case exp.Use():
            return use(tree)
        case exp.Describe():
            return describe(session, tree)
        case exp.Delete():
            return delete(session, tree)
        case exp.Update():
            return update(session, tree)
        case exp.TruncateTable():
            return truncate(session, tree)
        case exp.Create():
            return create_table(session, tree)
        case exp.Drop():
            return drop_table(session, tree)
    raise refused(tree)
