"""The engine that runs in this process."""

from lakehouse.engine.duckdb.engine import DuckDBEngine
from lakehouse.engine.duckdb.result import DuckDBRows
from lakehouse.engine.duckdb.room import most_in_process, most_memory, spill_place
from lakehouse.engine.duckdb.statement import (
    QueryLimits,
    StatementDatabase,
    is_refusal,
    naming_ends,
    read_relation,
    run_limited,
)

__all__ = [
    "DuckDBEngine",
    "DuckDBRows",
    "QueryLimits",
    "StatementDatabase",
    "is_refusal",
    "most_in_process",
    "most_memory",
    "naming_ends",
    "read_relation",
    "run_limited",
    "spill_place",
]
