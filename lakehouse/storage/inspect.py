"""Reports what is stored. Nothing is ever deleted because of a listing alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from lakehouse.core.check import StoredFile
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.checksums import check_content
from lakehouse.storage.exports import EXPORTS
from lakehouse.storage.paths import Locator


def find_faults(
    warehouse: Path, files: Iterable[StoredFile], *, content: bool = False
) -> Iterator[tuple[str, str, str]]:
    """Files that differ from what was committed: path, kind and problem.

    Kinds: *missing*, *short*, *long*, *unreadable*, *content*. Cost: an ``lstat`` for each file; with ``content`` every
    byte of those with a checksum.
    """
    locator = Locator(warehouse)
    for one in files:
        try:
            path = locator.file(one.path)
            status = os.lstat(path)
        except FileNotFoundError:
            yield one.path, "missing", "the file is not there; restore it from a copy"
            continue
        except (OSError, SegmentUnreadable) as error:
            yield one.path, "unreadable", f"the file cannot be reached: {error}"
            continue
        if not stat.S_ISREG(status.st_mode):
            yield one.path, "unreadable", "not a plain file; restore it from a copy"
        elif status.st_size != one.bytes:
            kind = "short" if status.st_size < one.bytes else "long"
            yield one.path, kind, f"the size is another one: expected={one.bytes} found={status.st_size}"
        elif content:
            yield from _changed(path, one)


def _changed(path: Path, one: StoredFile) -> Iterator[tuple[str, str, str]]:
    try:
        check_content(path, one.checksum, one.bytes)
    except SegmentUnreadable as error:
        kind = "content" if "found" in error.facts else "unreadable"
        yield one.path, kind, str(error)


def list_files(warehouse: Path) -> dict[str, float]:
    """Every data file below a warehouse, as stored paths, and when it was last changed (seconds since 1970).

    Exports (`lakehouse.storage.exports`) do not count as data.
    """
    root = os.path.realpath(warehouse)
    found: dict[str, float] = {}
    for folder, folders, names in os.walk(root):
        if folder == root and EXPORTS in folders:
            folders.remove(EXPORTS)
        for name in names:
            path = Path(folder, name)
            try:
                found[path.relative_to(root).as_posix()] = path.lstat().st_mtime
            except FileNotFoundError:
                continue
    return found
