"""What versions did to an interval, and where an entry came from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Touch:
    """What one version did to an interval: segments and tombstones that overlap it, and the rows of those segments.

    Rows are counted as stored and by whole segments, however little of them lies in the interval.
    """

    version: int
    segments_added: int = 0
    segments_dropped: int = 0
    tombstones_added: int = 0
    tombstones_dropped: int = 0
    rows_added: int = 0
    rows_dropped: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """The version that added a segment or tombstone, and the one that dropped it; None while it is live."""

    entry: int
    version: int
    operation: str
    committed_at: datetime
    dropped_version: int | None = None
