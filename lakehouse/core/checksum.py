"""Checksums of files, as the catalog holds them: the algorithm's number, then what it made of the bytes.

That of a segment goes on with a checksum of the file's footer alone, so that a read that needs little of a large file
can be sure of the footer, and by it of the blocks that it reads (`lakehouse.storage.blocks`). None (no bytes) is that
of a file which was written before there were checksums: only its size is known.
"""

from __future__ import annotations

from typing import TypeAlias

Checksum: TypeAlias = bytes

ALGORITHMS = {1: "xxh3"}
"""Names by number. 1: XXH3, 128 bits of the whole file, 64 of a footer."""
CONTENT_BYTES = 16
FOOTER_BYTES = 8


def shown(checksum: bytes) -> str:
    r"""A checksum for people, that of the whole file: ``xxhsum -H2`` prints the same hexadecimals.

    >>> shown(b"\x01" + bytes(16)), shown(b"")
    ('xxh3:00000000000000000000000000000000', 'unknown')
    """
    if not checksum:
        return "unknown"
    return f"{ALGORITHMS.get(checksum[0], checksum[0])}:{content_of(checksum).hex()}"


def content_of(checksum: bytes) -> bytes:
    """What was made of the whole file."""
    return checksum[1 : 1 + CONTENT_BYTES]


def footer_of(checksum: bytes) -> bytes:
    """What was made of the footer; none where the file has no blocks that it could vouch for."""
    return checksum[1 + CONTENT_BYTES :]
