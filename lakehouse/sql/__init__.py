"""SQL statements over a lake's tables: parsed, checked against a closed list, and run by one engine or the other."""

from lakehouse.sql.asking import Allowed, ask_apart
from lakehouse.sql.looking import Answer, answer
from lakehouse.sql.run import run_statement
from lakehouse.sql.views import open_views

__all__ = ["Allowed", "Answer", "answer", "ask_apart", "open_views", "run_statement"]
