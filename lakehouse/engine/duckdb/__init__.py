"""The engine that runs in this process."""

from typing import TYPE_CHECKING

from lakehouse.late import names_of

if TYPE_CHECKING:
    from lakehouse.engine.duckdb.engine import DuckDBEngine as DuckDBEngine
    from lakehouse.engine.duckdb.result import BATCH_ROWS as BATCH_ROWS
    from lakehouse.engine.duckdb.result import DuckDBRows as DuckDBRows
    from lakehouse.engine.duckdb.room import most_in_process as most_in_process
    from lakehouse.engine.duckdb.room import most_memory as most_memory
    from lakehouse.engine.duckdb.room import spill_folders as spill_folders
    from lakehouse.engine.duckdb.room import spill_place as spill_place
    from lakehouse.engine.duckdb.statement import QueryLimits as QueryLimits
    from lakehouse.engine.duckdb.statement import StatementDatabase as StatementDatabase
    from lakehouse.engine.duckdb.statement import explained as explained
    from lakehouse.engine.duckdb.statement import filtered as filtered
    from lakehouse.engine.duckdb.statement import is_refusal as is_refusal
    from lakehouse.engine.duckdb.statement import naming_ends as naming_ends
    from lakehouse.engine.duckdb.statement import read_relation as read_relation
    from lakehouse.engine.duckdb.statement import run_limited as run_limited
    from lakehouse.engine.duckdb.statement import streamed as streamed
    from lakehouse.engine.duckdb.views import connection_with as connection_with

_HOME = {
    "BATCH_ROWS": "result",
    "DuckDBEngine": "engine",
    "DuckDBRows": "result",
    "QueryLimits": "statement",
    "StatementDatabase": "statement",
    "connection_with": "views",
    "explained": "statement",
    "filtered": "statement",
    "is_refusal": "statement",
    "most_in_process": "room",
    "most_memory": "room",
    "naming_ends": "statement",
    "read_relation": "statement",
    "run_limited": "statement",
    "spill_folders": "room",
    "spill_place": "room",
    "streamed": "statement",
}
__all__ = sorted(_HOME)  # noqa: PLE0605
__getattr__ = names_of(__name__, _HOME)
