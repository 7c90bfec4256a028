"""Tasks of the table service: what is proposed, what is stored, and what a scan gains by it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from datetime import datetime
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse.core.interval import Interval
from lakehouse.core.listing import Listing

Ids = npt.NDArray[np.int64]

OPEN_MS = 1.0
"""Cost of a scan for each file that it opens, in thousandths of a second."""
READ_MS_PER_BYTE = 1.0 / 1_000_000
"""Cost of each byte that it reads: a megabyte in a thousandth of a second."""
MASK_MS_PER_ROW = 1.0 / 100_000
"""Cost of each row that it compares with tombstones."""
ENTRY_MS = 1.0 / 400
"""Cost of each live segment or tombstone that its plan looks at."""


COLLECT_SECONDS = 3600.0
"""How often a lake is collected."""


class TaskKind(StrEnum):
    """What a task does."""

    PLAN = "plan"
    COMPACT = "compact"
    RESOLVE = "resolve"
    CLEAN = "clean"
    COLLECT = "collect"
    STATS = "stats"
    INDEX = "index"

    @classmethod
    def _missing_(cls, value: object) -> TaskKind | None:
        """What earlier versions called merge and gc."""
        known = {"merge": cls.COMPACT, "gc": cls.COLLECT}.get(str(value))
        if known is not None:
            warnings.warn(f"a task of the kind {value!r} is called {known.value!r}", DeprecationWarning, stacklevel=3)
        return known


class TaskState(StrEnum):
    """Where a task stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Worker(StrEnum):
    """Who runs a task: the service itself, or a job that starts, works and goes away."""

    RESIDENT = "resident"
    ELASTIC = "elastic"


@dataclass(frozen=True, slots=True)
class Gain:
    """What one scan of all that a task takes saves: files not opened, bytes not read, rows not masked.

    ``entries`` are live segments and tombstones that its plan no longer looks at.

    >>> Gain(files=9, bytes=2_000_000, masked_rows=100_000).cost_ms
    12.0
    >>> (Gain(files=9) - Gain(files=1)).files
    8
    """

    files: int = 0
    bytes: int = 0
    masked_rows: int = 0
    entries: int = 0

    @property
    def cost_ms(self) -> float:
        """All of it in thousandths of a second of one scan, by the constants of this module."""
        opened = self.files * OPEN_MS + self.bytes * READ_MS_PER_BYTE
        return opened + self.masked_rows * MASK_MS_PER_ROW + self.entries * ENTRY_MS

    def __add__(self, other: Gain) -> Gain:
        return Gain(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: Gain) -> Gain:
        return Gain(*(mine - theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """What a strategy proposes to do with some of a table's segments or tombstones (their ids, sorted, each once).

    ``interval`` covers what is taken, ``bytes`` and ``rows`` are what has to be read for it, ``cause`` is a sentence
    for people, ``gain`` is for one scan of all of it and ``scans`` how many of those there are, in plans a day.
    """

    kind: TaskKind
    strategy: str
    cause: str
    interval: Interval
    segments: Ids
    tombstones: Ids = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    bytes: int = 0
    rows: int = 0
    gain: Gain = field(default_factory=Gain)
    scans: float = 1.0

    @property
    def score(self) -> float:
        """Milliseconds of scans that a day saves for each megabyte that has to be read once.

        What reads nothing counts as a tenth of a megabyte.
        """
        return self.gain.cost_ms * self.scans / max(self.bytes / 1_000_000, 0.1)


@dataclass(frozen=True, slots=True)
class Task:
    """A task as the catalog knows it.

    ``table`` is None for one of the whole lake; ``segments`` says how many it takes; ``budget_bytes`` what it reads at
    most; ``predicted`` and ``actual`` what a scan of ``interval`` saves. ``version`` is that of its commit.
    """

    id: int
    table: str | None
    kind: TaskKind
    state: TaskState
    worker: Worker
    score: float
    cause: str
    interval: Interval | None
    segments: int
    budget_bytes: int
    predicted: Gain
    actual: Gain | None
    attempts: int
    created_at: datetime
    not_before: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    lease_until: datetime | None = None
    version: int | None = None
    error: str | None = None
    details: Mapping[str, int] = field(default_factory=dict)
    """Other figures of its result, by name."""


@dataclass(frozen=True, slots=True)
class Maintained:
    """A round of the service: the tasks that it ran in that order, or would run."""

    tasks: Listing[Task]

    @property
    def bytes(self) -> int:
        """Bytes that they read at most."""
        return sum(one.budget_bytes for one in self.tasks)

    def to_arrow(self) -> pa.Table:
        """A row a task."""
        return self.tasks.to_arrow()


@dataclass(frozen=True, slots=True)
class Amplification:
    """Bytes that users wrote into a table, and bytes that maintenance wrote anew."""

    appended_bytes: int
    rewritten_bytes: int

    @property
    def ratio(self) -> float:
        """Rewritten over appended; 0 for a table without data."""
        return self.rewritten_bytes / self.appended_bytes if self.appended_bytes else 0.0
