"""Commands that change single rows: delete, update, erase, upsert, resolve."""

from __future__ import annotations

from typing import Annotated

import typer

from lakehouse.cli.files import open_rows
from lakehouse.cli.options import (
    CatalogOption,
    JsonOption,
    MessageOption,
    SchemaOption,
    TableArgument,
    WarehouseOption,
    open_lake,
)
from lakehouse.cli.output import print_json, print_line
from lakehouse.cli.write import FileArgument, counted, print_commit
from lakehouse.errors import InvalidArgument

WhereArgument = Annotated[
    str, typer.Argument(metavar="WHERE", help="a condition in SQL: 'client = 12'; TRUE: all", show_default=False)
]


def delete(
    table: TableArgument,
    where: WhereArgument,
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete the rows for which a condition is true."""
    with open_lake(catalog, warehouse) as lake:
        commit = lake.table(table).delete(where, message=message)
    print_commit(commit, as_json)


def update(
    table: TableArgument,
    assignments: Annotated[
        list[str], typer.Argument(metavar="COLUMN=VALUE...", help="SQL expressions: 'delay=delay + 1'")
    ],
    where: Annotated[str, typer.Option(help="a condition in SQL; TRUE: all", show_default=False)],
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set columns to new values in rows for which a condition is true."""
    parts = [one.partition("=") for one in assignments]
    for one, (column, sign, value) in zip(assignments, parts, strict=True):
        if not (column and sign and value):
            raise InvalidArgument("an assignment is COLUMN=VALUE, as in 'delay=delay + 1'", found=one)
    with open_lake(catalog, warehouse) as lake:
        assigned = {column.strip(): value for column, _, value in parts}
        commit = lake.table(table).update(assigned, where, message=message)
    print_commit(commit, as_json)


def erase(
    table: TableArgument,
    where: WhereArgument,
    is_sure: Annotated[bool, typer.Option("--yes", help="do it: this cannot be undone")] = False,
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove the rows for which a condition is true from every version. `collect` deletes the old files."""
    if not is_sure:
        raise typer.BadParameter("this removes rows from every version and cannot be undone; add --yes to do it")
    with open_lake(catalog, warehouse) as lake:
        erased = lake.table(table).erase(where, message=message)
    print_commit(erased, as_json)
    if not as_json:
        for one in erased.residue:
            print_line(f"remains: {one}")


def upsert(
    table: TableArgument,
    file: FileArgument,
    newest: Annotated[
        str | None, typer.Option(help="of rows with the same key, keep the one with the greatest value of this column")
    ] = None,
    schema: SchemaOption = "strict",
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Insert the rows of a file, replacing rows with the same primary keys."""
    with open_lake(catalog, warehouse) as lake:
        target = lake.table(table)
        with counted(open_rows(file, target.schema), f"upsert into {table}") as rows:
            commit = target.upsert(rows, newest=newest, message=message, schema=schema)
    print_commit(commit, as_json)


def resolve(
    table: TableArgument,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Turn key tombstones into row tombstones, which makes reads faster. No row changes."""
    with open_lake(catalog, warehouse) as lake:
        commit = lake.table(table).resolve()
    if commit is None:
        return print_json(None) if as_json else print_line(f"no key tombstone in {table}")
    return print_commit(commit, as_json)
