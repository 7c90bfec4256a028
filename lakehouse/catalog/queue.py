"""The queue of those who write to one SQLite file: threads of this process, then processes, each in turn."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from lakehouse.errors import CatalogUnavailable

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
        os.close(self._handle)  # which lets the next process in
        self._threads.release()


def writer_queue(path: str) -> WriterQueue:
    """The queue for a database's file."""
    with _guard:
        real = os.path.realpath(path)
        if real not in _queues:
            _queues[real] = WriterQueue(real)
        return _queues[real]


def _after_fork() -> None:
    """A child must not wait for threads that it does not have."""
    for queue in _queues.values():
        queue._threads = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
