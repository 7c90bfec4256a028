"""The command for the copies of an object store's files on this machine: cache."""

from __future__ import annotations

from typing import Annotated

import typer

from lakehouse import interrupts
from lakehouse.cli.options import CatalogOption, JsonOption, WarehouseOption, open_lake
from lakehouse.cli.output import print_json, print_line, show_bytes


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="delete the copies that nobody reads now")] = False,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where copies of an object store's files lie on this machine and how much they take, or delete them.

    With them goes what operations wrote here that were killed before they published it.
    """
    if clear:
        interrupts.in_steps()
    with open_lake(catalog, warehouse) as lake:
        place, copies = str(lake.warehouse), lake.session.warehouse.cache
        if copies is None:
            if as_json:
                return print_json({"warehouse": place, "cache": None})
            return print_line(f"the warehouse is the folder {place}: its files are read where they are, without copies")
        held = copies.usage()
        if clear:
            copies.clear()
            copies.remove_unfinished(lake.catalog.living_operations)
        left = copies.usage() if clear else held
        limit = copies.limit_bytes
        found = {"folder": str(copies.root), "files": left.files, "bytes": left.bytes, "limit_bytes": limit}
    gone = {"files": held.files - left.files, "bytes": held.bytes - left.bytes}
    if as_json:
        return print_json({"warehouse": place, "cache": found, **({"deleted": gone} if clear else {})})
    if clear:
        print_line(f"{gone['files']:,} copies ({show_bytes(gone['bytes'])}) deleted")
        if left.files:
            print_line("what is left is read or written at this moment")
    return print_line(
        f"{left.files:,} copies of files of {place}: {show_bytes(left.bytes)} of at most {show_bytes(limit)}"
        f" in {copies.root}"
    )
