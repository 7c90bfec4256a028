"""Rules for names of tables and columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lakehouse.errors import InvalidName

_TABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_COLUMN = re.compile(r"[^\W_][^`\"']{0,127}|__START_AT|__END_AT")
"""The last two are those of Spark's changes that keep every state of a row; others with ``_`` are the library's."""


def check_table_name(name: Any) -> str:
    """Return a table's name, or raise `InvalidInput`.

    >>> check_table_name("flights_2013")
    'flights_2013'
    """
    if not isinstance(name, str) or not _TABLE.fullmatch(name):
        raise InvalidName(
            "bad table name; use a letter, then up to 127 letters, digits or underscores (ASCII)", name=repr(name)
        )
    return name


def check_column_name(name: Any) -> str:
    """Return a column's name, or raise `InvalidInput`. Any script, spaces and ``%`` are fine.

    >>> check_column_name("Verspätung in %")
    'Verspätung in %'
    """
    if not isinstance(name, str) or not _COLUMN.fullmatch(name) or not name.isprintable():
        raise InvalidName(
            "bad column name; begin with a letter or digit, use no quotes, backticks or control characters, "
            "and at most 128 characters",
            column=repr(name),
        )
    return name


def check_distinct(names: Iterable[str]) -> None:
    """Raise `InvalidInput` if two names differ only by case, which Spark treats as one column."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.casefold()
        if folded in seen:
            raise InvalidName(
                "two columns have one name (case does not count); rename one", columns=f"{seen[folded]},{name}"
            )
        seen[folded] = name
