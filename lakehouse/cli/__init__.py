"""The command line: every command is a thin call of the library's public API.

Exit codes: 0 done, 1 failed (the reason on standard error, in one line), 2 wrong usage, 130 (Ctrl-C) and 143
(SIGTERM) interrupted: nothing was written; a command in many steps stops, and one line says what stays done.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

import lakehouse
from lakehouse.cli import (
    change,
    clean,
    consumers,
    copies,
    create,
    look,
    maintain,
    new,
    rescue,
    run,
    serve,
    statement,
    tables,
    write,
)
from lakehouse.cli.advice import in_shell
from lakehouse.cli.group import Group, command_of, options_of
from lakehouse.cli.options import OWN_PROCESS
from lakehouse.cli.output import plain, printable
from lakehouse.cli.progress import shown
from lakehouse.cli.stream import stream as streams
from lakehouse.errors import InternalError, LakehouseError
from lakehouse.interrupts import listening

app = typer.Typer(
    name="lakehouse",
    cls=Group,
    help="Versioned time-series tables: immutable segments under tombstones.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"lakehouse {lakehouse.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version and end")
    ] = False,
) -> None:
    """Versioned time-series tables: immutable segments under tombstones."""


_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Begin": {
        "init": write.init,
        "create": create.create,
        "new": new.new,
        "demo": run.demo,
        "doctor": run.doctor,
        "console": run.console,
    },
    "Look": {
        "tables": look.tables,
        "head": tables.head,
        "count": tables.count,
        "sql": statement.sql,
        "log": look.log,
        "show": look.show_table,
        "diff": look.diff,
        "timeline": look.timeline,
        "locks": look.locks,
        "consumers": consumers.consumers,
    },
    "Change rows": {
        "append": write.append,
        "replace": write.replace,
        "delete": change.delete,
        "update": change.update,
        "upsert": change.upsert,
        "erase": change.erase,
    },
    "Change tables": {
        "alter": maintain.alter,
        "drop": tables.drop,
        "rename": tables.rename,
        "restore": write.restore,
        "rebuild": write.rebuild,
        "tag": write.tag,
    },
    "Maintain": {
        "maintain": maintain.maintain,
        "tasks": maintain.tasks,
        "compact": write.compact,
        "resolve": change.resolve,
        "expire": clean.expire,
        "collect": clean.collect,
        "check": clean.check,
        "export": rescue.export,
        "recover": rescue.recover,
        "cache": copies.cache,
        "migrate": run.migrate,
    },
    "Serve": {
        "serve": serve.serve,
        "serving": serve.serving,
    },
}
for heading, commands in _COMMANDS.items():
    for name, command in commands.items():
        app.command(name, rich_help_panel=heading)(command)
app.add_typer(streams, name="stream", rich_help_panel="Serve")


def main() -> None:
    """Run the command line on the process's arguments, and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # arguments may hold bytes that are no text
            stream.reconfigure(errors="backslashreplace")
    OWN_PROCESS.set(True)
    try:
        with listening(), shown():
            app()
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
    group = typer.main.get_command(app)
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
