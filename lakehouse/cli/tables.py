"""Commands that name a table and little else: head, count, drop, rename."""

from __future__ import annotations

from typing import Annotated

import typer

from lakehouse.cli.options import (
    AsOfOption,
    CatalogOption,
    IntervalOption,
    JsonOption,
    TableArgument,
    WarehouseOption,
    open_existing,
    open_lake,
    point_in_history,
)
from lakehouse.cli.output import print_json, print_line
from lakehouse.cli.rows import FormatOption, OutputOption, print_rows, write_rows


def head(
    table: TableArgument,
    rows: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="how many rows")] = 10,
    as_of: AsOfOption = None,
    form: FormatOption = None,
    output: OutputOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show some rows of a table."""
    with open_existing(catalog, warehouse) as lake:
        found = lake.table(table).head(rows, as_of=point_in_history(as_of))
    if form or output:
        return write_rows(found, form, output)
    return print_rows(found, False, as_json)


def count(
    table: TableArgument,
    where: Annotated[
        str | None, typer.Option(help="a condition in SQL: 'client = 12'; default: all rows", show_default=False)
    ] = None,
    interval: IntervalOption = None,
    as_of: AsOfOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the rows of a table."""
    with open_existing(catalog, warehouse) as lake:
        rows = lake.table(table).scan(where=where, interval=interval, as_of=point_in_history(as_of)).count()
    return print_json({"table": table, "rows": rows}) if as_json else print_line(f"{rows:,}")


def drop(
    table: TableArgument,
    is_sure: Annotated[bool, typer.Option("--yes", help="do it: versions stay readable until they expire")] = False,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Drop a table. What it held can be read as of earlier versions, until they expire."""
    if not is_sure:
        raise typer.BadParameter(f"this drops {table}; add --yes to do it")
    with open_lake(catalog, warehouse) as lake:
        lake.drop_table(table)
        version = lake.head
    if as_json:
        return print_json({"version": version, "dropped": table})
    return print_line(f"version {version}: dropped {table}")


def rename(
    table: TableArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="the new name", show_default=False)],
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rename a table; files and history stay where they are."""
    with open_lake(catalog, warehouse) as lake:
        lake.rename_table(table, new)
        version = lake.head
    if as_json:
        return print_json({"version": version, "from": table, "to": new})
    return print_line(f"version {version}: {table} is {new} now")
