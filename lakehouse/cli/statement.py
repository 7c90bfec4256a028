"""The command that runs SQL: sql."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pyarrow as pa
import typer

import lakehouse
from lakehouse.cli.options import (
    AsOfOption,
    CatalogOption,
    JsonOption,
    WarehouseOption,
    open_lake,
    point_in_history,
)
from lakehouse.cli.output import print_json, print_line
from lakehouse.cli.rows import Format, FormatOption, OutputOption, cells, print_rows, write_rows
from lakehouse.core.commit import Commit
from lakehouse.core.policy import read_size
from lakehouse.errors import InvalidArgument, OnlySpark

if TYPE_CHECKING:
    from lakehouse.lake import Lake
    from lakehouse.sql.looking import Answer

_MOST = 1000
_SECONDS = 60.0
_MEMORY = 1_000_000_000
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
_Args = dict[str, Any] | list[Any] | None


def sql(
    statement: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="one statement of Spark's SQL; - reads it from standard input")
    ],
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            metavar="[NAME=]VALUE",
            help="a value for :NAME, or for the next ?: a number, true, false, null, else text",
            show_default=False,
        ),
    ] = None,
    as_of: AsOfOption = None,
    engine: Annotated[
        Literal["duckdb", "spark"] | None,
        typer.Option(
            help="what runs queries; default: DuckDB in process, or Spark for what is Spark's alone", show_default=False
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="the most rows to print")] = _MOST,
    rows: Annotated[
        int | None, typer.Option(help="the most rows that a query may have, or it fails", show_default=False)
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="how long a query may run in process; default: 60", show_default=False),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="memory that it may use, such as 4GiB; default: 1GB", show_default=False)
    ] = None,
    serving: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="ask a query node, such as http://127.0.0.1:8100; several: the next one too"),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="LAKEHOUSE_SERVING_TOKEN", help="of query nodes that need one", show_default=False),
    ] = None,
    form: FormatOption = None,
    output: OutputOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one statement of SQL: a query, a change of rows or tables, SHOW, DESCRIBE or EXPLAIN."""
    text = sys.stdin.read() if statement == "-" else statement
    point, args = point_in_history(as_of), _values(arg or ())
    limits = _limits(memory, seconds, rows)
    if serving:
        if point is not None or engine is not None or limits:
            raise InvalidArgument(
                "query nodes have a version, an engine and limits of their own; leave the options out"
            )
        return _print_served(serving, token, text, args, limit, form, output, as_json)
    with open_lake(catalog, warehouse) as lake:
        if engine != "spark" and rows is None and import_module("lakehouse.sql.parse").is_query(text):
            try:
                answer = _looked(lake, text, args, point, limit, limits)
            except OnlySpark:
                if engine is not None or limits:
                    raise
            else:
                if answer.is_plan:
                    return _print_lines(answer.rows["plan"].to_pylist(), as_json)
                return _put(answer.rows, answer.is_cut, form, output, as_json)
        found = lake.sql(text, args=args, as_of=point, engine=engine, **limits)
        table = _first_rows(found, limit + 1)
    if table is not None:
        return _put(table.slice(0, limit), table.num_rows > limit, form, output, as_json)
    if isinstance(found, Commit):
        return _print_commit(found, as_json)
    if as_json and not found:
        return print_json({"result": found})
    return _print_lines(str(found or "done").splitlines(), as_json)


def _print_served(
    urls: list[str],
    token: str | None,
    text: str,
    args: _Args,
    limit: int,
    form: Format | None,
    output: Path | None,
    as_json: bool,
) -> None:
    with lakehouse.connect_serving(urls, token) as client:
        answer = client.sql(text, args=args)
    rows, is_cut = answer.rows.slice(0, limit), answer.rows.num_rows > limit
    if not as_json:
        return _put(rows, is_cut, form, output, as_json)
    coverage = [one.to_json() for one in answer.coverage.values()]
    said = {"version": answer.version, "versions": answer.versions, "coverage": coverage, "node": answer.node}
    return print_json({**cells(rows, is_cut), **said})


def _put(rows: pa.Table, is_cut: bool, form: Format | None, output: Path | None, as_json: bool) -> None:
    if not (form or output):
        return print_rows(rows, is_cut, as_json)
    write_rows(rows, form, output)
    if is_cut:
        print(f"the first {rows.num_rows} rows; --limit writes more", file=sys.stderr)
    return None


def _limits(memory: str | None, seconds: float | None, rows: int | None) -> dict[str, Any]:
    """The limits that were asked for, as `Lake.sql` takes them."""
    given = {"memory_bytes": None if memory is None else read_size(memory), "seconds": seconds, "rows": rows}
    return {name: value for name, value in given.items() if value is not None}


def _looked(lake: Lake, text: str, args: _Args, point: int | str | None, limit: int, limits: dict[str, Any]) -> Answer:
    """The first rows of a query, which is always limited in time and memory."""
    memory = limits.get("memory_bytes", _MEMORY)
    return lake.query(
        text,
        args=args,
        as_of=point,
        most_rows=limit,
        most_bytes=memory // 4,
        most_seconds=limits.get("seconds", _SECONDS),
        most_memory=memory,
    )


def _values(written: Sequence[str]) -> _Args:
    """Values by name or, without one, in order; text in double quotes is text whatever it looks like."""
    pairs = [_value(one) for one in written]
    if all(name is None for name, _ in pairs):
        return [value for _, value in pairs] or None
    found: dict[str, Any] = {}
    for (name, value), one in zip(pairs, written, strict=True):
        if name is None or name in found:
            raise InvalidArgument("write --arg name=value, each name once; --arg value is for ?", found=one[:200])
        found[name] = value
    return found


def _value(written: str) -> tuple[str | None, Any]:
    """A value as it was written, with its name if it has one."""
    named = _NAMED.fullmatch(written)
    text = written if named is None else named["value"]
    try:
        value = json.loads(text, parse_float=Decimal, parse_constant=str)
    except ValueError:
        value = text
    return None if named is None else named["name"], text if isinstance(value, list | dict) else value


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
