"""Checksums of files' bytes: computed while writing, compared when reading.

Files are opened such that only a plain file is ever read, and nothing blocks: a link, folder, pipe or device in its
place is reported instead.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xxhash

from lakehouse.core.checksum import ALGORITHMS, FOOTER_BYTES, content_of, shown
from lakehouse.errors import SegmentUnreadable

BLOCK_BYTES = 64 << 10
"""Bytes of one block, the smallest unit that a read can verify."""
_XXH3 = b"\x01"
_READ_BYTES = 1 << 20
_BUFFER_BYTES = 256 << 10


def checksum_of(content: bytes) -> bytes:
    """The checksum of a whole file's content.

    >>> from lakehouse.core.checksum import shown
    >>> shown(checksum_of(b"abc"))
    'xxh3:06b05ab6733a618578af5f94892f3950'
    """
    return _XXH3 + xxhash.xxh3_128_digest(content)


def hash_part(content: bytes | memoryview) -> bytes:
    """The checksum of a block or a footer."""
    return xxhash.xxh3_64_digest(content)


class HashedFile:
    """A new file of blocks and a footer, and the checksum of what is written to it. Arrow's writers take it as a sink.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = HashedFile(Path(folder, "one"))
    ...     _ = file.write(b"content")
    ...     blocks = file.end_blocks()
    ...     _ = file.write(b"footer")
    ...     file.close()
    ...     len(blocks), file.checksum == checksum_of(b"contentfooter") + hash_part(b"footer")
    (8, True)
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=_BUFFER_BYTES)
        self._whole = xxhash.xxh3_128()
        self._part = xxhash.xxh3_64()
        self._blocks: list[bytes] | None = []
        self._in_block = 0
        self.bytes = 0
        """Bytes written so far."""

    def write(self, data: Any) -> int:
        """Add bytes."""
        view = memoryview(data)
        self._file.write(view)
        self._whole.update(view)
        self.bytes += view.nbytes
        if self._blocks is None:
            self._part.update(view)
            return view.nbytes
        start = 0
        while start < view.nbytes:
            piece = view[start : start + BLOCK_BYTES - self._in_block]
            self._part.update(piece)
            start += piece.nbytes
            self._in_block += piece.nbytes
            if self._in_block == BLOCK_BYTES:
                self._end_block(self._blocks)
        return view.nbytes

    def end_blocks(self) -> bytes:
        """The checksums of all blocks; everything written from now on is the footer."""
        blocks = self._blocks or []
        if self._in_block:
            self._end_block(blocks)
        self._blocks = None
        return b"".join(blocks)

    def _end_block(self, blocks: list[bytes]) -> None:
        blocks.append(self._part.digest())
        self._part.reset()
        self._in_block = 0

    @property
    def checksum(self) -> bytes:
        """The checksum of all bytes, and that of the footer."""
        return _XXH3 + self._whole.digest() + self._part.digest()

    def flush(self) -> None:
        """Pass everything to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Close the file; it is not durable yet."""
        self._file.close()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._file.closed


@contextmanager
def opened(path: Path, expected_bytes: int = 0) -> Iterator[int]:
    """A file descriptor for reading. Never blocks, and follows no link.

    Raises `SegmentUnreadable` for a file that is missing, not a plain file, or (unless 0 is expected) of another size.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        check_plain(path, expected_bytes)
        raise SegmentUnreadable("data file cannot be read; restore it", path=str(path), cause=error) from error
    try:
        _require_plain(path, os.fstat(handle), expected_bytes)
        yield handle
    finally:
        os.close(handle)


def check_plain(path: Path, expected_bytes: int = 0) -> os.stat_result:
    """The status of a file, without opening it. Raises `SegmentUnreadable` as `opened` does."""
    try:
        status = os.lstat(path)
    except FileNotFoundError as error:
        raise SegmentUnreadable("data file is missing; restore it from a copy", path=str(path)) from error
    except OSError as error:
        raise SegmentUnreadable("data file cannot be reached; restore it", path=str(path), cause=error) from error
    _require_plain(path, status, expected_bytes)
    return status


def _require_plain(path: Path, status: os.stat_result, expected_bytes: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SegmentUnreadable("data file is not a plain file; restore it from a copy", path=str(path))
    if expected_bytes and status.st_size != expected_bytes:
        what = "cut short" if status.st_size < expected_bytes else "longer than committed"
        raise SegmentUnreadable(
            f"data file is {what}; restore it from a copy",
            path=str(path),
            expected=expected_bytes,
            found=status.st_size,
        )


def read_content(path: Path, expected_bytes: int = 0) -> bytes:
    """All bytes of a file. Raises `SegmentUnreadable`."""
    with opened(path, expected_bytes) as handle:
        return b"".join(_pieces(path, handle))


def checksum_file(path: Path, expected_bytes: int = 0) -> bytes:
    """The checksum of a file's current bytes. Cost: every byte, a megabyte in memory. Raises `SegmentUnreadable`."""
    whole = xxhash.xxh3_128()
    with opened(path, expected_bytes) as handle:
        for piece in _pieces(path, handle):
            whole.update(piece)
    return _XXH3 + whole.digest()


def _pieces(path: Path, handle: int) -> Iterator[bytes]:
    try:
        while piece := os.read(handle, _READ_BYTES):
            yield piece
    except OSError as error:
        raise SegmentUnreadable(
            "data file cannot be read; restore it from a copy", path=str(path), cause=error
        ) from error


def check_content(path: Path, checksum: bytes, expected_bytes: int = 0) -> None:
    """Compare a whole file with its checksum; if that is not known, only the size.

    Raises `SegmentUnreadable` with the file, the expected and the found checksum.
    """
    if not checksum:
        check_plain(path, expected_bytes)
        return
    require_known(path, checksum)
    found = checksum_file(path, expected_bytes)
    if content_of(found) != content_of(checksum):
        raise changed(path, expected=shown(checksum), found=shown(found))


def check_bytes(path: Path, content: bytes, checksum: bytes) -> None:
    """Compare bytes read from a file with its checksum, if that is known. Raises `SegmentUnreadable`."""
    if checksum:
        require_known(path, checksum)
        found = checksum_of(content)
        if found != checksum:
            raise changed(path, expected=shown(checksum), found=shown(found))


def require_known(path: Path, checksum: bytes) -> None:
    """Raise `SegmentUnreadable` for a checksum by an algorithm that this release does not have."""
    if checksum[0] not in ALGORITHMS:
        raise SegmentUnreadable(
            "data file has a checksum of a newer release; upgrade this package", path=str(path), algorithm=checksum[0]
        )


def changed(path: Path, **facts: object) -> SegmentUnreadable:
    """The error for bytes that are not what was written."""
    return SegmentUnreadable(
        "data file is not what was written; restore it from a copy, or read with best_effort", path=str(path), **facts
    )


def parts_of(stored: bytes) -> list[bytes]:
    """The checksums of blocks, from the result of `HashedFile.end_blocks`."""
    return [stored[at : at + FOOTER_BYTES] for at in range(0, len(stored), FOOTER_BYTES)]
