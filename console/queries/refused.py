"""Why a statement was refused, in the engine's own words, and what can be done about it on this page.

The library's errors give advice for Python and the command line too. A page has neither: that part is left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from lakehouse.errors import LakehouseError, OnlySpark, QueryLimitExceeded, TableNotFound
from shown import shown

MOST_NEAR = 3
_MOST_LISTED = 40
_MOST_CHARACTERS = 2_000
_MOST_LETTERS = 128
_ELSEWHERE = re.compile(r"engine=|args=|as_of|most_\w+|BEGIN|lake\.\w+|\blakehouse \w+|--\w|\bpass\b|one of the list")
"""What advice says that is for callers in Python, or for the command line."""
_EMPTY = ("correct it", "choose among those there are")
"""What goes without saying below a refused statement and the names that there are."""
_CLASS = re.compile(r"<class '[\w.]*?(\w+)'>")
_AROUND = 60
"""Characters of a statement before and after the place that an error names."""


@dataclass(frozen=True, slots=True)
class Refused:
    """``words`` is what the engine says; ``near`` are names that may be meant, ``known`` all those that there are.

    ``pointer`` is the part of the statement that the error names, with a mark below; ``advice`` what to do here.
    """

    words: str
    pointer: str
    near: tuple[str, ...]
    known: tuple[str, ...]
    advice: str


def explain(error: LakehouseError, sql: str, names: Sequence[str]) -> Refused:
    """What to show of an error of a statement; ``names`` are tables and views of the lake."""
    what, advice = split(error)
    facts = error.facts
    cause = _CLASS.sub(r"\1", str(facts.get("cause") or ""))
    asked, known = _asked(error, names)
    bare = {one.rpartition(".")[2].casefold(): one for one in known}
    near = get_close_matches(asked.rpartition(".")[2].casefold()[:_MOST_LETTERS], list(bare), MOST_NEAR)
    named = "" if cause or not asked or asked in what else f" ({asked})" if ":" in what else f": {asked}"
    return Refused(
        words=shown(cause or what[:1].upper() + what[1:] + named, _MOST_CHARACTERS),
        pointer=_pointer(sql, facts.get("line"), facts.get("column")),
        near=tuple(bare[one] for one in near),
        known=tuple(known) if len(known) <= _MOST_LISTED else (),
        advice=_advice(error, advice),
    )


def split(error: LakehouseError) -> tuple[str, str]:
    """What happened, and what an error says to do about it, without the facts that it ends with.

    >>> from lakehouse.errors import InvalidStatement
    >>> split(InvalidStatement('refused; correct it, or use engine="spark"', cause="x"))
    ('refused', 'correct it, or use engine="spark"')
    """
    what, _, advice = error.said.partition("; ")
    return what, advice


def here(advice: str) -> str:
    """The parts of an advice that can be followed on a page.

    >>> here('use sub-queries, or engine="spark"'), here("pass args=[...], a value for each ?")
    ('Use sub-queries.', '')
    """
    parts = [one for one in advice.split(", or ") if one not in _EMPTY and not _ELSEWHERE.search(one)]
    text = ", or ".join(parts).strip()
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _advice(error: LakehouseError, advice: str) -> str:
    if isinstance(error, OnlySpark):
        return "Only Spark calculates this, and the console has none. Write it with other functions."
    if isinstance(error, QueryLimitExceeded):
        return f"{here(advice)} What you may allow is under Limits.".strip()
    if "functions" in error.facts:
        return "SHOW FUNCTIONS lists those that there are."
    if "args=" in advice:
        return "Write the values into the statement: there is nowhere else to give them."
    if "one of the list" in advice:
        return "Statements here begin with SELECT, WITH, FROM, VALUES, SHOW, DESCRIBE or EXPLAIN."
    return here(advice)


def _asked(error: LakehouseError, names: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The name that was not found, and those that there are."""
    facts: dict[str, Any] = error.facts
    if isinstance(error, TableNotFound):
        return str(facts.get("table") or facts.get("view") or ""), names
    if "functions" in facts:
        return str(facts.get("found", "")).removesuffix("()"), str(facts["functions"]).split()
    if facts.get("columns") and isinstance(facts.get("column"), str):
        return facts["column"], [one.strip(" '[]") for one in str(facts["columns"]).split(",")]
    return (str(facts.get("column") or facts.get("found") or ""), ()) if "line" not in facts else ("", ())


def _pointer(sql: str, line: Any, column: Any) -> str:
    """The line of a statement that an error names, and a mark under the place in it; nothing if it names none."""
    lines = sql.splitlines()
    if not isinstance(line, int) or not isinstance(column, int) or not 0 < line <= len(lines):
        return ""
    start = max(0, column - _AROUND)
    part = shown(lines[line - 1][start : column + _AROUND], 2 * _AROUND)
    return f"{part}\n{' ' * max(0, column - start - 1)}^"
