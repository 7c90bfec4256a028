"""The page of commands, made of the commands themselves: what it says is what `--help` says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from lakehouse.cli import app

_HEAD = """\
# Commands

What follows is made of the commands themselves when the site is built: `lakehouse NAME --help` says the same. Exit
codes: 0 done, 1 failed, 2 wrong usage, 130 and 143 interrupted.

"""


def command_page() -> str:
    """All commands, with their arguments and options, as Markdown."""
    group: Any = get_command(app)
    return _HEAD + "\n".join(_lines(group, "lakehouse"))


def command_names() -> list[str]:
    """The commands of the first level and, after a blank, those below them."""
    return [name for name, _ in _walk(get_command(app), "")]


def _lines(group: Any, program: str) -> Iterator[str]:
    for name, command in _walk(group, ""):
        context: Any = _context(command, f"{program} {name}")
        yield f"## {name}\n"
        yield f"{_paragraphs(command.help)}\n"
        yield f"```text\n{' '.join([f'{program} {name}', *command.collect_usage_pieces(context)])}\n```\n"
        shown = [one for one in command.get_params(context) if "--help" not in one.opts]
        rows = [record for one in shown if (record := _record(one, context))]
        if rows:
            yield "| argument or option | what it is |\n|---|---|"
            yield from (f"| {_code(names)} | {_cell(text)} |" for names, text in rows)
            yield ""


def _walk(group: Any, before: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from _walk(command, f"{before}{name} ")
        elif not command.hidden:
            yield f"{before}{name}", command


def _context(command: Any, name: str) -> Any:
    return command.context_class(command, info_name=name, max_content_width=10_000)


def _record(parameter: Any, context: Any) -> tuple[str, str] | None:
    """How an argument or option is written, and what its help says; None for one that is not shown."""
    found: tuple[str, str] | None = parameter.get_help_record(context)
    return found


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (text or "").replace("\b", "").split("\n\n"))


def _code(text: str) -> str:
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`"


def _cell(text: str) -> str:
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return escaped.replace("*", "\\*").replace("[", "\\[").replace("_", "\\_")
