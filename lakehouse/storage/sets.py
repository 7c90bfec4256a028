"""Files of tombstones' sets that are too large for the catalog."""

from __future__ import annotations

from pathlib import Path

from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.files import make_folder, sync_files
from lakehouse.storage.paths import Locator


def write_set(folder: Path, name: str, content: bytes) -> None:
    """Write a set below an operation's folder; it is durable when this returns. Raises `OSError`."""
    make_folder(folder)
    path = folder / name
    path.write_bytes(content)
    sync_files([path])


def read_set(warehouse: Path, stored: str, size: int) -> bytes:
    """The content of a stored path. Raises `SegmentUnreadable` if it is missing or of another size."""
    path = Locator(warehouse).file(stored)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SegmentUnreadable(
            "a tombstone's file cannot be read; restore it from a copy", path=str(path), cause=error
        ) from error
    if len(content) != size:
        raise SegmentUnreadable(
            "a tombstone's file is not of the size that was committed; restore it from a copy",
            path=str(path),
            expected=size,
            found=len(content),
        )
    return content
