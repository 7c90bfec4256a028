"""How long a topic waits before it is started again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FIRST_SECONDS = 1.0
MOST_SECONDS = 120.0
WELL_SECONDS = 60.0


@dataclass(slots=True)
class Backoff:
    """Waits that double up to a limit, and begin anew once a topic has run well.

    A wait is between half of that and all of it, by chance, so that topics that failed together, as when a broker
    went away, do not come back together. A topic ran well if it ended a batch and ran for ``well_seconds``.

    >>> waits = Backoff(chance=random.Random(1))
    >>> [waits.after(0.0, has_ended_batch=False) <= 2**number for number in range(4)]
    [True, True, True, True]
    >>> waits.failures, waits.after(90.0, has_ended_batch=True) <= 1, waits.failures
    (4, True, 1)
    """

    first_seconds: float = FIRST_SECONDS
    most_seconds: float = MOST_SECONDS
    well_seconds: float = WELL_SECONDS
    chance: random.Random = field(default_factory=random.Random)
    failures: int = 0

    def after(self, ran_seconds: float, *, has_ended_batch: bool) -> float:
        """How long to wait after a failure."""
        if has_ended_batch and ran_seconds >= self.well_seconds:
            self.failures = 0
        self.failures += 1
        whole = min(self.most_seconds, self.first_seconds * 2.0 ** min(self.failures - 1, 60))
        return whole * self.chance.uniform(0.5, 1.0)
