"""Documents of JSON in a column of text, and what docs/types.md's statement finds in them, by plain Python."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from tests.unit.engine.typed import PAGE

STATEMENT = re.findall(r"```sql\n(SELECT id, get_json_object.*?)```", PAGE, re.DOTALL)[0]
PARTS = ("$.user.name", "$.user", "$.tags[0]", "$.tags[1]", "$.tags", "$.price", "$.flag", "$.nothing", "$.user.age")
DOCUMENTS = [
    '{"user": {"name": "Ann", "age": 7}, "tags": ["new", "old"], "price": 1.50, "flag": true, "nothing": null}',
    '{"user": {"name": "é列 \\"q\\" \'s"}, "tags": ["new"], "price": 0.10, "flag": false}',
    '{"user": {"name": ""}, "tags": [], "price": "12345.67", "flag": null}',
    '{"tags": ["a/b", {"a": [1, {"b": 2}]}], "price": -3}',
    '{"user": "none", "price": "7.25", "tags": "new"}',
    '{"tags": ["new"], "price": 2, "user": {"name": null}}',
    "{}",
    "[1, 2]",
    '"text"',
    "null",
    None,
]


def part(text: str | None, path: str) -> str | None:
    """What `get_json_object` finds, by Python's own JSON."""
    found: Any = None if text is None else json.loads(text)
    for key, place in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        if key:
            found = found.get(key) if isinstance(found, dict) else None
        else:
            found = found[int(place)] if isinstance(found, list) and int(place) < len(found) else None
    return _text(found, outermost=True)


def _text(value: Any, *, outermost: bool = False) -> str | None:
    match value:
        case None:
            return None if outermost else "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case str():
            return value if outermost else json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{','.join(map(str, map(_text, value)))}]"
    return f"{{{','.join(f'{json.dumps(name)}:{_text(one)}' for name, one in value.items())}}}"


def selected() -> list[tuple[int, str | None]]:
    """The rows of the page's statement over the documents, each with its place as id."""
    found = []
    for place, text in enumerate(DOCUMENTS):
        price = part(text, "$.price")
        if part(text, "$.tags[0]") == "new" and price is not None and Decimal(price) > Decimal("0.10"):
            found.append((place, part(text, "$.user.name")))
    return found
