"""SQL statements over a lake's tables: parsed, checked against a closed list, and run by one engine or the other."""

from lakehouse.sql.asking import Allowed, ask_apart
from lakehouse.sql.looking import Answer, answer
from lakehouse.sql.statements import Statements

__all__ = ["Allowed", "Answer", "Statements", "answer", "ask_apart"]
