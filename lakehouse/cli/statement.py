"""The command that runs SQL: sql."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, Literal

import pyarrow as pa
import typer

from lakehouse.cli.options import (
    AsOfOption,
    CatalogOption,
    JsonOption,
    WarehouseOption,
    open_lake,
    point_in_history,
)
from lakehouse.cli.output import print_json, print_line, print_table
from lakehouse.core.commit import Commit

_MOST = 1000


def sql(
    statement: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="one statement of Spark's SQL; - reads it from standard input")
    ],
    as_of: AsOfOption = None,
    engine: Annotated[
        Literal["duckdb", "spark"], typer.Option(help="what runs queries: DuckDB in this process, or Spark")
    ] = "duckdb",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="rows printed at most")] = _MOST,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one statement of SQL: a query, a change of rows or tables, SHOW TABLES, DESCRIBE or EXPLAIN."""
    text = sys.stdin.read() if statement == "-" else statement
    with open_lake(catalog, warehouse) as lake:
        found = lake.sql(text, as_of=point_in_history(as_of), engine=engine)
        rows = _first_rows(found, limit + 1)
    if rows is not None:
        return _print_rows(rows, limit, as_json)
    if as_json:
        return print_json(found if isinstance(found, Commit) else {"result": found and str(found).splitlines()})
    if isinstance(found, Commit):
        counts = f"rows +{found.rows_added:,} -{found.rows_deleted:,}"
        return print_line(f"version {found.version}: {found.operation} {', '.join(found.tables)}: {counts}")
    for line in str(found or "done").splitlines():
        print_line(line)
    return None


def _first_rows(found: Any, most: int) -> pa.Table | None:
    """The first rows of a result, if it is one of rows."""
    if isinstance(found, pa.Table):
        return found.slice(0, most)
    # Engines are loaded with the lake, or by it; other commands need not wait for them.
    rows: pa.Table | None = None
    if hasattr(found, "to_arrow_table"):
        rows = import_module("lakehouse.engine.duckdb").read_relation(found.limit(most))
    elif hasattr(found, "toArrow"):
        rows = import_module("lakehouse.engine.spark").read_frame_rows(found.limit(most))
    return rows


def _print_rows(rows: pa.Table, limit: int, as_json: bool) -> None:
    shown, more = rows.slice(0, limit), rows.num_rows > limit
    cells = [list(row) for row in zip(*(column.to_pylist() for column in shown.columns), strict=True)]
    if as_json:
        return print_json({"columns": rows.column_names, "rows": cells, "more": more})
    print_table(rows.column_names, cells, are_values=True)
    if more:
        print_line(f"the first {limit} rows; --limit shows more")
    return None
