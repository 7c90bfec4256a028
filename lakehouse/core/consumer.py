"""Consumers: named readers of a table's change feed with a durable position."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

LEASE_SECONDS = 7 * 24 * 3600.0
"""How long a consumer that nobody moves keeps what it has yet to read, unless its reader says another time."""


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
