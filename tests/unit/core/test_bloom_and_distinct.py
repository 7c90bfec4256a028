"""Filters miss nothing that is there and let little else through; sketches count within their error, and merge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core.bloom import (
    PAGE_BYTES,
    DamagedFilter,
    Owner,
    Probe,
    decode_blocks,
    encode_blocks,
    make_blocks,
    may_hold,
    may_hold_stored,
)
from lakehouse.core.distinct import (
    DamagedSketch,
    add_hashes,
    decode_registers,
    encode_registers,
    estimate,
    no_registers,
)
from lakehouse.core.hashing import Hashes, hash_words

OWNER = Owner(7, 3)


def hashes(first: int, count: int) -> Hashes:
    return hash_words(np.arange(first, first + count, dtype=np.uint64))


@given(st.sets(st.integers(0, 2**64 - 1), max_size=300), st.sets(st.integers(0, 2**64 - 1), max_size=30))
def test_nothing_that_is_there_is_missed(held: set[int], others: set[int]) -> None:
    blocks = make_blocks(np.array(sorted(held), np.uint64))
    stored = encode_blocks(blocks, OWNER)
    assert np.array_equal(decode_blocks(stored, OWNER), blocks)
    asked = np.array(sorted(held | others), np.uint64)
    found = may_hold(blocks, Probe.of(asked))
    assert all(said for one, said in zip(asked.tolist(), found.tolist(), strict=True) if one in held)
    by_page = may_hold_stored(len(stored), lambda at, length: stored[at : at + length], Probe.of(asked), OWNER)
    assert by_page.tolist() == found.tolist()


@pytest.mark.parametrize("count", [1, 10, 97, 1_000, 10_000, 200_000])
def test_about_one_in_a_hundred_others_passes(count: int) -> None:
    blocks = make_blocks(hashes(0, count))
    assert may_hold(blocks, Probe.of(hashes(0, count))).all()
    assert may_hold(blocks, Probe.of(hashes(10**9, 100_000))).mean() < 0.015
    assert blocks.nbytes <= max(32, 1.4 * count + 32)


def test_a_filter_of_nothing_holds_nothing() -> None:
    assert not may_hold(make_blocks(hashes(0, 0)), Probe.of(hashes(0, 1000))).any()


def test_a_filter_has_the_bits_that_the_specification_gives_a_value() -> None:
    """One block: bit n of word m is the upper five bits of the lower half times the mth salt."""
    (words,) = make_blocks(np.array([0x0000_0001_2345_6789], np.uint64)).tolist()
    salts = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
    assert words == [1 << (0x2345_6789 * salt % 2**32 >> 27) for salt in salts]


def test_a_look_for_one_value_reads_one_page() -> None:
    stored = encode_blocks(make_blocks(hashes(0, 50_000)), OWNER)
    read: list[tuple[int, int]] = []

    def page(at: int, length: int) -> bytes:
        read.append((at, length))
        return stored[at : at + length]

    assert may_hold_stored(len(stored), page, Probe.of(hashes(17, 1)), OWNER).all()
    assert [(at % PAGE_BYTES, length) for at, length in read] == [(0, PAGE_BYTES)]


@pytest.mark.parametrize("damage", ["another owner", "another bit", "cut", "empty", "pages swapped"])
def test_damage_is_noticed(damage: str) -> None:
    stored = encode_blocks(make_blocks(hashes(0, 20_000)), OWNER)
    broken = {
        "another owner": stored,
        "another bit": stored[:5000] + bytes([stored[5000] ^ 1]) + stored[5001:],
        "cut": stored[:-64],
        "empty": b"",
        "pages swapped": stored[PAGE_BYTES : 2 * PAGE_BYTES] + stored[:PAGE_BYTES] + stored[2 * PAGE_BYTES :],
    }[damage]
    owner = Owner(8, 3) if damage == "another owner" else OWNER
    with pytest.raises(DamagedFilter):
        decode_blocks(broken, owner)
    with pytest.raises(DamagedFilter):
        may_hold_stored(len(broken), lambda at, length: broken[at : at + length], Probe.of(hashes(0, 20_000)), owner)


@pytest.mark.parametrize("count", [0, 1, 2, 17, 300, 4_000, 60_000, 1_000_000])
def test_a_sketch_counts_within_its_error(count: int) -> None:
    found = []
    for turn in range(3):
        registers = no_registers()
        add_hashes(registers, hashes(turn * 10**9, count))
        add_hashes(registers, hashes(turn * 10**9, count // 2))
        found.append(estimate(registers))
    assert abs(sum(found) / 3 - count) <= 0.04 * count
    if count <= 17:
        assert [round(one) for one in found] == [count] * 3


@given(st.lists(st.integers(0, 5_000), max_size=3), st.integers(0, 5_000))
def test_sketches_of_parts_together_are_the_sketch_of_all(counts: list[int], first: int) -> None:
    whole, merged = no_registers(), no_registers()
    for count in counts:
        part = no_registers()
        add_hashes(part, hashes(first, count))
        add_hashes(whole, hashes(first, count))
        merged = np.maximum(merged, part)
        first += count // 2
    assert np.array_equal(whole, merged)
    assert np.array_equal(decode_registers(encode_registers(merged, 12))[0], merged)


def test_leading_zeros_are_counted_to_the_last_bit() -> None:
    for bits in range(52):
        registers = no_registers()
        add_hashes(registers, np.array([(1 << 51) >> bits], np.uint64))
        assert registers[0] == bits + 1
    registers = no_registers()
    add_hashes(registers, np.array([0, (1 << 52) - 1], np.uint64))
    assert registers[0] == 53


def test_a_damaged_sketch_is_noticed() -> None:
    stored = encode_registers(no_registers(), 5)
    for broken in (b"", stored[:-1], stored[:10] + b"\0" + stored[11:], b"\0" * 40):
        with pytest.raises(DamagedSketch):
            decode_registers(broken)
