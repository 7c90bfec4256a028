"""Options that commands share, and how they open the lake."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lakehouse
from lakehouse.arguments import Fit
from lakehouse.cli.progress import hush
from lakehouse.errors import InvalidAddress
from lakehouse.session.addresses import addresses

if TYPE_CHECKING:
    from lakehouse.lake import Lake
    from lakehouse.table.table import Table

CatalogOption = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        envvar="LAKEHOUSE_CATALOG",
        help="sqlite:///path or postgresql+psycopg://...; default: SQLite in ./.lakehouse",
        show_default=False,
    ),
]
WarehouseOption = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        envvar="LAKEHOUSE_WAREHOUSE",
        help="folder of the data files, or s3://bucket/prefix, gs://, az://; default: ./.lakehouse/warehouse",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", callback=hush, help="print one JSON document instead of tables")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", callback=hush, help="show no progress")]
"""A parameter that a command need not look at."""


def complete_table(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of tables that begin like this, for the shell; none where the lake cannot be opened."""
    given = ctx.params
    catalog, warehouse = addresses(given.get("catalog"), given.get("warehouse"))
    try:
        if import_module("lakehouse.catalog.store.opening").is_missing(catalog):
            return []
        with open_lake(catalog, str(warehouse)) as lake:
            return [name for name in lake.tables() if name.startswith(incomplete)]
    except lakehouse.LakehouseError:
        return []


TableArgument = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="name of a table", show_default=False, autocompletion=complete_table),
]
AsOfOption = Annotated[
    str | None,
    typer.Option("--as-of", help="version, tag or time (ISO 8601); default: the head", show_default=False),
]
IntervalOption = Annotated[
    str | None,
    typer.Option("--interval", help="a period such as 2013-01 or 2013-W02, or start/end", show_default=False),
]
MessageOption = Annotated[
    str | None, typer.Option("--message", "-m", help="stored with the commit", show_default=False)
]
SchemaOption = Annotated[
    Fit,
    typer.Option(
        "--schema",
        help="rows with other columns than the table's: refuse them, add columns to the table, or leave them out",
    ),
]


OWN_PROCESS: ContextVar[bool] = ContextVar("lakehouse_own_process", default=False)
"""Whether this process runs one command and nothing else, as `main` says: others may want their frames known."""


class _Forgone:
    """Finds no pandas, so that whoever tries to import it goes on without."""

    def find_spec(self, name: str, *_: object) -> None:
        """Raise for pandas; leave all else to others."""
        if name == "pandas":
            raise ModuleNotFoundError("a command does without pandas", name=name)


def forgo_pandas() -> None:
    """Let Arrow make its arrays without pandas in this process, which takes a third of a second to load.

    Arrow tries to load it once, with its first array of Python values, to know pandas' own values among them. A command
    gets none. `to_pandas` tries again. Only for a process that runs one command: `OWN_PROCESS`.
    """
    finder: Any = _Forgone()
    sys.meta_path.insert(0, finder)
    try:
        import_module("pyarrow").array([0])
    finally:
        sys.meta_path.remove(finder)


def open_lake(catalog: str | None, warehouse: str | None) -> Lake:
    """Open the lake that the options, the environment or the defaults name; make an empty one if there is none."""
    if OWN_PROCESS.get():
        forgo_pandas()
    return lakehouse.connect(catalog, warehouse)


def open_existing(catalog: str | None, warehouse: str | None) -> Lake:
    """Open the lake that is named, for a command that only looks. Raises `InvalidAddress` if there is none."""
    address, _ = addresses(catalog, warehouse)
    if import_module("lakehouse.catalog.store.opening").is_missing(address):
        raise InvalidAddress("there is no lake; name yours by --catalog, or make one: lakehouse init", catalog=address)
    return open_lake(catalog, warehouse)


_MOST_DIGITS = 100
"""Only digits make a version, other text is a tag; longer text is neither."""


def point_in_history(text: str | None) -> int | str | None:
    """Turn a version into a number; a tag or a time stays text."""
    return int(text) if text is not None and text.isdecimal() and len(text) <= _MOST_DIGITS else text


def pinned(table: Table, as_of: str | None) -> int | str:
    """A point in history that, unlike the head, stays the same between two look-ups."""
    point = point_in_history(as_of)
    return table.version if point is None else point
