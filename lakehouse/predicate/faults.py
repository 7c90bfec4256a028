"""What is wrong with a text in SQL, and where, in words of SQL: the parser's own name its classes and tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot.errors import ParseError, TokenError

_TOKEN = re.compile(r"<Token token_type: [^,]*, text: (.*?), line: \d+, [^>]*>")
_WORDS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"Required keyword: .*"), "something is missing here"),
    (re.compile(r"Expect(?:ed|ing) (.+?)(?: but got SENTINEL)?"), lambda found: f"{found[1]} is missing here"),
    (re.compile(r"Invalid expression / Unexpected token"), "not expected here"),
)


def fault(error: Exception) -> dict[str, Any]:
    """The facts of an error of the parser: line, column and the word where it stopped, if it says so, and a cause.

    >>> from sqlglot import parse_one
    >>> try:
    ...     parse_one("SELECT a > ")
    ... except ParseError as error:
    ...     fault(error)
    {'line': 1, 'column': 10, 'near': "'>'", 'cause': 'something is missing here'}
    """
    if isinstance(error, TokenError):
        return {"cause": "a text, a name or a comment is begun and not ended"}
    if not isinstance(error, ParseError) or not error.errors:
        return {"cause": str(error).split("\n", maxsplit=1)[0] or type(error).__name__}
    found = error.errors[0]
    return {
        "line": found.get("line"),
        "column": found.get("col"),
        "near": repr(found.get("highlight") or ""),
        "cause": _worded(_TOKEN.sub(r"\1", found.get("description") or "not expected here")),
    }


def _worded(said: str) -> str:
    for pattern, words in _WORDS:
        found = pattern.fullmatch(said)
        if found is not None:
            return words if isinstance(words, str) else words(found)
    return said
