"""How much memory and disk a database may use: of what this process has, which may be less than the machine has."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import resource
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from lakehouse.forks import watch_forks

_PREFIX = "lakehouse-spill-"
SORTS = "lakehouse-sort-"
_OWNER = "owner"
_PART_OF_MEMORY = 0.4
"""A lake has two databases, one for statements and one for everything else; Arrow, Python and files need the rest."""
_PART_OF_DISK = 0.5
"""Of what is free when a database opens: others write there too."""
_PER_MEMORY = 8
_UNLIMITED = 1 << 60
"""What version 1 of control groups says where there is no limit is a little less than 64 bits."""


def most_memory(root: Path = Path("/")) -> int:
    """Bytes that one database may hold: a part of the machine's memory, its container's, or this process's limit."""
    return int(_PART_OF_MEMORY * memory_of_process(root))


def most_in_process(root: Path = Path("/")) -> int:
    """Bytes of files up to which a query is run in process: eight times the memory of its database.

    What is read is not kept: a sort or join of it all keeps the columns that are named, in several times their size in
    files. That much still fits on the disk beside it, and is read again in minutes. Beyond, a cluster pays off.
    """
    return _PER_MEMORY * most_memory(root)


def memory_of_process(root: Path = Path("/")) -> int:
    """Bytes of memory that this process can have. ``root`` is where the kernel's files are."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    limits = [pages, soft if soft != resource.RLIM_INFINITY else pages, *_of_groups(root)]
    return min(one for one in limits if 0 < one < _UNLIMITED)


def _of_groups(root: Path) -> Iterator[int]:
    """Limits of the control groups that this process is in, and of those around them, in both versions."""
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names and "memory" not in names.split(","):
            continue
        top, file = ("memory", "memory.limit_in_bytes") if names else ("", "memory.max")
        group = Path(path.lstrip("/"))
        for one in (group, *group.parents):  # a container may see its own group as the root
            with contextlib.suppress(OSError, ValueError):
                yield int((root / "sys/fs/cgroup" / top / one / file).read_text("ascii"))


class _Folder:
    """The folder of this process for what memory does not hold. It goes when the process ends.

    A killed process leaves its folder, which the next one removes: the lock on a file in it ended with the process.
    """

    def __init__(self) -> None:
        self.after_fork()
        watch_forks(self)
        atexit.register(self.remove)

    def after_fork(self) -> None:
        """A child makes a folder of its own."""
        self._guard = threading.Lock()
        self._path: Path | None = None
        self._lock: Any = None

    def place(self) -> Path:
        """A name in the folder that nothing has yet."""
        with self._guard:
            if self._path is None or not self._path.is_dir():
                _sweep()
                self._path = Path(tempfile.mkdtemp(prefix=_PREFIX))
                self._lock = (self._path / f"{_OWNER}.new").open("w")
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                Path(self._lock.name).rename(self._path / _OWNER)
            return self._path / uuid4().hex

    def remove(self) -> None:
        """Remove the folder; another is made when one is needed."""
        with self._guard:
            path, self._path = self._path, None
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)
            self._lock.close()


def _sweep() -> None:
    """Remove folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), (folder / _OWNER).open("r+") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


_folder = _Folder()


def spill_folders() -> list[Path]:
    """Folders of this machine into which queries and sorts of any process put what their memory does not hold."""
    home = Path(tempfile.gettempdir())
    return sorted(path for prefix in (_PREFIX, SORTS) for path in home.glob(f"{prefix}*") if path.is_dir())


def spilling(place: Path | None = None) -> dict[str, str]:
    """Settings of a database that puts what its memory does not hold on the disk, in a bounded part of what is free."""
    place = place if place is not None else _folder.place()
    free = shutil.disk_usage(place.parent).free
    return {"temp_directory": str(place), "max_temp_directory_size": f"{int(free * _PART_OF_DISK)}B"}


@contextlib.contextmanager
def spill_place() -> Iterator[Path]:
    """A place for a database of another process, which is removed at the end, however that process ended."""
    place = _folder.place()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
