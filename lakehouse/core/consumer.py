"""Consumers: named readers of a table's change feed with a durable position."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lakehouse.core.feed import Position

LEASE_SECONDS = 7 * 24 * 3600.0
"""How long a consumer that nobody moves keeps what it has yet to read, unless its reader says another time."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a consumer's reader was given last: batch ``number``, which leads to ``end``; None once it has been read.

    A batch that was not read comes again as the same one, so that what follows from it happens once. ``name`` tells the
    consumer from others that had, or will have, its name.
    """

    name: str
    number: int = 0
    end: Position | None = None

    def next(self, end: Position) -> Given:
        """The batch after it."""
        return replace(self, number=self.number + 1, end=end)

    def to_text(self, position: Position) -> str:
        """As the catalog keeps it beside a position, of which it keeps the row.

        >>> given = Given("a1", 3, Position(7, 2, row=9))
        >>> Given.of_text(given.to_text(Position(7, 2, row=5)), Position(7, 2)) == (given, Position(7, 2, row=5))
        True
        """
        found: dict[str, Any] = {"name": self.name, "number": self.number, "row": position.row}
        return json.dumps(found if self.end is None else {**found, "end": self.end.to_json()})

    @classmethod
    def of_text(cls, text: str, position: Position) -> tuple[Given, Position]:
        """The inverse of `to_text`, with a position that has no row."""
        held = json.loads(text)
        end = None if "end" not in held else Position.of_json(held["end"])
        return cls(held["name"], held["number"], end), replace(position, row=held["row"])


@dataclass(frozen=True, slots=True)
class Consumer:
    """A named reader: it has read every version of ``table`` up to ``version``.

    ``lag`` is how many later versions changed rows of the table; a snapshot that is not read to its end counts as one.
    What it has yet to read does not expire before ``expires_at``, which every move puts off.
    """

    name: str
    table: str
    version: int
    lag: int
    expires_at: datetime
