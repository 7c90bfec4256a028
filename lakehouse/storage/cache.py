"""Copies of a store's objects on this machine's disk, shared by its processes, under a limit.

A copy is whole once it has its name: it is written aside, compared, and renamed. It never changes, since no object
does, so none is ever stale. What a process reads it holds by a shared lock on a byte of one file, which the kernel
releases whatever becomes of the process; only copies that nobody holds are deleted, those first that were used longest
ago.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from lakehouse.durable import sync
from lakehouse.errors import StorageUnavailable
from lakehouse.meanwhile import meanwhile
from lakehouse.storage.holds import holds_of

LIMIT_BYTES = 20 << 30
"""The default limit."""
_ASIDE = ".aside"
_NOTED = "noted"
"""What is written aside alone with the records has one name: whoever is killed meanwhile leaves no more."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_ERASURE = ".erasure"
_ABANDONED_SECONDS = 24 * 3600
_ROOM = 0.9
"""What is left of the limit after copies were deleted, so that this is done seldom."""
_LOOK_AGAIN = 8
"""After a process has added this part of the limit it looks again at what others have added."""
LOOK_SECONDS = 5.0
WHOLE_MODE = 0o444
"""Of whole copies; files that an operation writes have other rights until they are published."""
PARTIAL_MODE = 0o744
"""Of copies with holes."""
_RECORDS = ".parts"
_NO_PARTS = b"whole"
"""The record of a copy that has gone, where the next one has to be whole."""
_T = TypeVar("_T")
_WRITTEN = re.compile(r"[^/]+/([0-9a-f]{32})/")
"""The stored path of what an operation wrote."""


def chosen_folder() -> str | None:
    """The folder of caches that this process's environment chooses."""
    return os.environ.get("LAKEHOUSE_CACHE_DIR") or None


def cache_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder of caches: a given one, else that of the environment, else the user's own."""
    found = given or chosen_folder()
    if found:
        return Path(os.path.realpath(Path(found).expanduser()))
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "lakehouse")


@dataclass(frozen=True, slots=True)
class Usage:
    """What copies take: how many there are, and their bytes."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Dropping:
    """How far the copies are dropped that erasures replaced: who ``mark`` names began it, up to some version."""

    begun: int
    done: int
    mark: str


class Cache:
    """The copies below a folder. Thread-safe, and shared by processes.

    >>> import tempfile
    >>> cache = Cache(Path(tempfile.mkdtemp()), limit_bytes=10)
    >>> cache.add("t/a", lambda file: file.write_bytes(b"12345678"))
    >>> cache.bytes, cache.has("t/a"), cache.limit_bytes
    (8, True, 10)
    """

    def __init__(self, root: Path, limit_bytes: int | None = None) -> None:
        self.root = root
        self.limit_bytes = LIMIT_BYTES if limit_bytes is None else limit_bytes
        """What copies may take; what is in use at once may take more."""
        self.hits = 0
        """Copies that were there when they were needed, by this process."""
        self.misses = 0
        """Copies that were fetched."""
        self._holds = holds_of(root)
        self._known: int | None = None
        self._added = 0
        self._looked = 0.0

    @property
    def bytes(self) -> int:
        """What all copies take now, and what operations write; beyond the limit, what nobody reads has gone.

        Cost: a look at each.
        """
        return self.shrink()

    def usage(self) -> Usage:
        """How many copies there are, and what they take, with what operations write. Cost: a look at each."""
        sizes = [size for _, size, _ in self._copies()]
        return Usage(len(sizes), sum(sizes))

    def path(self, stored: str) -> Path:
        """Where the copy of a stored path lies, if there is one."""
        return self.root / stored

    def has(self, stored: str, size: int | None = None) -> bool:
        """Whether there is a copy, of a size if that is known; it counts as used now."""
        try:
            status = os.lstat(self.path(stored))
            if status.st_mode != stat.S_IFREG | WHOLE_MODE or (size is not None and status.st_size != size):
                return False
            os.utime(self.path(stored))
        except OSError:
            return False
        return True

    def add(self, stored: str, write: Callable[[Path], object], erasure: int | None = None) -> None:
        """Make a copy: ``write`` writes and compares it; if that fails, there is none.

        ``erasure`` is the newest one that who asks for it knew. Raises `StorageUnavailable` if the disk is full or
        cannot be written.
        """
        self.making_room(lambda: self._add(stored, write, erasure))

    def making_room(self, make: Callable[[], _T]) -> _T:
        """What ``make`` returns, which is called again if the disk was full, after all that nobody reads has gone.

        Raises `StorageUnavailable` if the disk stays full or cannot be written.
        """
        try:
            return make()
        except OSError as error:
            if error.errno not in _FULL:
                raise self._unwritable(error) from error
            self.shrink(0)
        try:
            return make()
        except OSError as error:
            raise self._unwritable(error) from error

    def _add(self, stored: str, write: Callable[[Path], object], erasure: int | None) -> None:
        with self.aside() as aside:
            write(aside)
            sync(aside)  # or a power cut leaves a copy of the right length with other bytes
            size = aside.stat().st_size
            aside.chmod(WHOLE_MODE)
            with self.recording():
                self.note_older(erasure)
                self.path(stored).parent.mkdir(parents=True, exist_ok=True)
                aside.rename(self.path(stored))
                self.record(stored).unlink(missing_ok=True)
        self.count(size)

    @contextmanager
    def aside(self) -> Iterator[Path]:
        """A path for a file that gets its name when it is whole; what is left there when the block ends goes.

        So does, when a process looks, what another one has left that was killed meanwhile.
        """
        name = f"{_ASIDE}/{uuid4().hex}"
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._holds.held([name]):
            try:
                yield path
            finally:
                path.unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> StorageUnavailable:
        full = error.errno in _FULL
        remedy = "free space on its disk" if full else "make it writable"
        return StorageUnavailable(
            f"the cache cannot be written; {remedy}, or give another cache_dir",
            path=str(self.root),
            cause=error.strerror,
        )

    def keep(self, stored: str) -> None:
        """Take a file that an operation wrote and published as the copy."""
        sync(self.path(stored))
        self._take(stored)

    @contextmanager
    def keeping(self, stored: str) -> Iterator[None]:
        """Around what publishes a file that an operation wrote, which is the copy from then on.

        The file is flushed meanwhile: a store's answer takes longer than the disk's.
        """
        with meanwhile(sync, self.path(stored)) as flushed:
            yield
        flushed.result()
        self._take(stored)

    def _take(self, stored: str) -> None:
        """Let a file that is flushed be the copy."""
        path = self.path(stored)
        size = path.stat().st_size
        path.chmod(WHOLE_MODE)  # from now on another may delete it
        self.count(size)

    def drop(self, stored: Iterable[str]) -> None:
        """Delete copies, in use or not: who has one open goes on reading it."""
        for one in stored:
            with self.recording():
                self._unlink(one)

    def distrust(self, stored: str) -> None:
        """Delete a copy that may be spoiled; the next one of its name has to be whole.

        Whoever reads this one has asked for parts of it, and opens it by its name.
        """
        with self.recording():
            self._unlink(stored)
            self._replace(self.record(stored), bytearray(_NO_PARTS))

    def has_to_be_whole(self, stored: str) -> bool:
        """Whether the next copy of a name has to be, since another one was deleted that somebody may read."""
        with suppress(FileNotFoundError):
            return self.record(stored).read_bytes() == _NO_PARTS
        return False

    def copies(self) -> list[str]:
        """Stored paths of all copies. Cost: a look at each."""
        return [one for one, _, _ in self._copies() if self._is_copy(one)]

    def let_go(self, stored: Iterable[str]) -> list[str]:
        """Delete copies that no process holds; return those that somebody does."""
        return [one for one in stored if not self._deleted(one) and self.path(one).exists()]

    @property
    def erasure(self) -> int:
        """The version of the erasure up to which what they replaced is dropped, by any process of this machine."""
        return self._dropping().done

    @property
    def erasure_begun(self) -> int:
        """The same, where a process may still be dropping copies."""
        return self._dropping().begun

    def drop_replaced(self, erasure: int, named: Callable[[], Collection[str]]) -> None:
        """Delete all copies but those that the catalog names after an erasure. What operations write is no copy yet.

        Whoever is killed meanwhile, and whoever makes a copy by an older plan, leaves it to be done again.
        """
        mark = uuid4().hex
        with self.recording():
            found = self._dropping()
            self._note(_Dropping(max(found.begun, erasure), found.done, mark))
        known = frozenset(named())
        self.drop([one for one, _, _ in self._copies() if one not in known and self._is_copy(one)])
        with self.recording():
            if self._dropping().mark == mark:
                self._note(_Dropping(erasure, erasure, mark))

    def note_older(self, erasure: int | None) -> None:
        """Before a copy is made, alone with the records: it is one to drop if its plan knew no newer erasure."""
        if erasure is not None and self._dropping().begun > erasure:
            self._note(_Dropping(erasure, erasure, ""))

    def _dropping(self) -> _Dropping:
        try:
            begun, done, mark = (self.root / _ERASURE).read_text().split(" ")
            return _Dropping(int(begun), int(done), mark)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return _Dropping(0, 0, "")

    def _note(self, dropping: _Dropping) -> None:
        self._replace(self.root / _ERASURE, bytearray(f"{dropping.begun} {dropping.done} {dropping.mark}", "ascii"))

    def _replace(self, file: Path, content: bytearray) -> None:
        """Write a file of the cache's own, alone with the records."""
        aside = self.root / _ASIDE / _NOTED
        for folder in (aside.parent, file.parent):
            folder.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(content)
        aside.rename(file)

    def remove_unfinished(self, is_running: Callable[[], Collection[str]]) -> int:
        """Delete what operations wrote that have ended without publishing it, as when they were killed; return bytes.

        ``is_running`` returns the ids of those that go on. It is asked after the files were found, since an operation
        is known before it writes.
        """
        found = [(one, size) for one, size, _ in self._copies() if operation_of(one) and not self._is_copy(one)]
        going_on = is_running() if found else ()
        ended = [(one, size) for one, size in found if operation_of(one) not in going_on]
        self.drop(one for one, _ in ended)
        return sum(size for _, size in ended)

    def _is_copy(self, stored: str) -> bool:
        with suppress(FileNotFoundError):
            return stat.S_IMODE(self.path(stored).lstat().st_mode) in (WHOLE_MODE, PARTIAL_MODE)
        return False

    def is_partial(self, stored: str) -> bool:
        """Whether there is a copy with holes; `record` says which."""
        with suppress(FileNotFoundError):
            return stat.S_IMODE(self.path(stored).lstat().st_mode) == PARTIAL_MODE
        return False

    def record(self, stored: str) -> Path:
        """Where it stands which parts of a copy are there. It goes before the copy does, and comes after its parts."""
        return self.root / _RECORDS / stored

    def write_record(self, stored: str, content: bytearray) -> None:
        """Write the record of a copy, alone with the records."""
        self._replace(self.record(stored), content)

    def hold(self, stored: Iterable[str], holder: object) -> None:
        """Let no process delete copies for as long as an object lives."""
        self._holds.hold(stored, holder)

    def held(self, stored: Iterable[str]) -> AbstractContextManager[None]:
        """Let no process delete copies until the block ends."""
        return self._holds.held(stored)

    def linger(self, stored: Iterable[str], seconds: float) -> None:
        """Let no process delete copies for some time: lazy results are read later."""
        self._holds.linger(stored, seconds)

    def glance(self, stored: Iterable[str]) -> None:
        """Let no process delete copies for some seconds, in which they are read; `clear` does."""
        self._holds.glance(stored)

    def recording(self) -> AbstractContextManager[None]:
        """Alone, in all processes, with the records of parts: no copy is made or goes meanwhile."""
        return self._holds.recording()

    def count(self, size: int) -> None:
        """Note what was added; copies beyond the limit go."""
        with self._holds.guard:
            self._added += size
            most = self.limit_bytes / _LOOK_AGAIN
            if self._known is not None and self._known <= self.limit_bytes:
                most = min(most, self.limit_bytes - self._known)
            if self._known is None or self._added > most:
                self.shrink()

    def look_again(self) -> None:
        """Delete what was beyond the limit since it was read, if nobody does any more; seldom, while somebody does."""
        with self._holds.guard:
            is_beyond = self._known is not None and self._known > self.limit_bytes
            if is_beyond and time.monotonic() > self._looked + LOOK_SECONDS:
                self.shrink()

    def shrink(self, to_bytes: int | None = None) -> int:
        """Delete copies that nobody holds until the rest is below the limit, those first that were used longest ago.

        Return the bytes of the rest.
        """
        limit = self.limit_bytes if to_bytes is None else to_bytes
        self._remove_abandoned()
        with self._holds.guard:
            found = sorted(self._copies(), key=lambda one: one[2])
            total = sum(size for _, size, _ in found)
            target = limit * _ROOM if total > limit else limit
            for stored, size, _ in found:
                if total <= target:
                    break
                if self._deleted(stored):
                    total -= size
            self._known, self._added, self._looked = total, 0, time.monotonic()
            return total

    def _remove_abandoned(self) -> None:
        """Delete what processes left that were killed while they made a copy."""
        with suppress(FileNotFoundError, NotADirectoryError):
            for one in (self.root / _ASIDE).iterdir():
                with self._holds.alone(f"{_ASIDE}/{one.name}") as is_free:
                    if is_free:
                        one.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete every copy that nobody reads."""
        self._holds.end_glances()
        self.shrink(0)

    def _deleted(self, stored: str) -> bool:
        """Delete one copy unless somebody holds it, or an operation still writes it."""
        with self._holds.alone(stored) as is_free:
            if not is_free or not (self._is_copy(stored) or self._is_abandoned(stored)):
                return False
            self._unlink(stored)
        return True

    def _is_abandoned(self, stored: str) -> bool:
        """Whether a file that is no copy was last written so long ago that its operation is over."""
        with suppress(FileNotFoundError):
            return self.path(stored).lstat().st_mtime < time.time() - _ABANDONED_SECONDS
        return False

    def _unlink(self, stored: str) -> None:
        """Delete a copy, alone with the records: its own first, or whoever is killed leaves one of holes."""
        for path, below in ((self.record(stored), self.root / _RECORDS), (self.path(stored), self.root)):
            path.unlink(missing_ok=True)
            _remove_empty(path.parent, below)

    def _copies(self) -> Iterator[tuple[str, int, float]]:
        """Every file below the root but its own: stored path, bytes, when it was last used."""
        for folder, folders, names in os.walk(self.root):
            if Path(folder) == self.root:
                folders[:] = [one for one in folders if one not in (_ASIDE, _RECORDS)]
                continue
            for name in names:
                path = Path(folder, name)
                with suppress(FileNotFoundError):
                    status = path.lstat()
                    size = min(status.st_size, status.st_blocks * 512)  # a copy may have holes
                    yield path.relative_to(self.root).as_posix(), size, status.st_mtime

    def discard(self, stored_folder: str) -> None:
        """Delete everything below a stored folder."""
        shutil.rmtree(self.root / stored_folder, ignore_errors=True)


def _remove_empty(folder: Path, below: Path) -> None:
    while folder.parent != below:  # the table's is its operations' to make files in
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def operation_of(stored: str) -> str:
    """The id of the operation in whose folder a file lies; empty for one that lies elsewhere.

    >>> operation_of(f"flights-1/{'0af1' * 8}/00000-0.parquet")[:8], operation_of("_catalog/1/head.arrow")
    ('0af10af1', '')
    """
    found = _WRITTEN.match(stored)
    return found[1] if found else ""
