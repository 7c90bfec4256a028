"""The queue of those who write to one SQLite file: threads of this process, then processes, each in turn."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from lakehouse.errors import CatalogUnavailable
from lakehouse.forks import watch_forks

_queues: dict[str, WriterQueue] = {}
_guard = threading.Lock()


class WriterQueue:
    """A context that one writer at a time is inside. A process that dies leaves it.

    It is a courtesy: correctness rests on SQLite's own lock, which every writer takes as well.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(f"{path}-queue")
        self._threads = threading.Lock()
        self._handle = -1
        watch_forks(self)

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        except OSError as error:
            self._threads.release()
            raise CatalogUnavailable(
                "the catalog's folder cannot be written; check its disk and permissions", path=self._path, cause=error
            ) from error

    def __exit__(self, *_: object) -> None:
        handle, self._handle = self._handle, -1
        os.close(handle)  # which lets the next process in
        self._threads.release()

    def after_fork(self) -> None:
        """A child must not wait for threads that it does not have, nor keep others out while its parent goes on."""
        self._threads = threading.Lock()
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1


def writer_queue(path: str) -> WriterQueue:
    """The queue for a database's file."""
    with _guard:
        real = os.path.realpath(path)
        if real not in _queues:
            _queues[real] = WriterQueue(real)
        return _queues[real]
