"""Rows as a command gives them: a table for people, JSON, or a file of CSV, Parquet or Arrow."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import pyarrow as pa
import typer

from lakehouse.cli.output import print_json, print_line, print_table
from lakehouse.engine.cells import cells_of
from lakehouse.errors import InvalidArgument

Format = Literal["csv", "parquet", "arrow"]
FormatOption = Annotated[
    Format | None, typer.Option("--format", help="write rows as this, all that --limit allows", show_default=False)
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", dir_okay=False, help="write rows to this file; - is standard output", show_default=False
    ),
]
_SUFFIXES: dict[str, Format] = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow"}


def write_rows(rows: pa.Table, form: Format | None, output: Path | None) -> None:
    """Write rows to a file, or to standard output. Raises `InvalidArgument` for an unknown suffix, and a terminal."""
    to_stdout = output is None or output == Path("-")
    form = form or _SUFFIXES.get(output.suffix.lower() if output is not None else "")
    if form is None:
        raise InvalidArgument("say the format: --format csv, parquet or arrow", output=output)
    if to_stdout:
        if form != "csv" and sys.stdout.isatty():
            raise InvalidArgument("a terminal shows no such format; give --output FILE", format=form)
        sys.stdout.flush()
        _write(rows, form, sys.stdout.buffer)
        sys.stdout.flush()
        return
    assert output is not None
    try:
        with output.open("wb") as file:
            _write(rows, form, file)
    except OSError as error:
        raise InvalidArgument("the file cannot be written", output=output, cause=error.strerror) from error


def _write(rows: pa.Table, form: Format, file: BinaryIO) -> None:
    match form:
        case "csv":
            try:
                import_module("pyarrow.csv").write_csv(rows, file)  # not loaded for --help
            except (pa.ArrowException, NotImplementedError) as error:
                raise InvalidArgument(
                    "CSV holds no nested values; choose other columns, or --format parquet", cause=str(error)[:200]
                ) from error
        case "parquet":
            import_module("pyarrow.parquet").write_table(rows, file)
        case "arrow":
            with pa.ipc.new_file(file, rows.schema) as writer:
                writer.write_table(rows)


def print_rows(rows: pa.Table, more: bool, as_json: bool) -> None:
    """Print rows as a table or as JSON; ``more``: whether there are more."""
    if as_json:
        return print_json(cells(rows, more))
    print_table(rows.column_names, cells(rows, more)["rows"], are_values=True)
    if more:
        print_line(f"the first {rows.num_rows} rows; --limit shows more")
    return None


def cells(rows: pa.Table, more: bool) -> dict[str, Any]:
    """Rows as JSON has them."""
    held = [list(row) for row in zip(*map(cells_of, rows.columns), strict=True)]
    return {"columns": rows.column_names, "rows": held, "more": more}
