"""What a process holds of the copies below a folder: by locks on bytes of one file, one byte for each copy.

The kernel releases them whatever becomes of the process, and only copies that nobody holds are deleted.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import xxhash

from lakehouse.errors import StorageUnavailable
from lakehouse.forks import watch_forks

_LOCKS = ".held"
_RECORDS_BYTE = (1 << 62) + 1
"""The byte that stands for all records of parts; those of copies are smaller."""
GLANCE_SECONDS = 10.0
"""How long a copy stays that was fetched or written to be read at once."""
_SETTLE_SECONDS = 2.0
"""How long at most a process that does nothing keeps what it has released."""


class Holder:
    """Keeps copies from being deleted while it lives, for who has no object of its own to do so."""


class Holds:
    """What this process holds of a folder of copies, by locks: those are a process's, so all its caches share them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        """A child holds nothing of its parent's."""
        self.guard = threading.RLock()
        self.records = threading.Lock()
        self._held: Counter[int] = Counter()
        self._released: list[str] = []
        self._lingering: dict[str, float] = {}
        self._glanced: set[str] = set()
        self._file: int | None = None
        self._settler: threading.Thread | None = None

    @property
    def file(self) -> int:
        """The file of locks. It stays open: to close any handle of it would release them all."""
        if self._file is None:
            try:
                self._root.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self._root / _LOCKS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise StorageUnavailable(
                    "the cache cannot be written; make it writable, or give another cache_dir",
                    path=str(self._root),
                    cause=error.strerror,
                ) from error
        return self._file

    def hold(self, stored: Iterable[str], holder: object) -> None:
        """Hold copies for as long as an object lives."""
        listed = list(stored)
        with self.guard:
            self._settle()
            for one in listed:
                self._take(one)
        weakref.finalize(holder, self._release, listed).atexit = False

    def linger(self, stored: Iterable[str], seconds: float) -> None:
        """Hold copies for some time."""
        listed = list(stored)
        with self.guard:
            self._extend(listed, seconds)
            self._glanced.difference_update(listed)

    def _extend(self, stored: Iterable[str], seconds: float) -> None:
        until = time.monotonic() + seconds
        self._settle()
        for one in stored:
            if one not in self._lingering:
                self._take(one)
            self._lingering[one] = max(until, self._lingering.get(one, until))

    def glance(self, stored: Iterable[str]) -> None:
        """Hold copies until they are read at once, or `end_glances` is called."""
        listed = list(stored)
        with self.guard:
            self._glanced.update(one for one in listed if one not in self._lingering)
            self._extend(listed, GLANCE_SECONDS)

    def end_glances(self) -> None:
        """Let go of what was glanced at."""
        with self.guard:
            self._lingering.update(dict.fromkeys(self._glanced & self._lingering.keys(), 0.0))
            self._glanced.clear()

    def _take(self, stored: str) -> None:
        byte = _byte(stored)
        if not self._held[byte]:
            fcntl.lockf(self.file, fcntl.LOCK_SH, 1, byte)
        self._held[byte] += 1
        if self._settler is None:
            self._settler = threading.Thread(target=self._settle_now_and_then, name="lakehouse-holds", daemon=True)
            with suppress(RuntimeError):  # at the end of the process, which lets go of everything
                self._settler.start()

    def _settle_now_and_then(self) -> None:
        """Let go of what was released, as long as anything is held: a process that rests would keep it for ever."""
        is_over = False
        while not is_over:
            time.sleep(_SETTLE_SECONDS)
            with self.guard:
                self._settle()
                is_over = not self._held
                self._settler = None if is_over else self._settler

    def _release(self, stored: list[str]) -> None:
        # A finalizer may run at any point, so it takes no lock.
        self._released += stored

    def _settle(self) -> None:
        """Let go of what was released; call it under the lock."""
        now = time.monotonic()
        ended = [one for one, until in self._lingering.items() if until <= now]
        for one in ended:
            del self._lingering[one]
            self._glanced.discard(one)
        self._released += ended
        while self._released:
            byte = _byte(self._released.pop())
            self._held[byte] -= 1
            if self._held[byte] <= 0:
                del self._held[byte]
                fcntl.lockf(self.file, fcntl.LOCK_UN, 1, byte)

    @contextmanager
    def held(self, stored: Iterable[str]) -> Iterator[None]:
        """Hold copies until the block ends."""
        listed = list(stored)
        with self.guard:
            for one in listed:
                self._take(one)
        try:
            yield
        finally:
            self._release(listed)

    @contextmanager
    def alone(self, stored: str) -> Iterator[bool]:
        """Whether nobody holds a copy, in any process; nobody can begin to until the block ends.

        It is a block of `recording`, too. The locks are taken in this order only: whoever held the copy's and waited
        for that of the records would wait for a process of which another thread waits for the copy's.
        """
        with self.guard, self.recording():
            self._settle()
            byte = _byte(stored)
            if self._held[byte]:
                yield False
                return
            try:
                fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except OSError:
                yield False
                return
            try:
                yield True
            finally:
                fcntl.lockf(self.file, fcntl.LOCK_UN, 1, byte)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Alone, in all processes, with the records of parts: no copy is made or goes meanwhile."""
        with self.records:
            fcntl.lockf(self.file, fcntl.LOCK_EX, 1, _RECORDS_BYTE)
            try:
                yield
            finally:
                fcntl.lockf(self.file, fcntl.LOCK_UN, 1, _RECORDS_BYTE)


_holds: dict[Path, Holds] = {}
_making = threading.Lock()


def holds_of(root: Path) -> Holds:
    """What this process holds below a root: locks are a process's, so there is one for all its caches."""
    with _making:
        return _holds.setdefault(root, Holds(root)) if root not in _holds else _holds[root]


def _byte(stored: str) -> int:
    """The byte of the lock file that stands for a copy."""
    return xxhash.xxh3_64_intdigest(stored.encode()) >> 2
