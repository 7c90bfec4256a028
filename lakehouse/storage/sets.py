"""Files of tombstones' sets too large for the catalog."""

from __future__ import annotations

from pathlib import Path

from lakehouse.core.checksum import Checksum
from lakehouse.storage.checksums import check_bytes, checksum_of, read_content
from lakehouse.storage.files import make_folder, sync_files
from lakehouse.storage.paths import Locator


def write_set(folder: Path, name: str, content: bytes) -> Checksum:
    """Write a set below an operation's folder, durably, and return its checksum. Raises `OSError`."""
    make_folder(folder)
    path = folder / name
    path.write_bytes(content)
    sync_files([path])
    return checksum_of(content)


def read_set(warehouse: Path, stored: str, size: int, checksum: Checksum) -> bytes:
    """The content of a stored path. Raises `SegmentUnreadable` if it is missing or not what was written."""
    path = Locator(warehouse).file(stored)
    content = read_content(path, size)
    check_bytes(path, content, checksum)
    return content
