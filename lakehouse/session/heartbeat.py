"""Keeping the leases of running operations, and the pin of this process, alive from a background thread."""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakehouse.catalog.catalog import Catalog
from lakehouse.core.operation import Begun
from lakehouse.errors import LakehouseError, coded
from lakehouse.forks import watch_forks

logger = logging.getLogger(__name__)


_END_SECONDS = 1.0
"""Time for a running beat to finish when the interpreter ends."""


class Heartbeat:
    """Renews leases every third of their length while any operation runs; ``also`` is called each time.

    Its thread ends when it is closed, when nothing refers to it any more, and before the interpreter ends: a thread
    that still runs then keeps objects alive that libraries expect to be freed.
    """

    def __init__(self, catalog: Catalog, also: Callable[[], None] | None = None) -> None:
        self._catalog = catalog
        self.also = also
        self._running: dict[int, Begun] = {}
        self._calls: dict[object, Callable[[], object]] = {}
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        watch_forks(self)

    def after_fork(self) -> None:
        """A forked child renews only what it begins itself."""
        self._running, self._calls = {}, {}
        self._guard, self._stop, self._thread = threading.Lock(), threading.Event(), None
        _beating.discard(self)

    def watch(self, begun: Begun) -> None:
        """Keep an operation's lease alive from now on."""
        with self._guard:
            self._running[begun.number] = begun
        self.start()

    def start(self) -> None:
        """Start beating."""
        with self._guard:
            if self._thread is None or not self._thread.is_alive():
                self._stop = threading.Event()
                self._thread = threading.Thread(
                    target=_beat, args=(weakref.ref(self), self._stop), name="lakehouse-heartbeat", daemon=True
                )
                self._thread.start()
                _beating.add(self)

    def forget(self, begun: Begun) -> None:
        """Stop renewing an operation that has ended."""
        with self._guard:
            self._running.pop(begun.number, None)

    @contextmanager
    def calling(self, renew: Callable[[], object]) -> Iterator[None]:
        """Call something at every beat, inside a ``with`` block."""
        key = object()
        with self._guard:
            self._calls[key] = renew
        self.start()
        try:
            yield
        finally:
            with self._guard:
                self._calls.pop(key, None)

    def close(self) -> None:
        """Stop renewing."""
        self._stop.set()

    def end(self) -> None:
        """Stop renewing, and wait for a running beat."""
        self.close()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    @property
    def pause_seconds(self) -> float:
        """Seconds between beats."""
        return self._catalog.lease_seconds / 3

    def beat(self) -> None:
        """Renew everything now."""
        with self._guard:
            running, calls = list(self._running.values()), list(self._calls.values())
        try:
            if running:
                self._catalog.renew(running)
            for renew in calls:
                renew()
        except LakehouseError as error:
            # The next beat tries again; if none succeeds, the commit finds out whether the lock was taken.
            logger.warning("leases were not renewed: %s", coded(error))
        if self.also is not None:
            self.also()


def _beat(held: weakref.ref[Heartbeat], stop: threading.Event) -> None:
    """Beat until stopped, or until nothing else refers to the heartbeat."""
    while (heartbeat := held()) is not None:
        pause_seconds = heartbeat.pause_seconds
        del heartbeat
        if stop.wait(pause_seconds):
            return
        if (heartbeat := held()) is not None:
            heartbeat.beat()
            del heartbeat


_beating: weakref.WeakSet[Heartbeat] = weakref.WeakSet()


def _end_all() -> None:
    for heartbeat in list(_beating):
        heartbeat.end()


atexit.register(_end_all)
