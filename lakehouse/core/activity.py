"""What goes on in a lake: operations that run, the locks that they hold, and who waits for them, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.listing import Listing


@dataclass(frozen=True, slots=True)
class RunningOperation:
    """An operation between its begin and its end, by the catalog's clock.

    ``lease_seconds`` is what is left of its lease; below 0 its process stopped renewing it, and anybody may take its
    locks. ``locks`` counts the runs of chunks that it holds.
    """

    operation: str
    table: str
    kind: str
    base_version: int
    begun_at: datetime
    age_seconds: float
    lease_seconds: float
    locks: int = 0


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A running operation's hold on a run of chunks, for ``keys`` or all; ``waiting`` counts those behind it."""

    table: str
    interval: Interval
    keys: KeyScope | None = field(hash=False)
    operation: str
    kind: str
    priority: int
    token: int
    lease_seconds: float
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class LockWait:
    """A place in the queue for a run of chunks; ``behind`` are the operations that it waits for, in their order."""

    table: str
    interval: Interval
    keys: KeyScope | None = field(hash=False)
    operation: str
    kind: str
    priority: int
    place: int
    lease_seconds: float
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Activity:
    """All of it at one moment: operations from the oldest, locks by table and time, waits in the order of coming."""

    operations: Listing[RunningOperation]
    locks: Listing[HeldLock]
    waits: Listing[LockWait]
