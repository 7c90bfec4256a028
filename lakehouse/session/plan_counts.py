"""How often this process plans which chunks: counted in memory, written to the catalog with the heartbeat.

The table service weighs gains by these counts. Losing counts with a process does no harm.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter

from lakehouse.catalog.catalog import Catalog
from lakehouse.catalog.tasks.plan_counts import WHOLE
from lakehouse.core.bins import bins_of
from lakehouse.core.interval import Interval
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import LakehouseError, coded
from lakehouse.forks import watch_forks

logger = logging.getLogger(__name__)


class PlanCounter:
    """Plans since the last `flush`. Thread-safe."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._counts: Counter[tuple[TableId, int]] = Counter()
        self._guard = threading.Lock()
        watch_forks(self)

    def after_fork(self) -> None:
        """A forked child drops its parent's counts."""
        self._guard = threading.Lock()
        self._counts = Counter()

    def count(self, spec: TableSpec, interval: Interval | None) -> None:
        """Count a read of the chunks of an interval (None: all)."""
        bins = [WHOLE] if interval is None else bins_of(spec.bin_grain, interval)
        with self._guard:
            self._counts.update((spec.id, one) for one in bins)

    def flush(self) -> None:
        """Add the counts to the catalog's."""
        with self._guard:
            counts, self._counts = self._counts, Counter()
        if counts:
            try:
                self._catalog.count_plans(counts)
            except LakehouseError as error:
                logger.warning("%s plans were not counted: %s", counts.total(), coded(error))
