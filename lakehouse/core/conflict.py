"""When two operations may not hold what they want at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope, key_scope, scopes_overlap


@dataclass(frozen=True, slots=True)
class Cell:
    """What a lock holds: whole time chunks, and in them the rows of a key scope (None: all rows)."""

    interval: Interval
    keys: KeyScope | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", key_scope(self.keys))

    @classmethod
    def around(cls, interval: Interval, grain: Grain, keys: KeyScope | None = None) -> Cell:
        """The cell that an operation on an interval has to hold."""
        return cls(grain.align(interval), keys)


def locks_clash(a: Cell, b: Cell) -> bool:
    """Whether two cells share a chunk and may share a row in it.

    >>> day = Interval.of("2013-01-05")
    >>> locks_clash(Cell(day, {"client": 1234}), Cell(day, {"client": 77}))
    False
    >>> locks_clash(Cell(day, {"client": 1234}), Cell(day))
    True
    """
    return a.interval.overlaps(b.interval) and scopes_overlap(a.keys, b.keys)
