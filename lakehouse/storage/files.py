"""Durable folders and files, and deletion of exactly what is named.

A failed fsync is final, because Linux may then report success for pages that it dropped: the error is raised, the
operation fails, and a new operation writes the rows again under a new name.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lakehouse.durable import make_folder as make_folder
from lakehouse.durable import sync as sync
from lakehouse.errors import InternalError
from lakehouse.storage.paths import Locator

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


def delete_files(warehouse: Path, stored: Iterable[str]) -> int:
    """Delete the files of stored paths, and folders that become empty; return how many files existed.

    Never lists a folder to find garbage. A path that leaves the warehouse raises before anything is deleted.
    """
    locator = Locator(warehouse)
    files = [locator.file(one) for one in stored]
    deleted = 0
    for path in files:
        try:
            path.unlink()
            deleted += 1
        except FileNotFoundError:
            continue
    for folder in sorted({path.parent for path in files}, key=lambda one: len(one.parts), reverse=True):
        _remove_empty(folder, Path(os.path.realpath(warehouse)))
    return deleted


def _remove_empty(folder: Path, warehouse: Path) -> None:
    """Remove a folder and its parents below a table's folder, as long as they are empty."""
    while len(folder.relative_to(warehouse).parts) > 1:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def measure(warehouse: Path, stored: Iterable[str]) -> tuple[int, int]:
    """The number of files and bytes at stored paths of files, and below those of folders; missing ones are fine."""
    locator = Locator(warehouse)
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


def delete_operation(warehouse: Path, stored: str) -> None:
    """Delete everything in one operation's own folder, ``<table folder>/<operation id>``; a missing one is fine.

    Another process may delete it, or write to it, at the same time.

    Raises `InternalError` for any other path, so that a mistake cannot delete a table.
    """
    if not _OPERATION.fullmatch(stored):
        raise InternalError("only an operation's own folder can be deleted as a whole", path=stored)
    folder = Locator(warehouse).file(stored)
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
