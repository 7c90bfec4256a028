"""Copies of which only some blocks are there: those of the columns that somebody asked for, and the footer.

A copy has the length of the object, with holes where nothing was fetched. What lies in it is compared block by block
with the checksums in the footer, and that with the catalog's (`lakehouse.storage.blocks`). Which blocks are there
stands in a file beside it, written after them; without that file none is.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lakehouse.core.checksum import footer_of
from lakehouse.storage.blocks import Footer, decoded_footer, footer_length
from lakehouse.storage.cache import PARTIAL_MODE, Cache
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
) -> bool:
    """See to it that the blocks of some columns are in a copy; return whether all were.

    The caller holds the copy. Cost: a request for the footer where it is not there, then one for each run of blocks
    that is missing. Raises `SegmentUnreadable`, `StorageUnavailable`.
    """
    path = cache.path(file.path)
    require_known(path, file.checksum)
    with cache.writing():
        there = _present(cache, file.path)
        if there is None:
            footer = _fetch_footer(cache, objects, file, erasure)
            there = np.zeros(len(footer.blocks), np.bool_)
        else:
            footer = _held_footer(path, file)
        wanted = np.zeros(len(footer.blocks), np.bool_)
        wanted[footer.blocks_of(columns)] = True
        if wanted.mean() > _WHOLE:
            wanted[:] = True
        missing = np.flatnonzero(wanted & ~there)
        if not len(missing):
            return True
        runs = [(int(run[0]), int(run[-1]) + 1) for run in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1)]
        inode = _fetch(path, objects, file, footer, runs)
        there[missing] = True
        _note(cache, file.path, inode, there)
        cache.count(len(missing) * BLOCK_BYTES)
    return False


def _note(cache: Cache, stored: str, inode: int, there: BlockMask) -> None:
    """Record what is in a copy, unless another one has its place by now."""
    with cache.recording():
        try:
            is_it = cache.path(stored).lstat().st_ino == inode
        except FileNotFoundError:
            is_it = False
        if is_it and there.all():
            cache.record(stored).unlink(missing_ok=True)
        elif is_it:
            _write_record(cache, stored, inode, there)
    if is_it and there.all():
        cache.keep(stored)


def _present(cache: Cache, stored: str) -> BlockMask | None:
    """Which blocks are there; None if it is not known of any."""
    if not cache.is_partial(stored):
        return None
    try:
        held, inode = cache.record(stored).read_bytes(), cache.path(stored).lstat().st_ino
    except FileNotFoundError:
        return None
    head, bits = held[: _HEAD.size], held[_HEAD.size :]
    if len(head) < _HEAD.size:
        return None
    of, count = _HEAD.unpack(head)
    if of != inode or len(bits) != -(-count // 8):
        return None  # of another copy, or cut short by a power cut
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=count).astype(np.bool_)


def _write_record(cache: Cache, stored: str, inode: int, there: BlockMask) -> None:
    content = _HEAD.pack(inode, len(there)) + np.packbits(there).tobytes()
    record = cache.record(stored)
    record.parent.mkdir(parents=True, exist_ok=True)
    with cache.aside() as aside:
        aside.write_bytes(content)
        aside.rename(record)


def _fetch_footer(cache: Cache, objects: Objects, file: Committed, erasure: int | None) -> Footer:
    """The footer by one request or two; the copy is there afterwards, with it alone."""
    first = max(0, file.bytes - _TAIL_BYTES)
    (tail,) = map(bytes, objects.get_ranges(file.path, [(first, file.bytes)]))
    length = footer_length(tail)
    if length > file.bytes:
        raise changed(cache.path(file.path), part="footer")
    if length > len(tail):
        (tail,) = map(bytes, objects.get_ranges(file.path, [(file.bytes - length, file.bytes)]))
    content = tail[-length:]
    footer = decoded_footer(cache.path(file.path), content, file.bytes, file.checksum)
    path = cache.path(file.path)
    with cache.aside() as aside:
        with aside.open("wb") as to:
            to.truncate(file.bytes)
            to.seek(file.bytes - length)
            to.write(content)
        aside.chmod(PARTIAL_MODE)
        with cache.recording():
            cache.note_older(erasure)
            cache.record(file.path).unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another one has just made it
                os.link(aside, path)
    return footer


def _held_footer(path: Path, file: Committed) -> Footer:
    with path.open("rb") as held:
        held.seek(-8, os.SEEK_END)
        length = footer_length(held.read(8))
        held.seek(-length, os.SEEK_END)
        return decoded_footer(path, held.read(length), file.bytes, file.checksum)


def _fetch(path: Path, objects: Objects, file: Committed, footer: Footer, runs: Sequence[tuple[int, int]]) -> int:
    """Write blocks into a copy; return its inode."""
    ranges = [footer.range_of(first, end) for first, end in runs]
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for (first, end), (start, _), part in zip(runs, ranges, objects.get_ranges(file.path, ranges), strict=True):
            read = memoryview(part)
            footer.check(path, first, end, read)
            written = 0
            while written < len(read):
                written += os.pwrite(handle, read[written:], start + written)
        os.fdatasync(handle)
        return os.fstat(handle).st_ino
    finally:
        os.close(handle)
