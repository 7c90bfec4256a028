"""Values that change with age, as people write them: ``8, 4 after 1h, 2 after 1d``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from lakehouse.core.duration import duration_seconds

T = TypeVar("T")

_DAY = 86_400.0


def read_steps(text: str, read: Callable[[str], T | None]) -> tuple[tuple[float, T], ...] | None:
    """Read ``VALUE[, VALUE after AGE ...]``: pairs of an age in seconds and the value from then on, the first of age 0.

    Ages grow. None for any other text, or where ``read`` knows no value.

    >>> read_steps("8, 2 after 1h", lambda one: int(one) if one.isdigit() else None)
    ((0.0, 8), (3600.0, 2))
    >>> read_steps("8, 2", int) is None, read_steps("8 after 1h", int) is None
    (True, True)
    """
    steps: list[tuple[float, T]] = []
    for part in text.split(","):
        written, after, age = part.strip().partition(" after ")
        seconds = duration_seconds(age.strip()) if after else 0.0
        value = read(written.strip())
        if value is None or seconds is None or not (seconds > steps[-1][0] if steps else seconds == 0.0):
            return None
        steps.append((seconds, value))
    return tuple(steps)


def steps_text(steps: Iterable[tuple[float, object]]) -> str:
    """The inverse of `read_steps`.

    >>> steps_text([(0.0, 8), (7200.0, 2)])
    '8, 2 after 2h'
    """
    return ", ".join(f"{value}{f' after {age_text(age)}' if age else ''}" for age, value in steps)


def age_text(seconds: float) -> str:
    """An age in the greatest unit of which it is a whole number.

    >>> age_text(172_800.0), age_text(90.0), age_text(1234567.5)
    ('2d', '90s', '1234567.5s')
    """
    for unit, length in (("d", _DAY), ("h", 3600.0), ("m", 60.0)):
        if seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:f}".rstrip("0").rstrip(".") + "s"
