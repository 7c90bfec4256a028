"""A warehouse that is a folder: durable files, and deletion of exactly what is named.

A failed fsync is final, because Linux may then report success for pages that it dropped: the error is raised, the
operation fails, and a new operation writes the rows again under a new name.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.durable import make_folder as make_folder
from lakehouse.durable import sync as sync
from lakehouse.errors import InternalError, SegmentUnreadable
from lakehouse.storage.cache import Cache
from lakehouse.storage.paths import Locator
from lakehouse.storage.uploads import UploadNotes
from lakehouse.storage.warehouse import Committed, Listed, Warehouse

_OPERATION = re.compile(r"[^/]+/[0-9a-f]{32}")
_SYNC_THREADS = 8
_ATTEMPTS = 5


def sync_files(files: Iterable[Path]) -> None:
    """Flush many files and, once each, their folders. In parallel, because a disk takes many at a time."""
    listed = list(files)
    folders = list(dict.fromkeys(path.parent for path in listed))
    if len(listed) <= 2:
        for path in (*listed, *folders):
            sync(path)
        return
    with ThreadPoolExecutor(_SYNC_THREADS, "lakehouse-sync") as pool:
        for batch in (listed, folders):
            for _ in pool.map(sync, batch):
                pass


@dataclass(frozen=True, slots=True)
class Folder:
    """A `lakehouse.storage.warehouse.Warehouse` in a folder, on a disk of this machine or a shared one."""

    root: Path

    @property
    def address(self) -> str:
        """The folder."""
        return str(self.root)

    @property
    def location(self) -> str:
        """The folder."""
        return str(self.root)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    @property
    def cache(self) -> Cache | None:
        """None."""
        return None

    def exists(self) -> bool:
        """Whether the folder is there."""
        return self.root.is_dir()

    def file(self, stored: str) -> Path:
        """The file at a stored path. For many use one `Locator`, which caches what it finds out of folders."""
        return Locator(self.root).file(stored)

    def as_of_erasure(self, erasure: int) -> Warehouse:
        """Itself: there are no copies to drop."""
        return self

    def noting(self, notes: UploadNotes) -> Warehouse:
        """Itself: there are no uploads."""
        return self

    def make_folder(self, folder: Path) -> None:
        """Make it, each entry durable."""
        make_folder(folder)

    def publish(self, files: Iterable[Path]) -> None:
        """Flush them. Raises `OSError`."""
        sync_files(files)

    def fetch(
        self, files: Sequence[Committed], columns: Collection[str] | None = None, holder: object = None
    ) -> Mapping[str, SegmentUnreadable]:
        """Nothing: they are there, or will be found missing by who opens them."""
        return {}

    def size(self, stored: str) -> int:
        """The length of a file, by its status."""
        path = self.file(stored)
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise SegmentUnreadable("not a plain file; restore it from a copy", path=stored)
        return status.st_size

    def fresh(self, file: Committed) -> AbstractContextManager[Path]:
        """The file itself."""
        return nullcontext(self.file(file.path))

    def heal(self, path: str) -> bool:
        """There are no copies."""
        return False

    def delete(self, stored: Iterable[str]) -> int:
        """Delete files, and folders that become empty."""
        locator = Locator(self.root)
        files = [locator.file(one) for one in stored]
        deleted = 0
        for path in files:
            try:
                path.unlink()
                deleted += 1
            except FileNotFoundError:
                continue
        for folder in sorted({path.parent for path in files}, key=lambda one: len(one.parts), reverse=True):
            _remove_empty(folder, Path(os.path.realpath(self.root)))
        return deleted

    def abandon(self, stored: str) -> None:
        """Delete all of it."""
        self.delete_operation(stored)

    def delete_operation(self, stored: str) -> None:
        """Delete an operation's folder; another process may delete it, or write to it, at the same time."""
        require_operation(stored)
        folder = self.file(stored)
        if folder.is_symlink():
            raise InternalError("an operation's folder cannot be a link", path=stored)
        for attempt in range(_ATTEMPTS):
            if not folder.is_dir():
                return
            try:
                shutil.rmtree(folder)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTEMPTY) or attempt == _ATTEMPTS - 1:
                    raise

    def abort_uploads(self, uploads: Iterable[tuple[str, str]]) -> None:
        """There are none."""

    def measure(self, stored: Iterable[str]) -> tuple[int, int]:
        """The number of files and bytes, by their status."""
        locator = Locator(self.root)
        files = size = 0
        for path in map(locator.file, stored):
            inside = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
            for one in inside if path.is_dir() and not path.is_symlink() else (path,):
                try:
                    size += one.lstat().st_size
                    files += 1
                except FileNotFoundError:
                    continue
        return files, size

    def listed(self, below: str = "") -> Iterator[Listed]:
        """Every file, links too, in no order."""
        root = os.path.realpath(self.root)
        for folder, _, names in os.walk(Path(root, below)):
            for name in names:
                path = Path(folder, name)
                try:
                    status = path.lstat()
                except FileNotFoundError:
                    continue
                yield Listed(path.relative_to(root).as_posix(), status.st_size, status.st_mtime)


def require_operation(stored: str) -> None:
    """Raise `InternalError` for a stored path that is no operation's own folder."""
    if not _OPERATION.fullmatch(stored):
        raise InternalError("only an operation's own folder can be deleted as a whole", path=stored)


def _remove_empty(folder: Path, warehouse: Path) -> None:
    """Remove a folder and its parents below a table's folder, as long as they are empty."""
    while len(folder.relative_to(warehouse).parts) > 1:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
