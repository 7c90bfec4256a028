"""Segments whose rows have cooled are written anew, once, and last."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakehouse.core.segment import Segment
from lakehouse.core.strategy import TableState, combine
from lakehouse.core.strategy.cooled import cooled, next_cooling
from lakehouse.core.strategy.small_files import small_files
from tests.unit.core.strategy.tables import MIB, segment, state

STEPS = {"compression": "lz4, zstd after 7d"}
NOW = datetime(2013, 1, 20, 12, tzinfo=UTC)
"""Days up to the twelfth have cooled."""


def full(id: int, day: int, codec: str, **more: Any) -> Segment:
    return segment(id, **{"day": day, "rows": 5_000_000, "size": 9 * MIB, "codec": codec} | more)


def at(held: list[Segment], now: datetime = NOW, **properties: str) -> TableState:
    return replace(state(held, properties=STEPS | properties), now=now)


def ids(table: TableState) -> list[list[int]]:
    return sorted(one.segments.tolist() for one in cooled(table))


@pytest.mark.parametrize(
    ("held", "properties", "expected"),
    [
        ([], {}, []),
        ([full(1, 12, "lz4"), full(2, 13, "lz4")], {}, [[1]]),
        ([full(1, 5, "zstd"), full(2, 13, "zstd")], {}, []),
        ([full(1, 5, ""), full(2, 5, "lz4")], {}, [[2]]),
        ([full(1, 5, "snappy"), full(2, 13, "snappy")], {}, [[1]]),
        ([full(1, 900, "lz4")], {}, []),
        ([full(1, 5, "lz4"), full(2, 5, "lz4"), full(3, 6, "lz4")], {}, [[1, 2], [3]]),
        ([full(n, 5, "lz4") for n in range(4)], {"task_bytes": str(28 * MIB)}, [[0, 1, 2], [3]]),
        ([full(n, 5, "lz4") for n in range(2)], {"task_bytes": str(5 * MIB)}, [[0], [1]]),
        ([full(1, 5, "lz4", size=MIB - 1)], {}, []),
        ([full(n, 5, "lz4", size=MIB // 2) for n in (1, 2)], {}, [[1, 2]]),
        ([full(1, 5, "lz4")], {"compression": "zstd"}, []),
        ([full(1, 5, "lz4")], {"compression": "lz4"}, []),
        ([full(1, 5, "zstd"), full(2, 5, "lz4")], {"compression": "zstd, lz4 after 7d"}, [[1]]),
        ([full(1, 19, "none"), full(2, 18, "none"), full(3, 18, "lz4")],
         {"compression": "none, lz4 after 1d, zstd after 7d"}, [[2]]),
        ([full(1, 12, "lz4", hours=(0, 25))], {"ragged": "true"}, []),
        ([full(1, 9, "lz4", hours=(0, 90))], {"ragged": "true"}, [[1]]),
    ],
)  # fmt: skip
def test_what_has_outgrown_its_codec(
    held: list[Segment], properties: dict[str, str], expected: list[list[int]]
) -> None:
    assert ids(at(held, **properties)) == expected


def test_it_says_why_and_comes_last_alone_and_only_within_the_budget() -> None:
    small = [segment(n, day=5, rows=10, codec="lz4", size=1_000 + n) for n in range(10, 20)]
    table = at([full(1, 5, "lz4"), *small], target_rows="5000000")
    (one,) = cooled(table)
    assert one.cause == "5,000,100 rows have cooled: compression is lz4, zstd after 7d"
    assert (one.score, one.gain.cost_ms) == (0, 0)
    # What small files are compacted for goes first; the full one waits for the next plan.
    first = combine(table, [*cooled(table), *small_files(table)])
    assert [task.strategy for task in first] == ["small_files"]
    assert first[0].segments.tolist() == [task.id for task in small]
    # Segments that nothing else wants are a task of their own, though they share a chunk with others.
    apart = at([full(1, 5, "lz4"), *(replace(task, codec="zstd") for task in small)])
    both = combine(apart, [*cooled(apart), *small_files(apart)])
    assert [task.strategy for task in both] == ["small_files", "compression"]
    assert [task.segments.tolist() for task in both[1:]] == [[1]]
    some = combine(apart, [*cooled(apart), *small_files(apart)], rewritable_bytes=9 * MIB)
    assert [task.strategy for task in some] == ["small_files"]


@pytest.mark.parametrize("ragged", ["false", "true"])
def test_the_next_cooling_is_when_there_is_something_to_do(ragged: str) -> None:
    held = [full(1, 16, "lz4"), full(2, 18, "lz4"), full(3, 14, "zstd"), full(4, 14, ""), full(5, 17, "none")]
    table = at(held, ragged=ragged, compression="none, lz4 after 1h, zstd after 4d")
    assert ids(table) == [[5]]
    seconds = next_cooling(table)
    assert seconds == (datetime(2013, 1, 21, tzinfo=UTC) - NOW).total_seconds()
    before, after = (replace(table, now=NOW + timedelta(seconds=seconds + more)) for more in (-1, 0))
    assert (ids(before), ids(after)) == ([[5]], [[1], [5]])
    # Also when there will be nothing any more, or never was.
    assert next_cooling(replace(table, now=NOW + timedelta(days=99))) is None
    assert next_cooling(at(held, compression="zstd")) is None
    assert next_cooling(at([])) is None
    assert next_cooling(at([segment(1, day=365 * 7_000, codec="lz4")])) == pytest.approx(
        6_999.9 * 365 * 86_400, rel=0.01
    )
