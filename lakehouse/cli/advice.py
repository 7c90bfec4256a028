"""What errors advise, in the words of the shell: the library names arguments of Python, and commands have options."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from lakehouse.errors import LakehouseError

_VALUE = r"(?:\"[^\"]*\"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|\w+)"
_GIVEN = re.compile(rf"\b(?P<name>[a-z][a-z_]*)=(?P<value>{_VALUE})")
"""An argument with its value, as in ``engine="spark"``."""
_CALL = re.compile(r"\blake\.(\w+)\(\)")
_BARE = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
_ELSEWHERE = re.compile(
    rf"\b[a-z_]+={_VALUE}|\w\.\w+\(|\b(?:to_\w+|is_nan|is_null)\(\)|\b(?:best_effort|storage_options|cache_dir)\b"
)
"""What only Python has."""
_BETWEEN = re.compile(r"(, or |, and |; | or )")
_IN_PARENTHESES = re.compile(r" \(([a-z]+(?:_[a-z]+)+)\)")


def in_shell(
    error: LakehouseError, options: Mapping[str, str], commands: Collection[str], creating: Mapping[str, str]
) -> str:
    """An error's message for who typed a command with these options, by the name of the Python argument.

    An advice that only Python can follow is left out. ``creating`` are options of the command that creates tables.

    >>> from lakehouse.errors import AlreadyExists
    >>> there = AlreadyExists("a table has that name; choose another or pass if_not_exists=True", table="trips")
    >>> in_shell(there, {"if_not_exists": "--if-not-exists"}, (), {})
    'a table has that name; choose another or add --if-not-exists (table=trips)'
    >>> in_shell(there, {}, (), {})
    'a table has that name; choose another (table=trips)'
    """
    what, sign, advice = error.said.partition("; ")
    facts = str(error.args[0])[len(error.said) :]
    parts = _BETWEEN.split(_IN_PARENTHESES.sub(lambda one: _parenthesis(one, options), advice))
    told = ""
    for between, part in zip(["", *parts[1::2]], parts[::2], strict=True):
        said = _CALL.sub(lambda one: f"lakehouse {one[1]}" if one[1] in commands else one[0], part)
        said = _written(said, {**creating, **options} if part.startswith("create it") else options)
        if not _ELSEWHERE.search(said):
            told += f"{between if told else ''}{said}"
    return f"{_written(what, options)}{sign if told else ''}{told}{facts}"


def _written(text: str, options: Mapping[str, str]) -> str:
    """A text in which arguments are options."""
    said = _GIVEN.sub(lambda one: _option(one, options), text)
    return _BARE.sub(lambda one: options.get(one[0], one[0]), said).replace("pass --", "add --")


def _option(given: re.Match[str], options: Mapping[str, str]) -> str:
    option = options.get(given["name"])
    if option is None:
        return given[0]
    value = given["value"].strip("\"'")
    return option if value == "True" or value[:1] in "[{" else f"{option} {value}"


def _parenthesis(one: re.Match[str], options: Mapping[str, str]) -> str:
    return one[0] if one[1] in options else ""
