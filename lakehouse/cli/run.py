"""Commands that run something: demo, doctor, migrate, console."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

import lakehouse
from lakehouse import interrupts
from lakehouse.actions.reach import check_reach, has_login
from lakehouse.cli.options import CatalogOption, JsonOption, WarehouseOption, open_lake
from lakehouse.cli.output import print_json, print_line
from lakehouse.errors import InternalError
from lakehouse.extras import load, named

DEFAULT_PORT = 8501
_LOOPBACK = "127.0.0.1"

# These commands import what they run only when they run: other commands must not wait for Dagster, and the library must
# not need it.


def demo(catalog: CatalogOption = None, warehouse: WarehouseOption = None, as_json: JsonOption = False) -> None:
    """Load real flights through Dagster and Spark, change them in every way, and check every count."""
    interrupts.in_steps()
    _export(catalog, warehouse)
    demo_of = load("lakehouse.demo", "demo")
    with named("demo"):
        raise typer.Exit(demo_of.main())


def doctor(
    start_spark: Annotated[bool, typer.Option("--start-spark", help="also start a Spark session (seconds)")] = False,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check Java, Spark, Python, SQLite, the catalog and the warehouse, and say what to do."""
    module = import_module("lakehouse.admin.doctor")
    findings = module.examine(catalog, warehouse, start_spark=start_spark)
    if as_json:
        print_json(findings)
    else:
        for one in findings:
            print_line(f"{one.status:<4}  {one.subject:<16} {one.found}")
            if one.remedy:
                print_line(f"      {'':<16} -> {one.remedy}")
    raise typer.Exit(1 if any(one.status == "fail" for one in findings) else 0)


def migrate(catalog: CatalogOption = None, warehouse: WarehouseOption = None, as_json: JsonOption = False) -> None:
    """Migrate the catalog's tables to this release, as opening it does."""
    interrupts.in_steps()
    with open_lake(catalog, warehouse) as lake:
        address, head = lake.catalog.url, lake.head
    revision = import_module("lakehouse.catalog.store.migration").REVISION
    if as_json:
        return print_json({"catalog": address, "revision": revision, "head": head})
    return print_line(f"{address} is at revision {revision}, version {head}")


def console(
    port: Annotated[int, typer.Option(min=1, max=65535, metavar="PORT", help="port to listen on")] = DEFAULT_PORT,
    browser: Annotated[bool, typer.Option("--browser", help="open the page in a browser")] = False,
    allow_actions: Annotated[
        bool, typer.Option("--allow-actions", help="allow changes by this machine's users; see --role")
    ] = False,
    role: Annotated[
        Literal["maintainer", "admin"], typer.Option(help="what they may do, with --allow-actions")
    ] = "maintainer",
    address: Annotated[
        str, typer.Option(help="address to listen on; one that others reach needs a login in .streamlit/secrets.toml")
    ] = _LOOPBACK,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST", help="a host name to answer to, NAME or NAME:PORT; repeat for more", show_default=False
        ),
    ] = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Serve the console until Ctrl-C: to this machine only and without changes, unless options say otherwise.

    If there is a login, LAKEHOUSE_ROLES names the file of roles.
    """
    load("streamlit")
    script = console_script()
    folders = (Path.home(), Path.cwd(), script.parent)
    check_reach(address, login=has_login(folder / ".streamlit" / "secrets.toml" for folder in folders))
    _export(catalog, warehouse)
    if host:
        os.environ["LAKEHOUSE_CONSOLE_HOSTS"] = ",".join(host)
    os.environ["LAKEHOUSE_CONSOLE_ROLE"] = role if allow_actions else "reader"
    options = {
        "server.address": address,
        "server.port": str(port),
        "server.headless": str(not browser).lower(),
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    # Replaces this process, so that stopping it stops the server.
    os.execv(
        sys.executable,
        [sys.executable, str(script.with_name("start.py")), "run", str(script.with_name("served.py")), *flags],
    )


def console_script() -> Path:
    """The console's entry script: inside an installed package, or beside the package in its repository."""
    package = Path(lakehouse.__file__).parent
    for script in (package / "_console" / "app.py", package.parent / "console" / "app.py"):
        if script.is_file():
            return script
    raise InternalError("the console is not part of this installation; install the wheel again", folder=package)


def _export(catalog: str | None, warehouse: str | None) -> None:
    """Pass options to code that reads the environment."""
    for name, value in (("LAKEHOUSE_CATALOG", catalog), ("LAKEHOUSE_WAREHOUSE", warehouse)):
        if value is not None:
            os.environ[name] = value
