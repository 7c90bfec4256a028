"""Files of tombstones' sets too large for the catalog."""

from __future__ import annotations

from typing import NamedTuple

from lakehouse.core.checksum import Checksum
from lakehouse.storage.checksums import check_bytes, checksum_of, read_content
from lakehouse.storage.warehouse import Warehouse, fetched


class _Set(NamedTuple):
    """What the catalog says of a set's file."""

    path: str
    bytes: int
    checksum: Checksum


def write_set(warehouse: Warehouse, stored: str, content: bytes) -> Checksum:
    """Write a set at a stored path, durably, and return its checksum. Raises `OSError`."""
    path = warehouse.root / stored
    warehouse.make_folder(path.parent)
    path.write_bytes(content)
    warehouse.publish([path])
    return checksum_of(content)


def read_set(warehouse: Warehouse, stored: str, size: int, checksum: Checksum) -> bytes:
    """The content of a stored path. Raises `SegmentUnreadable` if it is missing or not what was written."""
    file = _Set(stored, size, checksum)
    with fetched(warehouse, [file]):
        path = warehouse.file(stored)
        content = read_content(path, size)
    check_bytes(path, content, checksum)
    return content
