"""SQL statements over a lake's tables: parsed, checked against a closed list, and run by one engine or the other."""

from lakehouse.sql.asking import Allowed, Limits, ask_apart
from lakehouse.sql.looking import Answer, answer
from lakehouse.sql.run import run_statement

__all__ = ["Allowed", "Answer", "Limits", "answer", "ask_apart", "run_statement"]
