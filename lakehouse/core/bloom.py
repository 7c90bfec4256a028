"""Split-block Bloom filters: which values a column of a segment may hold, about ten bits a value.

A filter is blocks of eight 32-bit words. A value's hash chooses a block by its upper half, and by its lower half one
bit of each word. One in a hundred values that are not there is taken for one that is; none that is there is missed.

Stored, blocks lie in pages of 4 KiB, each with a checksum that also says whose page it is, so that a look for one value
reads one page, and a page that is damaged or another's is noticed.

Source: *Parquet Bloom Filter* of the Parquet format's specification, after F. Putze, P. Sanders and J. Singler,
"Cache-, Hash- and Space-Efficient Bloom Filters", 2007.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakehouse.core.hashing import Hashes

Blocks = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]

BITS_A_VALUE = 10.5
"""One in a hundred is taken wrongly, by the specification's table."""
PAGE_BYTES = 4096
_BLOCK_BYTES = 32
_PAGE_BLOCKS = PAGE_BYTES // _BLOCK_BYTES - 1
"""The place of one block holds the checksum."""
_TOGETHER = 1 << 16
"""Blocks that are looked at together."""
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)


class DamagedFilter(Exception):
    """Bytes are not those of the filter that they should be."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose filter it is: a segment's, of a column by its field id."""

    segment: int
    field: int

    def checksum(self, page: int, content: bytes) -> bytes:
        """The checksum of one of its pages, as wide as a block."""
        of = zlib.crc32(b"%d/%d/%d" % (self.segment, self.field, page))
        return zlib.crc32(content, of).to_bytes(4, "little").ljust(_BLOCK_BYTES, b"\0")


def make_blocks(hashes: Hashes) -> Blocks:
    """A filter for distinct hashes, of shape ``(blocks, 8)``; one empty block for none.

    >>> from lakehouse.core.hashing import hash_words
    >>> hashes = hash_words(np.arange(2000, dtype=np.uint64))
    >>> blocks = make_blocks(hashes[:1000])
    >>> found = may_hold(blocks, Probe.of(hashes))
    >>> bool(found[:1000].all()), bool(found[1000:].sum() < 50)
    (True, True)
    """
    count = max(1, int(np.ceil(len(hashes) * BITS_A_VALUE / (8 * _BLOCK_BYTES))))
    bits = np.zeros(count * 8 * _BLOCK_BYTES, np.bool_)
    first = ((hashes >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)) * np.uint64(8 * _BLOCK_BYTES)
    low = hashes.astype(np.uint32)
    for word in range(8):
        bits[first + np.uint64(32 * word) + _bit(low, word)] = True
    return np.packbits(bits, bitorder="little").view("<u4").reshape(count, 8)


@dataclass(frozen=True, slots=True)
class Probe:
    """Hashes to look for, made ready: the upper half of each, and the bits that it has in its block."""

    upper: Hashes
    bits: Blocks

    @classmethod
    def of(cls, hashes: Hashes) -> Probe:
        """Look for hashes."""
        bits = np.uint32(1) << np.stack([_bit(hashes.astype(np.uint32), word) for word in range(8)], axis=1)
        return cls(hashes >> np.uint64(32), bits.astype(np.uint32))

    def places(self, count: int) -> Hashes:
        """Of each the number of its block among so many."""
        return (self.upper * np.uint64(count)) >> np.uint64(32)

    def passes(self, blocks: Blocks) -> Mask:
        """For each, given its block, whether a value of that hash may be there."""
        found: Mask = ((blocks & self.bits) == self.bits).all(axis=1)
        return found


def may_hold(blocks: Blocks, probe: Probe) -> Mask:
    """For each hash whether a value of that hash may be among those that a filter was made for."""
    return probe.passes(blocks[probe.places(len(blocks))])


def may_hold_any(filters: Sequence[Blocks], probe: Probe) -> Mask:
    """For each filter whether `may_hold` is true of some hash. Cost: two microseconds a filter, and a pass over hashes.

    >>> from lakehouse.core.hashing import hash_words
    >>> hashes = hash_words(np.arange(9, dtype=np.uint64))
    >>> may_hold_any([make_blocks(hashes[:3]), make_blocks(hashes[3:])], Probe.of(hashes[:1])).tolist()
    [True, False]
    """
    found = [np.empty(0, np.bool_)]
    step = max(1, _TOGETHER // len(probe.upper))
    for first in range(0, len(filters), step):
        some = filters[first : first + step]
        counts = np.array([len(blocks) for blocks in some], np.uint64)
        chosen = (probe.upper * counts[:, None] >> np.uint64(32)).astype(np.int64)
        blocks = np.stack([blocks[places] for blocks, places in zip(some, chosen, strict=True)])
        found.append(((blocks & probe.bits) == probe.bits).all(axis=2).any(axis=1))
    return np.concatenate(found)


def _bit(low: Blocks, word: int) -> Blocks:
    shifted: Blocks = (low * _SALT[word]) >> np.uint32(27)
    return shifted


def encode_blocks(blocks: Blocks, owner: Owner) -> bytes:
    """A filter as pages.

    >>> decode_blocks(encode_blocks(make_blocks(np.arange(9, dtype=np.uint64)), Owner(1, 2)), Owner(1, 2)).shape
    (1, 8)
    """
    pages = []
    for page in range(-(-len(blocks) // _PAGE_BLOCKS)):
        content = blocks[page * _PAGE_BLOCKS : (page + 1) * _PAGE_BLOCKS].astype("<u4").tobytes()
        pages.append(owner.checksum(page, content) + content)
    return b"".join(pages)


def decode_blocks(stored: bytes, owner: Owner) -> Blocks:
    """The inverse of `encode_blocks`. Raises `DamagedFilter`."""
    pages = [
        _content(stored[start : start + PAGE_BYTES], page, owner)
        for page, start in enumerate(range(0, len(stored), PAGE_BYTES))
    ]
    if not pages:
        raise DamagedFilter("it is empty")
    return np.concatenate(pages)


def may_hold_stored(size: int, read: Callable[[int, int], bytes], probe: Probe, owner: Owner) -> Mask:
    """What `may_hold` says, of a filter of ``size`` stored bytes; only pages that matter are read.

    ``read`` gives the bytes from an offset on, of a length. Raises `DamagedFilter`.
    """
    count = _blocks_in(size)
    if count < 1:
        raise DamagedFilter(f"no filter has {size} bytes")
    chosen = probe.places(count).astype(np.int64)
    found = np.empty(len(chosen), np.bool_)
    for page in np.unique(chosen // _PAGE_BLOCKS).tolist():
        at = page * PAGE_BYTES
        blocks = _content(read(at, min(PAGE_BYTES, size - at)), page, owner)
        here = chosen // _PAGE_BLOCKS == page
        found[here] = Probe(probe.upper[here], probe.bits[here]).passes(blocks[chosen[here] % _PAGE_BLOCKS])
    return found


def _blocks_in(size: int) -> int:
    pages = -(-size // PAGE_BYTES)
    return size // _BLOCK_BYTES - pages if size % _BLOCK_BYTES == 0 else 0


def _content(stored: bytes, page: int, owner: Owner) -> Blocks:
    checksum, content = stored[:_BLOCK_BYTES], stored[_BLOCK_BYTES:]
    if not content or len(content) % _BLOCK_BYTES or checksum != owner.checksum(page, content):
        raise DamagedFilter("its checksum is another one")
    return np.frombuffer(content, "<u4").reshape(-1, 8)
