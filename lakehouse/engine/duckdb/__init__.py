"""The engine that runs in this process."""

from lakehouse.engine.duckdb.engine import DuckDBEngine
from lakehouse.engine.duckdb.result import DuckDBRows
from lakehouse.engine.duckdb.statement import read_relation, run_query

__all__ = ["DuckDBEngine", "DuckDBRows", "read_relation", "run_query"]
