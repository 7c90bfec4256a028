"""The command line: every command is a thin call of the library's public API.

Exit codes: 0 done, 1 failed (the reason on standard error, in one line), 2 wrong usage, 130 (Ctrl-C) and 143
(SIGTERM) interrupted: nothing was written; a command in many steps stops, and one line says what stays done.
"""

from __future__ import annotations

import io
import json
import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

import lakehouse
from lakehouse.cli.advice import in_shell
from lakehouse.cli.group import Group, command_of, options_of
from lakehouse.cli.options import OWN_PROCESS
from lakehouse.cli.output import plain, printable
from lakehouse.cli.progress import shown
from lakehouse.errors import InternalError, LakehouseError
from lakehouse.interrupts import listening

_COMMANDS = {
    "Begin": {
        "init": "write.init",
        "create": "create.create",
        "new": "new.new",
        "demo": "run.demo",
        "doctor": "run.doctor",
        "console": "run.console",
    },
    "Look": {
        "tables": "look.tables",
        "head": "tables.head",
        "count": "tables.count",
        "sql": "statement.sql",
        "log": "look.log",
        "show": "look.show_table",
        "diff": "look.diff",
        "timeline": "look.timeline",
        "locks": "look.locks",
        "consumers": "consumers.consumers",
    },
    "Change rows": {
        "append": "write.append",
        "replace": "write.replace",
        "delete": "change.delete",
        "update": "change.update",
        "upsert": "change.upsert",
        "erase": "change.erase",
    },
    "Change tables": {
        "alter": "maintain.alter",
        "drop": "tables.drop",
        "rename": "tables.rename",
        "restore": "write.restore",
        "rebuild": "write.rebuild",
        "tag": "write.tag",
    },
    "Maintain": {
        "maintain": "maintain.maintain",
        "tasks": "maintain.tasks",
        "compact": "write.compact",
        "resolve": "change.resolve",
        "expire": "clean.expire",
        "collect": "clean.collect",
        "check": "clean.check",
        "export": "rescue.export",
        "recover": "rescue.recover",
        "cache": "copies.cache",
        "migrate": "run.migrate",
    },
    "Serve": {
        "serve": "serve.serve",
        "serving": "serve.serving",
        "stream": "stream.stream",
    },
}
"""Commands by what they are for, each with the module and the name of what runs it."""


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"lakehouse {lakehouse.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version and end")
    ] = False,
) -> None:
    """Versioned time-series tables: immutable segments under tombstones."""


def application(only: str | None = None) -> typer.Typer:
    """The command line with all commands; with ``only`` one of them, since loading all takes longer than most run."""
    made = typer.Typer(
        name="lakehouse",
        cls=Group,
        help="Versioned time-series tables: immutable segments under tombstones.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_options)
    for heading, commands in _COMMANDS.items():
        for name, place in commands.items():
            if only in (None, name):
                module, _, function = place.partition(".")
                command: Any = getattr(import_module(f"lakehouse.cli.{module}"), function)
                if isinstance(command, typer.Typer):
                    made.add_typer(command, name=name, rich_help_panel=heading)
                else:
                    made.command(name, rich_help_panel=heading)(command)
    return made


def __getattr__(name: str) -> Any:
    """``app``, which is all commands; `main` makes the one that it runs."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault("app", application())


def _asked() -> str | None:
    """The command that the process's arguments begin with, if they do."""
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    return first if any(first in commands for commands in _COMMANDS.values()) else None


def main() -> None:
    """Run the command line on the process's arguments, and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # arguments may hold bytes that are no text
            stream.reconfigure(errors="backslashreplace")
    OWN_PROCESS.set(True)
    try:
        with listening(), shown():
            application(_asked())()
    except LakehouseError as error:
        _print_error(error, _said(error))
        sys.exit(1)
    except Exception as error:
        if os.environ.get("LAKEHOUSE_DEBUG"):
            raise
        said = printable(f"{type(error).__name__}: {error}")[:500]
        _print_error(
            InternalError(said),
            f"a bug of lakehouse: {said}; please report it with the command; LAKEHOUSE_DEBUG=1 shows where",
        )
        sys.exit(1)


def _said(error: LakehouseError) -> str:
    """Why a command failed, in the words of the shell."""
    group = typer.main.get_command(application())
    typed = [one for one in sys.argv[1:] if not one.startswith("-")]
    commands = command_of(group, []).commands
    return in_shell(error, options_of(command_of(group, typed)), commands, options_of(commands["init"]))


def _print_error(error: LakehouseError, message: str) -> None:
    """Print on standard error why a command failed."""
    if "--json" in sys.argv:
        document = {"error": error.kind, "code": error.code, "message": message, "facts": plain(error.facts)}
        print(json.dumps(document, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"lakehouse: {printable(message)}", file=sys.stderr)
