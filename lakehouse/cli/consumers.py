"""The command for named readers of change feeds: consumers."""

from __future__ import annotations

from typing import Annotated

import typer

from lakehouse.cli.options import CatalogOption, JsonOption, WarehouseOption, open_existing
from lakehouse.cli.output import print_json, print_line, print_table


def consumers(
    action: Annotated[
        str | None, typer.Argument(metavar="[drop NAME]", help="drop: forget a consumer's place", show_default=False)
    ] = None,
    name: Annotated[str | None, typer.Argument(hidden=True, show_default=False)] = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List named readers: where each is, how many versions it has yet to read, and until when these are kept for it."""
    if action is not None and (action != "drop" or name is None):
        raise typer.BadParameter("write: lakehouse consumers, or: lakehouse consumers drop NAME")
    with open_existing(catalog, warehouse) as lake:
        if name is not None:
            lake.drop_consumer(name)
            return print_json({"dropped": name}) if as_json else print_line(f"consumer {name} dropped")
        found = lake.consumers()
    if as_json:
        return print_json(found)
    if not found:
        return print_line("no consumers")
    return print_table(
        ["consumer", "table", "read to version", "versions to read", "kept until"],
        [[one.name, one.table, one.version, one.lag, one.expires_at.replace(microsecond=0)] for one in found],
    )
