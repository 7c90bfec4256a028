"""SQL statements over a lake's tables: parsed, checked against a closed list, and run by one engine or the other."""

from lakehouse.sql.run import run_statement

__all__ = ["run_statement"]
