"""Blocks of a segment's file: a read is sure of the bytes that it needs without a look at all others.

While a file is written, what stands for each block of its pages is noted in its footer, and what stands for the footer
in the catalog. A read compares the footer, and then the blocks in which the pages of its columns lie: page headers are
among them, which the checksums of Parquet's own pages leave out, and nothing is decoded before.
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
"""Read at once, in the hope that the footer is no longer."""
_MARK = b"PAR1"
_END_BYTES = 8
_RUN = 16
"""Blocks that are read at once."""
_REMEMBERED = 4096
"""Footers."""


def write_blocks(blocks: bytes) -> dict[str, str]:
    """The footer entry that keeps what stands for each block."""
    return {_BLOCKS: base64.b64encode(blocks).decode()}


def check_blocks(path: Path, checksum: Checksum, size: int, columns: Collection[str] | None) -> None:
    """Compare a file's footer with its checksum, and the blocks of some columns (None: all) with what the footer says.

    Cost: a read and a pass over these bytes, and the footer decoded. Raises `SegmentUnreadable` naming the file.
    """
    require_known(path, checksum)
    with opened(path, size) as handle:
        footer = _footer(path, _read_tail(path, handle), size, checksum)
        for first, end in _runs(footer.blocks_of(columns)):
            read = memoryview(_read(path, handle, first * BLOCK_BYTES, min(end * BLOCK_BYTES, footer.start)))
            for number in range(first, end):
                at = (number - first) * BLOCK_BYTES
                if hash_part(read[at : at + BLOCK_BYTES]) != footer.blocks[number]:
                    start, to = number * BLOCK_BYTES, min((number + 1) * BLOCK_BYTES, footer.start)
                    raise changed(path, bytes=f"{start}..{to}")


@dataclass(frozen=True, slots=True)
class _Footer:
    """What a footer says of its file: where it begins, what stands for each block before it, and where columns lie."""

    start: int
    blocks: list[bytes]
    spans: dict[str, list[tuple[int, int]]]
    """By column, the first and the end of the blocks that hold pages of it, for each row group."""

    @classmethod
    def of(cls, footer: bytes, size: int) -> _Footer:
        """Read the footer at the end of a file of a size."""
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

    def blocks_of(self, columns: Collection[str] | None) -> list[int]:
        """Numbers of the blocks in which pages of some columns lie, ascending."""
        if columns is None or not set(columns) - {ROW_ID} <= self.spans.keys():
            return list(range(len(self.blocks)))  # a column may be there under another name
        spans = [span for name in columns for span in self.spans.get(name, ())]
        return sorted({number for first, end in spans for number in range(first, end)})


_footers: Remembered[Checksum, _Footer] = Remembered(_REMEMBERED)
"""By the checksum of their files: to decode a footer takes longer than to compare it."""


def _footer(path: Path, footer: bytes, size: int, checksum: Checksum) -> _Footer:
    """What a footer says. Raises `SegmentUnreadable` if it is another than was written."""
    if hash_part(footer) != footer_of(checksum):
        raise changed(path, part="footer")
    known = _footers.get(checksum)
    if known is None:
        known = _Footer.of(footer, size)
        _footers.put(checksum, known)
    return known


def found_checksum(path: Path) -> Checksum:
    """A checksum for a file of which none is known, after a look at its blocks, if it has any.

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


def _read_tail(path: Path, handle: int) -> bytes:
    """What has to be the footer, its length and mark included."""
    size = os.fstat(handle).st_size
    tail = _read(path, handle, max(0, size - _TAIL_BYTES), size)
    length = int.from_bytes(tail[-_END_BYTES:-4], "little") + _END_BYTES
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
    """Runs of numbers next to each other, none so long that what was read is far away when it is hashed."""
    start = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1 or place - start == _RUN:
            yield numbers[start], numbers[place - 1] + 1
            start = place
