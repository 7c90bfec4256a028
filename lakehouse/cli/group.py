"""Commands together: how `--help` lists them, and what they were given when one fails."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperGroup

_ALIASES = {
    "arg": ("args",),
    "memory": ("memory_bytes", "most_memory"),
    "seconds": ("most_seconds",),
}
"""What the library calls options of other names."""


class Group(TyperGroup):
    """A group that lists its commands by what they are for, each with its whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, under the headings that they were registered with."""
        headings: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                heading = getattr(command, "rich_help_panel", None) or "Commands"
                headings.setdefault(heading, []).append((name, first_sentence(command.help or "")))
        longest = max((len(name) for rows in headings.values() for name, _ in rows), default=0)
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(longest), said) for name, said in rows])


def first_sentence(text: str) -> str:
    """The first sentence of a command's help.

    >>> first_sentence("Drop a table. What it held can be read as of earlier versions.")
    'Drop a table.'
    """
    return re.split(r"(?<=\.)\s", " ".join(text.split("\n\n")[0].split()), maxsplit=1)[0]


def options_of(command: Any) -> dict[str, str]:
    """The options of a command, by the name of the argument that each is in Python."""
    found: dict[str, str] = {}
    for one in command.params:
        long = next((opt for opt in one.opts if opt.startswith("--")), None)
        if long is not None:
            named = long.removeprefix("--").replace("-", "_")
            found |= dict.fromkeys((one.name, named, *_ALIASES.get(named, ())), long)
    return found


def command_of(group: Any, words: list[str]) -> Any:
    """The command that the words of a command line name, as far as they do."""
    found = group
    for word in words:
        inner = getattr(found, "commands", {}).get(word)
        if inner is None:
            break
        found = inner
    return found
