"""The queue of writers to one SQLite file: first among threads of this process, then among processes."""

from __future__ import annotations

import fcntl
import logging
import os
import random
import threading
import time
from pathlib import Path

from lakehouse.errors import CatalogUnavailable
from lakehouse.forks import watch_forks

logger = logging.getLogger(__name__)

WAIT_SECONDS = 10.0
"""How long to wait for the queue; its holder may be stopped."""
_PAUSE_SECONDS = (0.0003, 0.0013)
"""A file lock has no wait with a timeout, so it is polled, about as often as a commit takes."""
_queues: dict[str, WriterQueue] = {}
_guard = threading.Lock()


class WriterQueue:
    """A context for one writer at a time. A dead process leaves it; a stopped one is passed.

    This is only for fairness: correctness rests on SQLite's own lock, which every writer takes too.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(f"{path}-queue")
        self._threads = threading.Lock()
        self._handle = -1
        self._passed = -WAIT_SECONDS
        watch_forks(self)

    def is_held(self) -> bool:
        """Whether a thread of this process is in the context, or about to enter it."""
        return self._threads.locked()

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._wait()
        except OSError as error:
            self._threads.release()
            raise CatalogUnavailable(
                "the catalog's folder cannot be written; check its disk and permissions", path=self._path, cause=error
            ) from error

    def _wait(self) -> None:
        """Wait for the queue, but not for ever nor again for a holder that was just passed; then go on without it."""
        began = time.monotonic()
        while not holds(self._handle, fcntl.LOCK_EX):
            now = time.monotonic()
            if now - self._passed < WAIT_SECONDS:
                return
            if now - began > WAIT_SECONDS:
                logger.warning("a process holds the writers' queue without progress: %s", self._path)
                self._passed = now
            time.sleep(random.uniform(*_PAUSE_SECONDS))  # noqa: S311 - so that none is always late

    def __exit__(self, *_: object) -> None:
        handle, self._handle = self._handle, -1
        os.close(handle)  # which lets the next process in
        self._threads.release()

    def after_fork(self) -> None:
        """A forked child must neither wait for threads that it does not have nor block others for its parent."""
        self._threads = threading.Lock()
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1


def holds(handle: int, kind: int) -> bool:
    """Lock an open file, if nobody else has."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def writer_queue(path: str) -> WriterQueue:
    """The queue for a database's file."""
    with _guard:
        real = os.path.realpath(path)
        if real not in _queues:
            _queues[real] = WriterQueue(real)
        return _queues[real]
