"""The engine that runs in this process."""

from lakehouse.engine.duckdb.engine import DuckDBEngine
from lakehouse.engine.duckdb.result import BATCH_ROWS, DuckDBRows
from lakehouse.engine.duckdb.room import most_in_process, most_memory, spill_folders, spill_place
from lakehouse.engine.duckdb.statement import (
    QueryLimits,
    StatementDatabase,
    explained,
    filtered,
    is_refusal,
    naming_ends,
    read_relation,
    run_limited,
    streamed,
)
from lakehouse.engine.duckdb.views import connection_with

__all__ = [
    "BATCH_ROWS",
    "DuckDBEngine",
    "DuckDBRows",
    "QueryLimits",
    "StatementDatabase",
    "connection_with",
    "explained",
    "filtered",
    "is_refusal",
    "most_in_process",
    "most_memory",
    "naming_ends",
    "read_relation",
    "run_limited",
    "streamed",
    "spill_folders",
    "spill_place",
]
