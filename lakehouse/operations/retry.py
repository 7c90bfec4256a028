"""Retrying an operation after conflicts."""

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
    """The result of the first attempt that does not raise ``on``; ``between`` is called with each error.

    The error is raised once ``wait_seconds`` have elapsed and four attempts were made. Each conflict means that another
    operation committed, so the table makes progress.
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
