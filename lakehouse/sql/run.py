"""One statement, from text to result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lakehouse.errors import InvalidInput
from lakehouse.sql.allowed import refused
from lakehouse.sql.change import delete, insert, merge, update
from lakehouse.sql.define import create_table, describe, drop_table, show_tables
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.query import bind

if TYPE_CHECKING:
    from lakehouse.lake import Lake

ENGINES = ("spark", "duckdb")


def run_statement(lake: Lake, text: str, *, as_of: Any = None, engine: str = "spark") -> Any:
    """Run one statement of Spark's SQL over a lake's tables; see `Lake.sql`."""
    if engine not in ENGINES:
        raise InvalidInput("no such engine; use spark or duckdb", engine=repr(engine))
    statement = parse_statement(text)
    match statement.tree:
        case exp.Expr() as tree if statement.kind == "explain":
            return bind(lake, tree, as_of=as_of, engine=engine).explain()
        case exp.Insert() as tree:
            return insert(lake, tree, as_of=as_of, engine=engine)
        case exp.Merge() as tree:
            return merge(lake, tree, as_of=as_of, engine=engine)
        case exp.Query() | exp.Values() as tree:
            return bind(lake, tree, as_of=as_of, engine=engine).run()
    if as_of is not None:
        raise InvalidInput("only queries are run as of a version; leave as_of out", as_of=as_of)
    return _run_on_table(lake, statement.tree)


def _run_on_table(lake: Lake, tree: exp.Expr | None) -> Any:
    match tree:
        case None:
            return show_tables(lake)
        case exp.Describe():
            return describe(lake, tree)
        case exp.Delete():
            return delete(lake, tree)
        case exp.Update():
            return update(lake, tree)
        case exp.Create():
            return create_table(lake, tree)
        case exp.Drop():
            return drop_table(lake, tree)
    raise refused(tree)
