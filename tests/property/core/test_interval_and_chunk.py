"""Laws of intervals, chunks, key scopes and cells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core import Grain, Interval
from lakehouse.core.conflict import Cell, locks_clash
from lakehouse.core.interval import MAX_TIME, from_us, hull, to_us, to_utc
from lakehouse.core.keys import KeyScope, scope_matches, scopes_overlap
from lakehouse.testing.strategies import grains, intervals
from tests.property.core.histories import client_scopes

TIMES = st.datetimes(timezones=st.just(UTC)).filter(lambda time: time < MAX_TIME)
ANYWHERE = (
    st.tuples(TIMES, TIMES).filter(lambda pair: pair[0] != pair[1]).map(lambda pair: Interval(min(pair), max(pair)))
)
NARROW = st.builds(
    lambda start, length: Interval(start, min(start + length, MAX_TIME)),
    TIMES.filter(lambda time: time.year < 9999),
    st.timedeltas(timedelta(microseconds=1), timedelta(days=9)),
)
SCOPES = st.one_of(st.none(), client_scopes())


@given(TIMES)
def test_microseconds_and_text_lead_back_to_the_same_instant(time: datetime) -> None:
    assert from_us(to_us(time)) == time == to_utc(to_us(time)) == to_utc(time.isoformat())


@given(ANYWHERE)
def test_an_intervals_text_reads_back(interval: Interval) -> None:
    assert Interval.of(str(interval)) == interval
    assert Interval(*eval(repr(interval)[len("Interval") :])) == interval


@given(intervals(), intervals())
def test_an_intersection_holds_exactly_what_both_hold(a: Interval, b: Interval) -> None:
    both = a.intersect(b)
    assert both == b.intersect(a)
    assert (both is not None) == a.overlaps(b) == b.overlaps(a)
    around = hull([a, b])
    assert around is not None
    assert around.contains(a)
    assert around.contains(b)
    for edge in (a.start, a.end, b.start, b.end):
        for time in (edge, edge - timedelta(microseconds=1)):
            assert (both is not None and both.contains(time)) == (a.contains(time) and b.contains(time))


@given(TIMES, grains())
def test_every_instant_lies_in_its_chunk_and_no_other(time: datetime, grain: Grain) -> None:
    chunk = grain.chunk(time)
    assert chunk.contains(time)
    assert grain.floor(chunk.start) == chunk.start
    assert grain.chunk(chunk.end - timedelta(microseconds=1)) == chunk
    if chunk.end < MAX_TIME:
        assert grain.floor(chunk.end) == chunk.end
    assert grain is Grain.ALL or Interval.of(grain.label(chunk.start)) == chunk


@given(st.lists(TIMES, max_size=20), grains())
def test_many_instants_are_rounded_down_like_one(times: list[datetime], grain: Grain) -> None:
    found = grain.floor_us(np.array([to_us(time) for time in times], dtype=np.int64))
    assert found.tolist() == [to_us(grain.floor(time)) for time in times]


@given(NARROW, grains())
def test_the_parts_of_an_interval_tile_it(interval: Interval, grain: Grain) -> None:
    parts = list(grain.split(interval))
    assert (parts[0].start, parts[-1].end) == (interval.start, interval.end)
    assert all(one.end == following.start for one, following in pairwise(parts))
    assert all(grain.chunk(part.start).contains(part) for part in parts)
    chunks = list(grain.chunks(interval))
    assert [chunk.intersect(interval) for chunk in chunks] == parts
    assert hull(chunks) == grain.align(interval)


@given(SCOPES, SCOPES)
def test_scopes_that_share_a_row_overlap(a: KeyScope | None, b: KeyScope | None) -> None:
    clients = {None, "a", "b", "c"} | {
        one for scope in (a, b) if scope is not None for values in scope.values() for one in values
    }
    shared = any(scope_matches(a, {"client": one}) and scope_matches(b, {"client": one}) for one in clients)
    assert scopes_overlap(a, b) == scopes_overlap(b, a) == shared


@given(intervals(), SCOPES, intervals(), SCOPES, grains())
def test_operations_that_could_touch_one_row_have_locks_that_clash(
    a: Interval, keys_a: KeyScope | None, b: Interval, keys_b: KeyScope | None, grain: Grain
) -> None:
    one, other = Cell.around(a, grain, keys_a), Cell.around(b, grain, keys_b)
    assert locks_clash(one, other) == locks_clash(other, one)
    if a.overlaps(b) and scopes_overlap(keys_a, keys_b):
        assert locks_clash(one, other)
    if not scopes_overlap(keys_a, keys_b) or not grain.align(a).overlaps(grain.align(b)):
        assert not locks_clash(one, other)
