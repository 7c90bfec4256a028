"""Reports what is stored. Nothing is ever deleted because of a listing alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakehouse.core.check import StoredFile
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.checksums import check_content
from lakehouse.storage.exports import EXPORTS, STREAMS
from lakehouse.storage.warehouse import Warehouse


def find_faults(
    warehouse: Warehouse, files: Iterable[StoredFile], *, content: bool = False
) -> Iterator[tuple[str, str, str]]:
    """Files that differ from what was committed: path, kind and problem.

    Kinds: *missing*, *short*, *long*, *unreadable*, *content*. Cost: an ``lstat`` for each file; with ``content`` every
    byte of those with a checksum.
    """
    for one in files:
        try:
            size = warehouse.size(one.path)
        except FileNotFoundError:
            yield one.path, "missing", "the file is not there; restore it from a copy"
            continue
        except SegmentUnreadable as error:
            yield one.path, "unreadable", str(error)
            continue
        except OSError as error:
            yield one.path, "unreadable", f"the file cannot be reached: {error}"
            continue
        if size != one.bytes:
            kind = "short" if size < one.bytes else "long"
            yield one.path, kind, f"the size is another one: expected={one.bytes} found={size}"
        elif content:
            yield from _changed(warehouse, one)


def _changed(warehouse: Warehouse, one: StoredFile) -> Iterator[tuple[str, str, str]]:
    try:
        with warehouse.fresh(one) as path:
            check_content(path, one.checksum, one.bytes)
    except SegmentUnreadable as error:
        kind = "content" if "found" in error.facts else "unreadable"
        yield one.path, kind, str(error)


def list_files(warehouse: Warehouse) -> dict[str, float]:
    """Every data file in a warehouse, as stored paths, and when it was last changed (seconds since 1970).

    Exports (`lakehouse.storage.exports`) and the checkpoints of streams do not count as data.
    """
    others = (f"{EXPORTS}/", f"{STREAMS}/")
    return {one.path: one.modified for one in warehouse.listed() if not one.path.startswith(others)}
