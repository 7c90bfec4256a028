"""Skylines and overlapping pairs, against a look at every instant and every pair."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core.interval_join import masking_pairs
from lakehouse.core.skyline import BARE, Skyline

TIMES = st.integers(-12, 12)
INTERVALS = st.lists(
    st.tuples(TIMES, st.integers(1, 9), st.integers(-3, 6)).map(lambda one: (one[0], one[0] + one[1], one[2])),
    max_size=40,
)


def columns(found: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    starts, ends, ordinals = zip(*found, strict=True) if found else ((), (), ())
    return np.array(starts, np.int64), np.array(ends, np.int64), np.array(ordinals, np.int64)


def height(found: list[tuple[int, int, int]], time: int) -> int:
    return max((ordinal for start, end, ordinal in found if start <= time < end), default=BARE)


@given(INTERVALS, INTERVALS)
def test_a_skyline_has_the_greatest_ordinal_at_every_instant(
    found: list[tuple[int, int, int]], windows: list[tuple[int, int, int]]
) -> None:
    sky = Skyline.of(*columns(found))
    times = list(range(-15, 25))
    assert sky.at(times).tolist() == [height(found, time) for time in times]
    starts, ends, _ = columns(windows)
    heights = [[height(found, time) for time in range(start, end)] for start, end, _ in windows]
    assert sky.least(starts, ends).tolist() == [min(one) for one in heights]
    assert sky.greatest(starts, ends).tolist() == [max(one) for one in heights]


@given(INTERVALS, INTERVALS)
def test_all_pairs_that_overlap_are_found_once(
    segments: list[tuple[int, int, int]], tombstones: list[tuple[int, int, int]]
) -> None:
    found = [
        pair
        for segment, tombstone in masking_pairs(columns(segments), columns(tombstones))
        for pair in zip(segment.tolist(), tombstone.tolist(), strict=True)
    ]
    assert len(found) == len(set(found))
    assert [one for one, _ in found] == sorted(one for one, _ in found)
    assert set(found) == {
        (place, mask)
        for place, (start, end, ordinal) in enumerate(segments)
        for mask, (mask_start, mask_end, mask_ordinal) in enumerate(tombstones)
        if mask_start < end and start < mask_end and mask_ordinal > ordinal
    }
