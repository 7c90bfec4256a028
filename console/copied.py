"""*Copy as*: what a page shows, as Python, SQL and a command line, and the address to share it."""

import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

import streamlit as st

import links
import pick


@dataclass(frozen=True, slots=True)
class Copied:
    """The same query in three forms; None where there is no such form."""

    python: str | None = None
    sql: str | None = None
    command: str | None = None


def offer(page: str, same: Copied, **parameters: object) -> None:
    """A button that opens them, each with a button that copies it.

    ``page`` is the page's name in its address, ``parameters`` are its own besides table, version and interval.
    """
    parts = {"Python": (same.python, "python"), "SQL": (same.sql, "sql"), "Command line": (same.command, "bash")}
    with st.popover("Copy as", icon=":material/content_copy:"):
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


def python(*lines: str) -> str:
    """Lines of Python, after the lines that open the lake."""
    return "\n".join(["import lakehouse", "", "lake = lakehouse.connect()", *lines])


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
