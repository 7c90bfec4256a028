"""`lakehouse demo`: a quarter of real flights through Dagster and Spark, changed every way, every count checked.

What must be visible after each step is computed from the source's CSV by pandas alone, from New York's local clock,
without a line of the lakehouse. What is visible is read back by both engines after each step and, at the end, at every
version that the demo made.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from rich.console import Console

from lakehouse.demo.source import WrongCount
from lakehouse.demo.steps import LOST_WEEK, Demo
from lakehouse.errors import LakehouseError
from lakehouse.lake import connect
from lakehouse.session.addresses import DEFAULT_FOLDER

DAGSTER_FOLDER = ".dagster"


def main(folder: Path | None = None) -> int:
    """Run the demo below a folder; 0, or 1 with the reason on standard error.

    Without a folder it works where Dagster and the lake are by default: `$DAGSTER_HOME` or ./.dagster, and what
    `$LAKEHOUSE_CATALOG` and `$LAKEHOUSE_WAREHOUSE` name or ./.lakehouse. What is there stays; it may run again.
    """
    console = Console(highlight=False)
    started = time.monotonic()
    try:
        _run(folder, console)
    except (WrongCount, LakehouseError) as error:
        Console(stderr=True, highlight=False, markup=False).print(f"demo: {error}", style="red", soft_wrap=True)
        return 1
    console.print(f"Every count is right. {time.monotonic() - started:.0f} s.")
    return 0


def _run(folder: Path | None, console: Console) -> None:
    if str(_code_location()) not in sys.path:
        sys.path.insert(0, str(_code_location()))
    catalog = warehouse = None
    if folder is not None:
        catalog = f"sqlite:///{folder.resolve()}/{DEFAULT_FOLDER}/catalog.db"
        warehouse = f"{folder.resolve()}/{DEFAULT_FOLDER}/warehouse"
    with connect(catalog, warehouse) as lake, _instance(folder) as instance:
        started = time.monotonic()
        spark = importlib.import_module("resources.lake").lakehouse.get_spark()
        demo = Demo(lake, instance, _run_config(catalog, warehouse), console)
        demo.say(None, None, time.monotonic() - started, f"Spark {spark.version} runs")
        loaded = demo.load()
        demo.change()
        demo.compact(loaded)
        demo.look_back(loaded)
        versions = len(demo.expected)
    _show(console, catalog, warehouse, "log", "flights", "--limit", str(versions))
    _show(console, catalog, warehouse, "timeline", "flights", "--interval", str(LOST_WEEK))


def _instance(folder: Path | None) -> dg.DagsterInstance:
    """Dagster's instance of the web server that `make up` starts, so that the demo's runs show there."""
    root = Path.cwd() if folder is None else folder.resolve()
    configured = None if folder is not None else os.environ.get("DAGSTER_HOME")
    home = Path(configured) if configured else root / DAGSTER_FOLDER
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    if not settings.exists():
        shared = _code_location() / "dagster.yaml"
        if shared.exists():
            shutil.copy(shared, settings)
        else:
            settings.write_text("telemetry: {enabled: false}\nnux: {enabled: false}\n")
    return dg.DagsterInstance.from_config(str(home))


def _show(console: Console, catalog: str | None, warehouse: str | None, *command: str) -> None:
    """Run a command of the command line, which the reader can run again."""
    console.print(f"\n$ lakehouse {' '.join(command)}")
    sys.stdout.flush()
    address = {} if catalog is None else {"LAKEHOUSE_CATALOG": catalog, "LAKEHOUSE_WAREHOUSE": str(warehouse)}
    script = Path(sysconfig.get_path("scripts"), "lakehouse")
    subprocess.run([str(script), *command], env=os.environ | address, check=True)


def _run_config(catalog: str | None, warehouse: str | None) -> Mapping[str, Any]:
    """Where the assets find the lake if not by default; of Dagster's log only what went wrong."""
    quiet = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
    if catalog is None:
        return quiet
    return quiet | {"resources": {"lakehouse": {"config": {"catalog": catalog, "warehouse": warehouse}}}}


def _code_location() -> Path:
    """The folder of the packages `assets` and `resources`: inside an installed wheel, or the repository."""
    installed = Path(__file__).parents[1] / "_code_location"
    return installed if installed.is_dir() else Path(__file__).parents[2]
