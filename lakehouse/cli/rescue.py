"""Commands for a lost catalog: export, recover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import lakehouse
from lakehouse import interrupts
from lakehouse.cli.options import CatalogOption, JsonOption, WarehouseOption, open_lake
from lakehouse.cli.output import last_instant, print_json, print_line, print_table, show_bytes

if TYPE_CHECKING:
    from lakehouse.admin.recover import Recovered

_SHOWN = 20
"""The most files listed one by one; ``--json`` has all."""


def export(
    keep: Annotated[int, typer.Option(min=1, metavar="N", help="how many of the newest exports to keep")] = 3,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the catalog's state into the warehouse, for recover."""
    interrupts.in_steps()
    with open_lake(catalog, warehouse) as lake:
        exported = lake.export(keep=keep)
    if as_json:
        return print_json(exported)
    return print_line(
        f"version {exported.version}: {exported.tables} tables, {exported.segments} segments,"
        f" {show_bytes(exported.bytes)} in {exported.path}"
    )


def recover(
    warehouse: Annotated[
        str,
        typer.Argument(
            metavar="WAREHOUSE",
            help="folder of the data files, or s3://bucket/prefix, gs://, az:// (other commands: --warehouse)",
            show_default=False,
        ),
    ],
    adopt: Annotated[
        bool, typer.Option("--adopt", help="also append files that no export knows; may bring back replaced rows")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only report what there is")] = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a new catalog for a warehouse whose catalog was lost. Changes nothing in the warehouse."""
    interrupts.in_steps()
    recovered = lakehouse.recover(warehouse, catalog, adopt=adopt, dry_run=dry_run)
    if as_json:
        return print_json(recovered)
    return _print(recovered, is_adopted=adopt)


def _print(recovered: Recovered, *, is_adopted: bool) -> None:
    source = "without an export" if recovered.export is None else f"from {recovered.export}"
    if recovered.dry_run:
        print_line(f"nothing was made; {recovered.catalog} would be made {source}")
    else:
        print_line(f"{recovered.catalog} was made {source}, and is at version {recovered.head}")
    print_line(f"tables: {', '.join(recovered.tables) or 'none'}")
    print_line(f"tags: {', '.join(recovered.tags) or 'none'}")
    print_line(f"segments named by the export: {recovered.segments}, of which {len(recovered.missing)} are missing")
    for lines in (recovered.missing, recovered.damaged):
        for line in lines[:_SHOWN]:
            print_line(f"  {line}")
        if len(lines) > _SHOWN:
            print_line(f"  and {len(lines) - _SHOWN} more; --json names them all")
    if recovered.superseded:
        size = show_bytes(recovered.superseded_bytes)
        print_line(f"files of older versions, which the export does not need: {recovered.superseded}, {size}")
    if recovered.unknown:
        columns = ("table", "operation", "files", "rows", "bytes", "from", "to", "version", "problem")
        rows = [
            (
                one.table,
                one.operation,
                one.files,
                one.rows,
                one.bytes,
                one.start,
                one.end and last_instant(one.end),
                one.version,
                one.problem,
            )
            for one in recovered.unknown
        ]
        print_table(columns, rows, title="operations that no export knows")
        if not is_adopted:
            print_line("it is unknown whether these were committed; --adopt appends them (docs/recovery.md)")
