"""A table at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table at a glance, as it is stored now: rows that tombstones hide are counted.

    ``versions`` is how many are still known, ``start`` and ``end`` bound its rows' times (None without rows, and in a
    timeless table), ``rows_added`` has the rows that its versions added, less those that they dropped, on each of the
    last days (UTC), today last.
    """

    name: str
    version: int
    versions: int
    segments: int
    rows: int
    bytes: int
    tombstones: int
    start: datetime | None
    end: datetime | None
    rows_added: tuple[int, ...]
