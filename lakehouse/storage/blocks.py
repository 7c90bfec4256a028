"""Blocks of a segment's file: a read verifies the bytes that it needs without reading the others.

While a file is written, the checksum of each block of its pages is stored in its footer, and that of the footer in the
catalog. A read compares the footer, and then the blocks with pages of its columns, before it decodes anything. Blocks
include page headers, which Parquet's own page checksums leave out.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.core.checksum import Checksum, footer_of
from lakehouse.core.spec import ROW_ID
from lakehouse.remembered import Remembered
from lakehouse.storage.checksums import (
    BLOCK_BYTES,
    changed,
    checksum_file,
    hash_part,
    opened,
    parts_of,
    require_known,
)

_BLOCKS = "lakehouse.blocks"
_TAIL_BYTES = 32 << 10
"""Bytes to read first; usually the footer is no longer."""
_MARK = b"PAR1"
_END_BYTES = 8
_RUN = 16
"""How many blocks are read at once."""
_REMEMBERED = 4096
"""The most footers in the cache."""


def write_blocks(blocks: bytes) -> dict[str, str]:
    """The footer entry with the checksum of each block."""
    return {_BLOCKS: base64.b64encode(blocks).decode()}


def check_blocks(path: Path, checksum: Checksum, size: int, columns: Collection[str] | None) -> None:
    """Compare a file's footer with its checksum, and the blocks of some columns (None: all) with what the footer says.

    Cost: a read and a pass over these bytes, and the footer decoded. Raises `SegmentUnreadable` naming the file.
    """
    require_known(path, checksum)
    with opened(path, size) as handle:
        footer = decoded_footer(path, _read_tail(path, handle), size, checksum)
        for first, end in _runs(footer.blocks_of(columns)):
            footer.check(path, first, end, _read(path, handle, *footer.range_of(first, end)))


@dataclass(frozen=True, slots=True)
class Footer:
    """Contents of a footer: where it begins, the checksum of each block before it, and where columns lie."""

    start: int
    blocks: list[bytes]
    spans: dict[str, list[tuple[int, int]]]
    """For each column and row group, the range of blocks with its pages."""

    @classmethod
    def of(cls, footer: bytes, size: int) -> Footer:
        """Read the footer at the end of a file of known size."""
        metadata = pq.read_metadata(pa.BufferReader(_MARK + footer))
        held: Mapping[bytes, bytes] = metadata.metadata or {}
        names = [metadata.schema.column(leaf).path.split(".")[0] for leaf in range(metadata.num_columns)]
        spans: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
        for group in range(metadata.num_row_groups):
            chunks = metadata.row_group(group)
            for leaf, name in enumerate(names):
                chunk = chunks.column(leaf)
                start = chunk.data_page_offset
                if chunk.has_dictionary_page:
                    start = min(start, chunk.dictionary_page_offset)
                spans[name].append((start // BLOCK_BYTES, -(-(start + chunk.total_compressed_size) // BLOCK_BYTES)))
        return cls(size - len(footer), parts_of(base64.b64decode(held[_BLOCKS.encode()])), spans)

    def range_of(self, first: int, end: int) -> tuple[int, int]:
        """Where the bytes of some consecutive blocks begin and end in the file."""
        return first * BLOCK_BYTES, min(end * BLOCK_BYTES, self.start)

    def check(self, path: Path, first: int, end: int, read: bytes | memoryview) -> None:
        """Compare the bytes of some consecutive blocks. Raises `SegmentUnreadable` naming those that differ."""
        held = memoryview(read)
        for number in range(first, end):
            at = (number - first) * BLOCK_BYTES
            if hash_part(held[at : at + BLOCK_BYTES]) != self.blocks[number]:
                start, to = self.range_of(number, number + 1)
                raise changed(path, bytes=f"{start}..{to}")

    def blocks_of(self, columns: Collection[str] | None) -> list[int]:
        """Numbers of the blocks in which pages of some columns lie, ascending."""
        if columns is None or not set(columns) - {ROW_ID} <= self.spans.keys():
            return list(range(len(self.blocks)))  # a column may have another name in the file
        spans = [span for name in columns for span in self.spans.get(name, ())]
        return sorted({number for first, end in spans for number in range(first, end)})


_footers: Remembered[Checksum, Footer] = Remembered(_REMEMBERED)
"""Recently read footers, by the checksum of their files: decoding one takes longer than comparing it."""


def decoded_footer(path: Path, footer: bytes, size: int, checksum: Checksum) -> Footer:
    """A decoded footer. Raises `SegmentUnreadable` if it is not what was written."""
    if hash_part(footer) != footer_of(checksum):
        raise changed(path, part="footer")
    known = _footers.get(checksum)
    if known is None:
        known = Footer.of(footer, size)
        _footers.put(checksum, known)
    return known


def found_checksum(path: Path) -> Checksum:
    """A checksum for a file without a known one, after verifying its blocks if it has any.

    Cost: every byte, twice. Raises `SegmentUnreadable` for a file that contradicts itself.
    """
    whole = checksum_file(path)
    with opened(path) as handle:
        footer = _read_tail(path, handle)
        size = os.fstat(handle).st_size
    try:
        held = pq.read_metadata(pa.BufferReader(_MARK + footer)).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise changed(path, part="footer", cause=error) from error
    if _BLOCKS.encode() not in held:
        return whole
    found = whole + hash_part(footer)
    check_blocks(path, found, size, None)
    return found


def footer_length(tail: bytes) -> int:
    """Bytes of a footer with its length and magic number, by the last eight of a file."""
    return int.from_bytes(tail[-_END_BYTES:-4], "little") + _END_BYTES


def _read_tail(path: Path, handle: int) -> bytes:
    """The bytes that should be the footer, with its length and magic number."""
    size = os.fstat(handle).st_size
    tail = _read(path, handle, max(0, size - _TAIL_BYTES), size)
    length = footer_length(tail)
    if length > size:
        raise changed(path, part="footer")
    return tail[-length:] if length <= len(tail) else _read(path, handle, size - length, size)


def _read(path: Path, handle: int, start: int, end: int) -> bytes:
    parts = []
    while start < end:
        try:
            part = os.pread(handle, end - start, start)
        except OSError as error:
            raise changed(path, cause=error) from error
        if not part:
            raise changed(path, part="end")
        parts.append(part)
        start += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive numbers, short enough that bytes are hashed while still in the processor's cache."""
    start = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1 or place - start == _RUN:
            yield numbers[start], numbers[place - 1] + 1
            start = place
