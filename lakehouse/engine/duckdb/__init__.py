"""The engine that runs in this process."""

from lakehouse.engine.duckdb.engine import DuckDBEngine
from lakehouse.engine.duckdb.result import DuckDBRows
from lakehouse.engine.duckdb.statement import (
    QueryLimits,
    StatementDatabase,
    filtered,
    is_refusal,
    read_relation,
    run_limited,
)

__all__ = [
    "DuckDBEngine",
    "DuckDBRows",
    "QueryLimits",
    "StatementDatabase",
    "filtered",
    "is_refusal",
    "read_relation",
    "run_limited",
]
