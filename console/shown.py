"""Values as text that is safe to show: cut, and with characters that would change the surrounding text made visible."""

import re
from typing import Any

MOST = 500
"""Characters of a value that are shown."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except tab and line end
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # zero width, or changing the direction of text
    "\ud800-\udfff]"  # surrogates, which browsers refuse
)


def shown(value: Any, most: int = MOST) -> str:
    """A value as one text: cut after ``most`` characters, hidden characters written out by their code."""
    text = value if isinstance(value, str) else str(value)
    cut = text[:most]
    cut = _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", cut)
    return cut if len(text) <= most else f"{cut}… ({len(text):,} characters)"
