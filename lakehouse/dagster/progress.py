"""Progress of a step's work on a lake, as lines of the step's log."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from logging import Logger

import dagster as dg

from lakehouse import progress

EVERY_SECONDS = 5.0


@contextmanager
def logging_progress(log: Logger | None = None, *, every_seconds: float = EVERY_SECONDS) -> Iterator[None]:
    """Log every few seconds what a lake does in the block: files, rows or tasks, done of total, and how fast.

    ``log`` is that of a context; by default that of the step that runs. With 0 seconds nothing is logged. Work that is
    over sooner logs nothing. Nothing changes inside another such block.

    `LakehouseResource.get_lake`, `LakehouseIOManager` and the functions that write do this; it is needed only around
    the work of a lake that was opened by other means.

    Examples
    --------
    >>> with logging_progress(every_seconds=30):
    ...     commit = flights.append(late)
    """
    if isinstance(progress.listener(), _Lines):
        yield
        return
    lines = _Lines(log or dg.get_dagster_logger(), every_seconds)
    with progress.listening(lines):
        try:
            yield
        finally:
            lines.close()


class _Lines:
    """Logs the steps that run, from a thread that lives while there are any."""

    def __init__(self, log: Logger, every_seconds: float) -> None:
        self._log = log
        self._every_seconds = every_seconds
        self._steps: list[progress.Step] = []
        self._logged: set[int] = set()
        self._ended: threading.Event | None = None

    def step_began(self, step: progress.Step) -> None:
        """Log it soon."""
        self._steps.append(step)
        if self._ended is None and self._every_seconds > 0:
            self._ended = threading.Event()
            threading.Thread(target=self._run, args=(self._ended,), name="lakehouse-progress", daemon=True).start()

    def step_ended(self, step: progress.Step) -> None:
        """Log how it ended, if it was logged before."""
        self._steps.remove(step)
        if id(step) in self._logged:
            self._logged.discard(id(step))
            self._log.info("%s: %s in %.1f s", step.what, step.counts, step.seconds)
        if not self._steps:
            self.close()

    def close(self) -> None:
        """Log nothing more."""
        if self._ended is not None:
            self._ended.set()
            self._ended = None

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(self._every_seconds):
            for step in list(self._steps):
                self._logged.add(id(step))
                self._log.info("%s", step.described())
