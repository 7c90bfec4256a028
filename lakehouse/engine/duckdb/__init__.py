"""The engine that runs in this process."""

from lakehouse.engine.duckdb.engine import DuckDBEngine
from lakehouse.engine.duckdb.result import DuckDBRows

__all__ = ["DuckDBEngine", "DuckDBRows"]
