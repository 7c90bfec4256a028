"""The lock of a time chunk."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope


@dataclass(frozen=True, slots=True)
class ChunkLock:
    """A running operation's exclusive hold on a chunk (for ``keys``, or all); it may be taken after ``expires_at``."""

    chunk: Interval
    operation: str
    priority: int
    token: int
    expires_at: datetime
    keys: KeyScope | None = field(default=None, hash=False)
    kind: str = ""
