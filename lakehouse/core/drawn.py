"""Numbers of the sequence of versions that are none: operations drew them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_MOST = 100


@dataclass(frozen=True, slots=True)
class DrawnNumber:
    """A number that an operation drew when it began, as the place of its rows in the table's write order.

    ``state``: running, committed (as ``version``), aborted or collected.
    """

    number: int
    operation: str
    table: str
    state: str
    version: int | None = None

    def __str__(self) -> str:
        became = {
            "committed": f"became version {self.version}",
            "running": "is still running",
        }.get(self.state, "did not commit")
        return f"{self.number} was drawn by a {self.operation} of {self.table}, which {became}"


def gaps(versions: Iterable[int]) -> list[int]:
    """The numbers between versions that are not among them, at most the newest hundred.

    >>> gaps([7, 5, 3, 2])
    [4, 6]
    """
    found: list[int] = []
    for low, high in pairwise(sorted(versions)):
        found += range(max(low + 1, high - _MOST), high)
    return found[-_MOST:]


def said_of_others(missing: Sequence[int], drawn: Iterable[DrawnNumber], *, of_table: bool) -> str | None:
    """What is to be said of numbers whose drawer is not known; None if all are. ``of_table``: one table is listed.

    >>> said_of_others([4, 6], [DrawnNumber(4, "append", "flights", "aborted")], of_table=False)
    'were drawn by operations long ended'
    """
    if len(missing) <= len({one.number for one in drawn}):
        return None
    return ("are versions of other tables, or " if of_table else "") + "were drawn by operations long ended"
