"""Bins hold everything that touches their chunks, a few times and no more."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core.bins import MOST_BINS, bin_interval, bin_ranges, bins_of
from lakehouse.core.chunk import Grain
from lakehouse.core.interval import MAX_TIME, MIN_TIME, Interval, from_us, to_us
from lakehouse.testing.strategies import edges, grains

FIRST_US, LAST_US = to_us(MIN_TIME), to_us(MAX_TIME)
TIMES = edges().map(to_us) | st.integers(FIRST_US, LAST_US - 2)
LENGTHS = st.integers(1, 10**8) | st.integers(1, 10**14) | st.integers(1, LAST_US - FIRST_US)


@st.composite
def spans(draw: st.DrawFn) -> Interval:
    """Intervals from a microsecond to all of time."""
    start = draw(TIMES)
    return Interval(from_us(start), from_us(min(LAST_US, start + draw(LENGTHS))))


@given(grains(), spans())
def test_an_interval_is_kept_in_a_few_bins_that_cover_it_without_gaps(grain: Grain, interval: Interval) -> None:
    kept = [bin_interval(grain, one) for one in bins_of(grain, interval)]
    assert 1 <= len(kept) <= MOST_BINS
    assert kept[0].start <= interval.start
    assert kept[-1].end >= interval.end
    assert all(one.overlaps(interval) for one in kept)
    assert all(one.end == two.start for one, two in pairwise(kept))


@given(grains(), spans(), spans())
def test_a_look_finds_all_that_touches_its_chunks(grain: Grain, kept: Interval, looked_at: Interval) -> None:
    found = any(first <= one <= last for first, last in bin_ranges(grain, looked_at) for one in bins_of(grain, kept))
    if grain.align(kept).overlaps(grain.align(looked_at)):
        assert found
    assert any(first <= one <= last for first, last in bin_ranges(grain, None) for one in bins_of(grain, kept))


@given(grains(), TIMES)
def test_chunks_are_numbered_in_order_of_time(grain: Grain, time_us: int) -> None:
    number = grain.number_of(time_us)
    assert grain.start_of(number) == grain.floor(from_us(time_us))
    assert grain.start_of(number) < grain.start_of(number + 1)


@given(grains(), TIMES)
def test_what_touches_few_chunks_is_kept_in_the_chunks_themselves(grain: Grain, time_us: int) -> None:
    chunk = grain.chunk(from_us(time_us))
    assert [bin_interval(grain, one) for one in bins_of(grain, chunk)] == [chunk]
