"""Verifies that segments' files are what was committed, as far as a reader requests."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lakehouse.core.checksum import Checksum, footer_of
from lakehouse.core.segment import Segment
from lakehouse.core.spec import Verify
from lakehouse.errors import SegmentUnreadable
from lakehouse.remembered import Remembered
from lakehouse.storage.blocks import check_blocks
from lakehouse.storage.checksums import check_content, check_plain
from lakehouse.storage.holds import Holder
from lakehouse.storage.paths import Locator
from lakehouse.storage.warehouse import Warehouse

_THREADS = min(8, os.cpu_count() or 1)
_ALONE_BYTES = 8 << 20
"""Below this, one thread finishes before others have started."""
_REMEMBERED_FILES = 1 << 17
_Identity = tuple[int, ...]


_verified: Remembered[str, tuple[_Identity, Checksum]] = Remembered(_REMEMBERED_FILES)
"""Files whose every byte was compared, by their status then: an unchanged file need not be compared again."""


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def verify_once(path: Path, segment: Segment) -> None:
    """Compare a whole file with its checksum, unless this process did so and the file was not written since.

    Bytes that change without a write (on a failing disk or in memory) are not noticed after the first time.
    """
    seen = _identity(check_plain(path, segment.bytes)), segment.checksum
    if segment.checksum and _verified.get(str(path)) != seen:
        check_content(path, segment.checksum, segment.bytes)
        _verified.put(str(path), seen)


def check_files(
    warehouse: Warehouse,
    segments: Iterable[Segment],
    verify: Verify = "size",
    columns: Collection[str] | None = None,
    holder: object = None,
) -> tuple[dict[str, Path], list[SegmentUnreadable]]:
    """Verify each segment's file: its size (an ``lstat``), its pages of some columns (None: all), or all its content.

    Returns the files by stored path, and one error for each file that is missing or not what was committed
    (``best_effort`` reads go on without them).
    """
    locator = Locator(warehouse.root)
    listed = segments if isinstance(segments, Sequence) else list(segments)
    look = partial(
        _look, locator, verify, columns, warehouse.fetch(listed, None if verify == "content" else columns, holder)
    )
    if verify != "size" and len(listed) > 1 and sum(one.bytes for one in listed) > _ALONE_BYTES:
        with ThreadPoolExecutor(_THREADS, "lakehouse-verify") as pool:
            return _gathered(pool.map(look, listed))
    return _gathered(map(look, listed))


def _gathered(
    found: Iterable[tuple[str, Path | SegmentUnreadable]],
) -> tuple[dict[str, Path], list[SegmentUnreadable]]:
    files: dict[str, Path] = {}
    errors: list[SegmentUnreadable] = []
    for stored, one in found:
        if isinstance(one, SegmentUnreadable):
            errors.append(one)
        else:
            files[stored] = one
    return files, errors


def _look(
    locator: Locator,
    verify: Verify,
    columns: Collection[str] | None,
    errors: Mapping[str, SegmentUnreadable],
    segment: Segment,
) -> tuple[str, Path | SegmentUnreadable]:
    if segment.path in errors:
        return segment.path, errors[segment.path]
    try:
        path = locator.file(segment.path)
        if verify == "size" or not segment.checksum:
            check_plain(path, segment.bytes)
        elif verify == "pages" and footer_of(segment.checksum):
            check_blocks(path, segment.checksum, segment.bytes, columns)
        else:
            verify_once(path, segment)
    except SegmentUnreadable as error:
        return segment.path, error
    return segment.path, path


def verified(
    warehouse: Warehouse,
    segments: Iterable[Segment],
    verify: Verify = "size",
    columns: Collection[str] | None = None,
    holder: object = None,
) -> dict[str, Path]:
    """The files of segments by stored path, verified by `check_files`.

    Raises `SegmentUnreadable` naming the first bad file; ``others`` counts the rest.
    """
    files, errors = check_files(warehouse, segments, verify, columns, holder)
    if errors:
        first = errors[0]
        if len(errors) > 1:
            raise SegmentUnreadable(first.said, **{**first.facts, "others": len(errors) - 1})
        raise first
    return files


@contextmanager
def file_of(
    warehouse: Warehouse, segment: Segment, verify: Verify = "size", columns: Collection[str] | None = None
) -> Iterator[Path]:
    """The verified file of one segment; no process deletes it as a mere copy until the block ends.

    Raises `SegmentUnreadable`.
    """
    holder = Holder()
    yield verified(warehouse, [segment], verify, columns, holder)[segment.path]


def verify_file(warehouse: Warehouse, segment: Segment) -> None:
    """Compare every byte of a segment's file, even if it was compared before. Raises `SegmentUnreadable`."""
    with file_of(warehouse, segment) as path:
        check_content(path, segment.checksum, segment.bytes)


@dataclass(frozen=True, slots=True)
class Verifying:
    """Verifies segments' files as `check_files` does, or all their bytes again; a work without results."""

    warehouse: Warehouse
    verify: Verify | None = None
    columns: Collection[str] | None = None
    folder: str = ""

    def below(self, name: str) -> Verifying:
        """Itself: it writes no file."""
        return self

    def __call__(self, segment: Segment, attempt: str = "") -> str:
        """The segment's path. Raises `SegmentUnreadable`."""
        if self.verify is None:
            verify_file(self.warehouse, segment)
        else:
            verified(self.warehouse, [segment], self.verify, self.columns)
        return segment.path

    def sync(self, made: Iterable[str]) -> None:
        """Nothing: it writes no file."""

    def files(self, made: str) -> list[str]:
        """None: it writes no file."""
        return []


def raised(found: Iterable[Any]) -> Iterator[Any]:
    """The results of a work on segments, up to the first unreadable one. Raises its `SegmentUnreadable`."""
    for one in found:
        if isinstance(one, SegmentUnreadable):
            raise one
        yield one
