"""SQL statements over a lake's tables: parsed, checked against a closed list, and run by one engine or the other."""

from lakehouse.sql.asking import Allowed, Limits, ask_apart
from lakehouse.sql.define_view import create_view, drop_view, view_names
from lakehouse.sql.duckdb_views import open_views
from lakehouse.sql.looking import Answer, answer
from lakehouse.sql.run import run_statement

__all__ = [
    "Allowed",
    "Answer",
    "Limits",
    "answer",
    "ask_apart",
    "create_view",
    "drop_view",
    "open_views",
    "run_statement",
    "view_names",
]
