"""Ends queries that take longer than they may: one thread for all of a node, which sleeps until the first is late."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakehouse.errors import coded

logger = logging.getLogger(__name__)


class Deadlines:
    """Calls what is to be called after so many seconds, the same number for all, unless it ended before. Thread-safe.

    To begin and to end costs some microseconds; a `threading.Timer` for each query starts a thread.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._changed = threading.Condition()
        self._waiting: dict[object, tuple[float, Callable[[], object]]] = {}
        """By the time that they end: what began later stands behind."""
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="lakehouse-deadlines", daemon=True)
        self._thread.start()

    @contextmanager
    def within(self, end: Callable[[], object]) -> Iterator[None]:
        """Call ``end`` from another thread if the block takes too long, and never after it. It is to return at once."""
        key = object()
        with self._changed:
            if not self._waiting:
                self._changed.notify()
            self._waiting[key] = time.monotonic() + self._seconds, end
        try:
            yield
        finally:
            with self._changed:
                self._waiting.pop(key, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return
                key, (until, end) = next(iter(self._waiting.items()))
                left = until - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                del self._waiting[key]
                try:
                    end()  # under the lock: a block that ends now waits, so that nothing after it is ended instead
                except Exception as error:  # noqa: BLE001 - the thread goes on: others have limits, too
                    logger.warning("a query that takes too long could not be ended: %s", coded(error))

    def close(self) -> None:
        """End nothing any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
