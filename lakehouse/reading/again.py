"""Reads of the newest version, which may be superseded and expire between two queries to the catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from lakehouse.errors import VersionNotFound

T = TypeVar("T")
_ATTEMPTS = 5


def again_if_forgotten(look: Callable[[], T], as_of: Any = None) -> T:
    """Retry with the new head if the version expired before it could be read."""
    for _ in range(_ATTEMPTS if as_of is None else 0):
        try:
            return look()
        except VersionNotFound:
            continue
    return look()
