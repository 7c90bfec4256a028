"""*Copy as*: what a page shows, as Python, SQL and a command line that run elsewhere, and the address to share it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

import links
import opened
import pick
from lakehouse.core import Interval
from lakehouse.predicate.literals import quoted_text

_HIDDEN = ":***@"
"""Where an address has a password, which no page shows."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The same query in three forms; None where there is no such form, or it cannot say every filter of the page."""

    python: str | None = None
    sql: str | None = None
    command: str | None = None


def offer(page: str, same: Copied, **parameters: object) -> None:
    """A button that opens them, each with a button that copies it.

    ``page`` is the page's name in its address, ``parameters`` are its own besides table, version and interval.
    """
    parts = {"Python": (same.python, "python"), "SQL": (same.sql, "sql"), "Command line": (same.command, "bash")}
    with st.popover("Copy as", icon=":material/content_copy:"):
        if same.python or same.command:
            st.caption("First, for Python and the command line: where the lake is")
            lake = opened.lake()
            st.code(environment(str(lake.catalog.url), str(lake.warehouse)), language="bash", wrap_lines=True)
        for label, (text, language) in parts.items():
            if text:
                st.caption(label)
                st.code(text, language=language, wrap_lines=True)
        st.caption("Address")
        st.code(_root() + links.page(page, **pick.parameters(**parameters)), language=None, wrap_lines=True)


def _root() -> str:
    """The console's address, as this browser sees it."""
    seen = urlsplit(st.context.url or "")
    return f"{seen.scheme}://{seen.netloc}" if seen.netloc else ""


def environment(catalog: str, warehouse: str) -> str:
    """Commands of a shell that say where a lake is, from any folder. A password has to be filled in.

    >>> print(environment("postgresql+psycopg://ada:***@db.example.org/lake", "s3://bucket/lake"))
    # with the password in place of ***
    export LAKEHOUSE_CATALOG='postgresql+psycopg://ada:***@db.example.org/lake'
    export LAKEHOUSE_WAREHOUSE=s3://bucket/lake
    """
    file = catalog.removeprefix("sqlite:///")
    if file != catalog and file not in ("", ":memory:"):
        catalog = f"sqlite:///{Path(file).absolute()}"
    if "://" not in warehouse:
        warehouse = str(Path(warehouse).absolute())
    lines = [
        f"export LAKEHOUSE_CATALOG={shlex.quote(catalog)}",
        f"export LAKEHOUSE_WAREHOUSE={shlex.quote(warehouse)}",
    ]
    return "\n".join([*(["# with the password in place of ***"] if _HIDDEN in catalog else []), *lines])


def python(*lines: str) -> str:
    """Lines of Python, after the lines that open the lake that the environment names."""
    opening = 'lake = lakehouse.connect(os.environ["LAKEHOUSE_CATALOG"], os.environ["LAKEHOUSE_WAREHOUSE"])'
    return "\n".join(["import os", "", "import lakehouse", "", opening, *lines])


def call(function: str, *arguments: object, **options: object) -> str:
    """A call in Python with literal arguments; options that are None are left out.

    >>> call("table.log", 100, operation="append", before=None)
    "table.log(100, operation='append')"
    """
    named = [f"{name}={literal(value)}" for name, value in options.items() if value is not None]
    return f"{function}({', '.join([*map(literal, arguments), *named])})"


def command(*words: object, **options: object) -> str:
    """A command line of ``lakehouse``; options that are None are left out, one that is True is a flag."""
    named = [part for name, value in options.items() if value is not None for part in _option(name, value)]
    return shlex.join(["lakehouse", *(str(word) for word in words), *named])


def _option(name: str, value: object) -> list[str]:
    flag = "--" + name.replace("_", "-")
    return [flag] if value is True else [flag, str(value)]


def literal(value: object) -> str:
    """A value as a Python literal, an interval as its text."""
    return repr(value if isinstance(value, int | str | None) else str(value))


def within(interval: Interval | None, start: str, end: str | None = None) -> list[str]:
    """Conditions in SQL that an interval overlaps another; without ``end``, that it holds an instant. None: none.

    >>> within(Interval.of("2013-01-05"), "`at`")
    ["`at` >= TIMESTAMP '2013-01-05T00:00:00'", "`at` < TIMESTAMP '2013-01-06T00:00:00'"]
    """
    if interval is None:
        return []
    first, last = (f"TIMESTAMP '{edge.replace(tzinfo=None).isoformat()}'" for edge in (interval.start, interval.end))
    return [f"{end} > {first}" if end else f"{start} >= {first}", f"{start} < {last}"]


def is_among(keys: Mapping[str, Sequence[Any]] | None) -> str:
    """A filter for rows with some keys, as the laser reads them; "" for all rows.

    >>> is_among({"carrier": ("UA", "AA"), "client": (7,)})
    "`carrier` IN ('UA', 'AA') AND `client` IN (7)"
    """
    listed = ((column, ", ".join(map(_value, values))) for column, values in (keys or {}).items())
    return " AND ".join(f"`{column}` IN ({values})" for column, values in listed)


def _value(value: Any) -> str:
    is_number = isinstance(value, bool | int | float | Decimal)
    return str(value).upper() if is_number else quoted_text(str(value))


def select(source: str, *conditions: str, order: str = "", limit: int | None = None) -> str:
    """A SELECT of every column.

    >>> select("trips VERSION AS OF 7", "client = 12", limit=100)
    'SELECT * FROM trips VERSION AS OF 7 WHERE client = 12 LIMIT 100'
    """
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    tail = f"{f' ORDER BY {order}' if order else ''}{f' LIMIT {limit}' if limit else ''}"
    return f"SELECT * FROM {source}{where}{tail}"  # noqa: S608 - to be copied, of names and literals
