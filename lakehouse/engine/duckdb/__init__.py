"""The engine that runs in this process."""

from lakehouse.engine.duckdb.engine import DuckDBEngine
from lakehouse.engine.duckdb.result import DuckDBRows
from lakehouse.engine.duckdb.statement import QueryLimits, read_relation, run_limited, run_query

__all__ = ["DuckDBEngine", "DuckDBRows", "QueryLimits", "read_relation", "run_limited", "run_query"]
