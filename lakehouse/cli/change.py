"""Commands that change single rows: delete, update, erase, upsert, resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakehouse.cli.ingest import opened
from lakehouse.cli.options import (
    CatalogOption,
    JsonOption,
    MessageOption,
    QuietOption,
    SchemaOption,
    TableArgument,
    WarehouseOption,
    open_lake,
)
from lakehouse.cli.output import print_json, print_line, show_bytes
from lakehouse.cli.write import FileArgument, InputFormatOption, print_commit
from lakehouse.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.core.erased import Erased, Verified
    from lakehouse.lake import Lake
    from lakehouse.table.table import Table

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
    quiet: QuietOption = False,
) -> None:
    """Delete the rows for which a condition is true."""
    with open_lake(catalog, warehouse) as lake:
        commit = lake.table(table).delete(where, message=message)
    print_commit(commit, as_json)


def update(
    table: TableArgument,
    assignments: Annotated[
        list[str], typer.Argument(metavar="COLUMN=VALUE", help="SQL expressions: 'delay=delay + 1'")
    ],
    where: Annotated[str, typer.Option(help="a condition in SQL; TRUE: all", show_default=False)],
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only count what would be removed")] = False,
    is_sure: Annotated[bool, typer.Option("--yes", help="do it: this cannot be undone")] = False,
    reason: Annotated[str | None, typer.Option(help="stored with the commit", show_default=False)] = None,
    is_verified: Annotated[
        bool, typer.Option("--verify", help="search all that the lake keeps for the values; without --yes only that")
    ] = False,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="TEXT",
            help="search for this instead of the condition's values; repeat",
            show_default=False,
        ),
    ] = None,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="before the search, write a SQLite catalog anew without what was deleted")
    ] = False,
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Remove the rows for which a condition is true from every version. `collect` deletes the old files.

    With --verify, exits with 1 if a value is found anywhere.
    """
    if dry_run and (is_sure or is_verified):
        raise typer.BadParameter("--dry-run counts, and neither removes nor searches")
    if dry_run:
        return _count_erased(table, where, catalog, warehouse, as_json)
    if not (is_sure or is_verified):
        raise typer.BadParameter("this removes rows from every version and cannot be undone; add --yes to do it")
    if (values or vacuum) and not is_verified:
        raise typer.BadParameter("--value and --vacuum belong to --verify")
    with open_lake(catalog, warehouse) as lake:
        target = lake.table(table)
        if is_verified:
            _check_search(lake, target, where, values or (), vacuum=vacuum)
        erased = target.erase(where, reason=reason, message=message) if is_sure else None
        found = lake.verify_erased(table, where, values=values or (), vacuum=vacuum) if is_verified else None
    if as_json:
        print_json(erased if found is None else {"erased": erased, "verified": found})
    else:
        _print_erasure(erased, found)
    if found is not None and not found.is_clean:
        raise typer.Exit(1)
    return None


def _count_erased(table: str, where: str, catalog: str | None, warehouse: str | None, as_json: bool) -> None:
    """Print how many rows an erasure would remove from the newest version, and the versions that also may have some."""
    with open_lake(catalog, warehouse) as lake:
        target = lake.table(table)
        rows, versions = target.scan(where=where).count(), len(target.log())
    if as_json:
        return print_json({"table": table, "rows": rows, "versions": versions})
    return print_line(f"{rows:,} rows of {table} would be removed, and from all of its {versions:,} versions")


def _check_search(lake: Lake, table: Table, where: str, values: Sequence[str], *, vacuum: bool) -> None:
    """Refuse a search that could not be made, before anything is erased."""
    from lakehouse.admin.traces import read_wanted  # noqa: PLC0415 - loaded with the lake, and not for --help

    read_wanted(lake.session, table.spec, where, values, vacuum=vacuum)


def _print_erasure(erased: Erased | None, found: Verified | None) -> None:
    if erased is not None:
        print_commit(erased, False)
        for one in erased.residue:
            print_line(f"remains: {one}")
    if found is not None:
        for one in found.findings:
            print_line(f"found: {one}")
        for name in found.unread:
            print_line(f"not read: {name}")
        many = len(found.findings) or "nothing"
        print_line(f"{many} found in {found.files:,} files ({show_bytes(found.bytes)}) and {found.cells:,} cells")


def upsert(
    table: TableArgument,
    file: FileArgument,
    form: InputFormatOption = None,
    newest: Annotated[
        str | None, typer.Option(help="of rows with the same key, keep the one with the greatest value of this column")
    ] = None,
    schema: SchemaOption = "strict",
    message: MessageOption = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Insert the rows of a file, replacing rows with the same primary keys."""
    with open_lake(catalog, warehouse) as lake:
        target = lake.table(table)
        with opened(file, target.schema, form) as rows:
            commit = target.upsert(rows, newest=newest, message=message, schema=schema)
    print_commit(commit, as_json)


def resolve(
    table: TableArgument,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Turn key tombstones into row tombstones, which makes reads faster. No row changes."""
    with open_lake(catalog, warehouse) as lake:
        commit = lake.table(table).resolve()
    if commit is None:
        return print_json(None) if as_json else print_line(f"no key tombstone in {table}")
    return print_commit(commit, as_json)
