"""Running an operation again where others come in its way."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=Exception)
_LEAST_ATTEMPTS = 4


def retried(
    attempt: Callable[[], T], *, on: type[E], wait_seconds: float, between: Callable[[E], object] = lambda error: None
) -> T:
    """What an attempt returns, after as many as it takes until none raises ``on``; ``between`` is called with each.

    The error is raised once ``wait_seconds`` have passed and four attempts were made. Whoever was in the way has
    committed, so the table goes forward meanwhile.
    """
    until = time.monotonic() + wait_seconds
    attempts = count(1)
    while True:
        try:
            return attempt()
        except on as error:
            if next(attempts) >= _LEAST_ATTEMPTS and time.monotonic() >= until:
                raise
            between(error)
