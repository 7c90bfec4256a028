"""Copies of which only some blocks are there: those of the columns that somebody asked for, and the footer.

A copy has the length of the object, with holes where nothing was fetched. What lies in it is compared block by block
with the checksums in the footer, and that with the catalog's (`lakehouse.storage.blocks`). Which blocks are there
stands in a file beside it, written after them; without that file none is.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lakehouse.core.checksum import footer_of
from lakehouse.storage.blocks import Footer, decoded_footer, footer_length
from lakehouse.storage.cache import PARTIAL_MODE, WHOLE_MODE, Cache
from lakehouse.storage.checksums import BLOCK_BYTES, changed, require_known
from lakehouse.storage.objects import Objects
from lakehouse.storage.warehouse import Committed

BlockMask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
_HEAD = struct.Struct("<QI")
"""Of a record: the inode of its copy, and how many blocks that has."""
LARGE_BYTES = 4 << 20
"""Smaller files are fetched whole: two requests would take longer than one."""
_TAIL_BYTES = 128 << 10
"""The first request's bytes; usually the footer is no longer."""
_WHOLE = 0.8
"""Once this part of the blocks is asked for, all are."""


def is_worth_it(file: Committed, columns: Collection[str] | None) -> bool:
    """Whether parts of a file may do: it is large, some columns are asked for, and its blocks have checksums."""
    return columns is not None and file.bytes >= LARGE_BYTES and bool(footer_of(file.checksum))


def bring_parts(
    cache: Cache, objects: Objects, file: Committed, columns: Collection[str], erasure: int | None = None
) -> bool | None:
    """See to it that the blocks of some columns are in a copy; return whether all were, None if it has to be whole.

    The caller holds the copy. Cost: a request for the footer where it is not there, then one for each run of blocks
    that is missing. Raises `SegmentUnreadable`, `StorageUnavailable`.
    """
    require_known(cache.path(file.path), file.checksum)
    return cache.making_room(lambda: _bring(cache, objects, file, columns, erasure))


def _bring(
    cache: Cache, objects: Objects, file: Committed, columns: Collection[str], erasure: int | None
) -> bool | None:
    while not cache.has(file.path, file.bytes):
        if cache.has_to_be_whole(file.path):
            return None
        handle = _open(cache, file)
        if handle is None:
            handle = _make(cache, objects, file, erasure)
        if handle is None:
            continue
        try:
            found = _fill(cache, objects, file, columns, handle)
        finally:
            os.close(handle)
        if found is not None:
            return found
    return True


def _open(cache: Cache, file: Committed) -> int | None:
    """A handle of a copy with holes; None if there is none.

    All that is done with a copy is done by one handle: another process may drop the copy meanwhile, and make another
    one of its name. No file gets the number of an inode that is open, so a record with it is of this copy.
    """
    try:
        handle = os.open(cache.path(file.path), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except PermissionError:
        if cache.has(file.path, file.bytes):  # a whole one has its place by now, which nobody may write
            return None
        raise
    found = os.fstat(handle)
    if found.st_mode == stat.S_IFREG | PARTIAL_MODE and found.st_size == file.bytes:
        os.utime(handle)  # it is used now
        return handle
    os.close(handle)
    if not cache.has(file.path, file.bytes):
        cache.drop([file.path])
    return None


def _make(cache: Cache, objects: Objects, file: Committed, erasure: int | None) -> int | None:
    """A handle of a new copy, with the footer alone, which takes one request or two; None if there is one by now."""
    first = max(0, file.bytes - _TAIL_BYTES)
    (tail,) = map(bytes, objects.get_ranges(file.path, [(first, file.bytes)]))
    length = footer_length(tail)
    if length > file.bytes:
        raise changed(cache.path(file.path), part="footer")
    if length > len(tail):
        (tail,) = map(bytes, objects.get_ranges(file.path, [(file.bytes - length, file.bytes)]))
    content = tail[-length:]
    decoded_footer(cache.path(file.path), content, file.bytes, file.checksum)
    path = cache.path(file.path)
    with cache.aside() as aside, ExitStack() as stack:
        handle = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        stack.callback(os.close, handle)
        os.truncate(handle, file.bytes)
        _write(handle, content, file.bytes - length)
        os.fchmod(handle, PARTIAL_MODE)
        with cache.recording():
            if os.path.lexists(path) or cache.has_to_be_whole(file.path):
                return None
            cache.note_older(erasure)
            cache.record(file.path).unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            os.link(aside, path)
        stack.pop_all()
        return handle


def _fill(cache: Cache, objects: Objects, file: Committed, columns: Collection[str], handle: int) -> bool | None:
    """Fetch what is missing of some columns into a copy; return whether nothing was, None if it was dropped."""
    footer = _held_footer(cache.path(file.path), handle, file)
    there = _present(cache, file.path, handle, len(footer.blocks))
    wanted = np.zeros(len(footer.blocks), np.bool_)
    wanted[footer.blocks_of(columns)] = True
    if wanted.mean() > _WHOLE:
        wanted[:] = True
    missing = np.flatnonzero(wanted & ~there)
    if not len(missing):
        return True
    runs = [(int(run[0]), int(run[-1]) + 1) for run in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1)]
    _fetch(cache.path(file.path), objects, file, footer, runs, handle)
    there[missing] = True
    if not _note(cache, file.path, handle, there):
        return None
    cache.count(len(missing) * BLOCK_BYTES)
    return False


def _held_footer(path: Path, handle: int, file: Committed) -> Footer:
    length = footer_length(os.pread(handle, 8, file.bytes - 8))
    content = os.pread(handle, length, max(0, file.bytes - length))
    return decoded_footer(path, content, file.bytes, file.checksum)


def _fetch(
    path: Path, objects: Objects, file: Committed, footer: Footer, runs: Sequence[tuple[int, int]], handle: int
) -> None:
    """Write blocks into a copy, durably."""
    ranges = [footer.range_of(first, end) for first, end in runs]
    for (first, end), (start, _), part in zip(runs, ranges, objects.get_ranges(file.path, ranges), strict=True):
        read = memoryview(part)
        footer.check(path, first, end, read)
        _write(handle, read, start)
    os.fdatasync(handle)


def _write(handle: int, content: bytes | memoryview, start: int) -> None:
    written = 0
    while written < len(content):
        written += os.pwrite(handle, content[written:], start + written)


def _note(cache: Cache, stored: str, handle: int, there: BlockMask) -> bool:
    """Record what is in a copy, with what others have fetched meanwhile; False if it was dropped."""
    with cache.recording(), suppress(FileNotFoundError):
        if os.path.samestat(cache.path(stored).lstat(), os.fstat(handle)):
            there = there | _present(cache, stored, handle, len(there))
            if there.all():
                os.fchmod(handle, WHOLE_MODE)
                cache.record(stored).unlink(missing_ok=True)
            else:
                head = _HEAD.pack(os.fstat(handle).st_ino, len(there))
                cache.write_record(stored, bytearray(head + np.packbits(there).tobytes()))
            return True
    return False


def _present(cache: Cache, stored: str, handle: int, blocks: int) -> BlockMask:
    """Which blocks are there: none that no record of this very copy names."""
    try:
        held = cache.record(stored).read_bytes()
    except FileNotFoundError:
        held = b""
    bits = held[_HEAD.size :]
    if len(bits) != -(-blocks // 8) or _HEAD.unpack(held[: _HEAD.size]) != (os.fstat(handle).st_ino, blocks):
        return np.zeros(blocks, np.bool_)  # of another copy, or cut short by a power cut
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=blocks).astype(np.bool_)
