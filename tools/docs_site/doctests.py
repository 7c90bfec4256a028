"""Examples in docstrings as blocks of code, for the site: to Markdown, `>>>` would begin three quotations."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*)+", re.MULTILINE)


class FencedExamples(Extension):
    """Put a fence around each run of `>>>` lines and what they print."""

    def on_object(self, *, obj: Object, **_others: Any) -> None:
        """Change a docstring before it is parsed."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with its examples in fences."""
    return _EXAMPLE.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", text)
