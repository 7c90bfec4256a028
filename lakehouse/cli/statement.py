"""The command that runs SQL: sql."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from decimal import Decimal
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
from lakehouse.errors import InvalidArgument

_MOST = 1000


def sql(
    statement: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="one statement of Spark's SQL; - reads it from standard input")
    ],
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", metavar="NAME=VALUE", help="a value for :NAME: a number, true, false, null, else text"),
    ] = None,
    as_of: AsOfOption = None,
    engine: Annotated[
        Literal["duckdb", "spark"], typer.Option(help="what runs queries: DuckDB in this process, or Spark")
    ] = "duckdb",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="the most rows to print")] = _MOST,
    seconds: Annotated[float, typer.Option(help="how long a query may run in process")] = 60.0,
    memory_mb: Annotated[int, typer.Option(min=1, help="megabytes of memory that it may use")] = 1000,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one statement of SQL: a query, a change of rows or tables, SHOW, DESCRIBE or EXPLAIN."""
    text = sys.stdin.read() if statement == "-" else statement
    point, args = point_in_history(as_of), _values(arg or ())
    with open_lake(catalog, warehouse) as lake:
        if engine == "duckdb" and import_module("lakehouse.sql.parse").is_query(text):
            memory = memory_mb * 1_000_000
            answer = lake.query(
                text,
                args=args,
                as_of=point,
                most_rows=limit,
                most_bytes=memory // 4,
                most_seconds=seconds,
                most_memory=memory,
            )
            if answer.is_plan:
                return _print_lines(answer.rows["plan"].to_pylist(), as_json)
            return _print_rows(answer.rows, answer.is_cut, as_json)
        found = lake.sql(text, args=args, as_of=point, engine=engine)
        rows = _first_rows(found, limit + 1)
    if rows is not None:
        return _print_rows(rows.slice(0, limit), rows.num_rows > limit, as_json)
    if isinstance(found, Commit):
        return _print_commit(found, as_json)
    if as_json and not found:
        return print_json({"result": found})
    return _print_lines(str(found or "done").splitlines(), as_json)


def _values(written: Sequence[str]) -> dict[str, Any] | None:
    """Values by name; text in double quotes is text whatever it looks like."""
    found: dict[str, Any] = {}
    for one in written:
        name, separator, text = one.partition("=")
        if not separator or name in found:
            raise InvalidArgument("write --arg name=value, each name once", found=one[:200])
        try:
            value = json.loads(text, parse_float=Decimal, parse_constant=str)
        except ValueError:
            value = text
        found[name] = text if isinstance(value, list | dict) else value
    return found or None


def _first_rows(found: Any, most: int) -> pa.Table | None:
    """The first rows of a result, if it has rows."""
    if isinstance(found, pa.Table):
        return found.slice(0, most)
    # The lake loads engines; other commands need not wait for them.
    rows: pa.Table | None = None
    if hasattr(found, "to_arrow_table"):
        rows = import_module("lakehouse.engine.duckdb").read_relation(found.limit(most))
    elif hasattr(found, "toArrow"):
        rows = import_module("lakehouse.engine.spark").read_frame_rows(found.limit(most))
    return rows


def _print_commit(commit: Commit, as_json: bool) -> None:
    if as_json:
        return print_json(commit)
    counts = f"rows +{commit.rows_added:,} -{commit.rows_lost}"
    return print_line(f"version {commit.version}: {commit.operation} {', '.join(commit.tables)}: {counts}")


def _print_lines(lines: list[str], as_json: bool) -> None:
    if as_json:
        return print_json({"result": lines})
    for line in lines:
        print_line(line)
    return None


def _print_rows(rows: pa.Table, more: bool, as_json: bool) -> None:
    cells = [list(row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)]
    if as_json:
        return print_json({"columns": rows.column_names, "rows": cells, "more": more})
    print_table(rows.column_names, cells, are_values=True)
    if more:
        print_line(f"the first {rows.num_rows} rows; --limit shows more")
    return None
