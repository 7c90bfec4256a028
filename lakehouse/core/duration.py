"""Lengths of time as people write them."""

from __future__ import annotations

import re

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
MOST_SECONDS = 1e10
"""Three centuries, which is for ever: times are counted in microseconds of 64 bits."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw]?)")


def duration_seconds(text: str) -> float | None:
    """Seconds of a text such as "30d", three centuries at most; None for text that is none.

    >>> duration_seconds("30d"), duration_seconds("1.5h"), duration_seconds("2013-01-05")
    (2592000.0, 5400.0, None)
    >>> duration_seconds("99999999999d")
    10000000000.0
    """
    found = _DURATION.fullmatch(text)
    return None if found is None else min(float(found[1]) * _UNITS[found[2] or "s"], MOST_SECONDS)


def age_seconds(text: str) -> float | None:
    """Seconds of an age by which something is lost: its unit is never left to a guess.

    >>> age_seconds("30d"), age_seconds("30")
    (2592000.0, None)
    """
    return duration_seconds(text) if text[-1:].isalpha() else None
