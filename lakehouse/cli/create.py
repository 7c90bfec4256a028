"""The command that makes a table of a file: create."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer

from lakehouse.cli.ingest import opened
from lakehouse.cli.options import CatalogOption, JsonOption, MessageOption, QuietOption, WarehouseOption, open_lake
from lakehouse.cli.output import print_json, print_line
from lakehouse.cli.write import ColumnsOption, FileArgument, GrainOption, InputFormatOption, print_commit

if TYPE_CHECKING:
    from lakehouse.table.table import Table

_SAY_TIME = "--time, or say --timeless"


def create(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="name of the new table", show_default=False)],
    file: FileArgument,
    form: InputFormatOption = None,
    time: Annotated[
        str | None,
        typer.Option(help="the column of a row's time; default: the only timestamp, or date", show_default=False),
    ] = None,
    timeless: Annotated[bool, typer.Option("--timeless", help="no column is a row's time: a look-up")] = False,
    grain: GrainOption = None,
    primary_key: ColumnsOption = None,
    cluster_by: ColumnsOption = None,
    empty: Annotated[bool, typer.Option("--empty", help="only the columns, and none of the rows")] = False,
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a table with the columns and rows of a file.

    Columns of Parquet and Arrow keep their types; those of text get what all of their values are. If the rows cannot
    be written there is no table.
    """
    if timeless and (time or grain):
        raise typer.BadParameter("--timeless has neither --time nor --grain")
    columns = import_module("lakehouse.cli.columns")
    known = columns.text_columns(file, form)
    if known is not None and not timeless:
        columns.time_column(known, time, _SAY_TIME)  # before a lake is made
    with open_lake(catalog, warehouse) as lake, opened(file, known or pa.schema([]), form) as rows:
        found = pa.schema([one.with_nullable(True) for one in known or rows.schema])
        made = lake.create_table(
            table,
            found,
            time=None if timeless else columns.time_column(found, time, _SAY_TIME),
            grain=grain,
            primary_key=tuple(primary_key or ()),
            cluster_by=tuple(cluster_by or ()),
        )
        if empty:
            return _print_columns(made, as_json)
        with import_module("lakehouse.table.tables").dropped_unless_filled(lake.session, table):
            commit = made.append(rows, message=message)
    if not as_json:
        _print_columns(made, False)
    return print_commit(commit, as_json)


def _print_columns(made: Table, as_json: bool) -> None:
    column_type_name = import_module("lakehouse.sql.types").column_type_name  # not loaded for --help
    kinds = {one.name: column_type_name(one) for one in made.schema}
    if as_json:
        return print_json({"table": made.name, "time": made.time, "columns": kinds})
    divided = f", by {made.grain} of {made.time}" if made.time else ""
    return print_line(f"{made.name}: {', '.join(f'{name} {kind}' for name, kind in kinds.items())}{divided}")
