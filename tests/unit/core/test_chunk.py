"""Time chunks over two centuries, against the calendar."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from lakehouse.core.chunk import DIVIDING, Grain, chunk_from_us
from lakehouse.core.interval import MAX_TIME, MIN_TIME, Interval, to_us
from lakehouse.errors import InvalidInput

YEARS = range(1900, 2101)
DAYS = [date(1900, 1, 1) + timedelta(days=n) for n in range((date(2101, 1, 1) - date(1900, 1, 1)).days)]


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def test_every_day_of_two_centuries_lies_in_the_chunks_of_the_calendar() -> None:
    for day in DAYS:
        start, noon = midnight(day), midnight(day) + timedelta(hours=12, microseconds=1)
        assert Grain.DAY.chunk(noon) == Interval(start, start + timedelta(days=1))
        assert Grain.WEEK.floor(noon) == midnight(day - timedelta(days=day.isoweekday() - 1))
        assert Grain.MONTH.floor(noon) == midnight(day.replace(day=1))
        assert Grain.YEAR.floor(noon) == midnight(date(day.year, 1, 1))
        assert Grain.HOUR.floor(noon) == start + timedelta(hours=12)


def test_every_iso_week_of_two_centuries_has_its_number_and_seven_days() -> None:
    mondays = [day for day in DAYS if day.isoweekday() == 1]
    for monday in mondays:
        year, week, _ = monday.isocalendar()
        chunk = Grain.WEEK.chunk(midnight(monday))
        assert chunk == Interval(midnight(monday), midnight(monday) + timedelta(days=7))
        assert Grain.WEEK.label(chunk.start) == f"{year}-W{week:02d}"
        assert Interval.of(f"{year}-W{week:02d}") == chunk
    assert sum(Grain.WEEK.label(midnight(monday)).endswith("W53") for monday in mondays) == 36


def test_every_month_and_year_of_two_centuries_is_as_long_as_the_calendar_says() -> None:
    for year in YEARS:
        chunk = Interval.of(f"{year}")
        assert chunk == Grain.YEAR.chunk(chunk.start)
        assert chunk.end - chunk.start == timedelta(days=366 if calendar.isleap(year) else 365)
        for month in range(1, 13):
            chunk = Interval.of(f"{year}-{month:02d}")
            assert chunk == Grain.MONTH.chunk(chunk.end - timedelta(microseconds=1))
            assert chunk.end - chunk.start == timedelta(days=calendar.monthrange(year, month)[1])


@pytest.mark.parametrize("grain", DIVIDING)
def test_every_leap_day_and_turn_of_the_year_is_cut_right(grain: Grain) -> None:
    for year in YEARS:
        last = calendar.monthrange(year, 2)[1]
        for first in (midnight(date(year, 2, last)), midnight(date(year, 12, 31))):
            around = Interval(first - timedelta(hours=1), first + timedelta(days=1, hours=1))
            chunks = list(grain.chunks(around))
            assert all(one.end == following.start for one, following in pairwise(chunks))
            assert chunks[0].start <= around.start
            assert chunks[-1].end >= around.end
            for chunk in chunks:
                assert Interval.of(grain.label(chunk.start)) == chunk == grain.chunk(chunk.start)
                assert chunk_from_us(grain, chunk.start_us) == chunk


@pytest.mark.parametrize("grain", list(Grain))
def test_many_instants_are_floored_like_one_from_year_1_to_9999(grain: Grain) -> None:
    days = [
        midnight(date(year, month, day)) for year in range(1, 10000, 7) for month, day in ((1, 1), (2, 28), (12, 31))
    ]
    days += [midnight(date(year, 2, 29)) for year in range(4, 10000, 4) if calendar.isleap(year)]
    times = [MIN_TIME, MAX_TIME, *days, *(day + timedelta(hours=13, microseconds=1) for day in days)]
    times += [day - timedelta(microseconds=1) for day in days if day > MIN_TIME]
    found = grain.floor_us(np.array([to_us(time) for time in times], dtype=np.int64))
    assert found.tolist() == [to_us(grain.floor(time)) for time in times]


@pytest.mark.parametrize("grain", DIVIDING)
def test_the_first_and_the_last_chunk_end_where_time_does(grain: Grain) -> None:
    first, last = grain.chunk(MIN_TIME), grain.chunk(MAX_TIME)
    assert first.start == MIN_TIME
    assert last.end == MAX_TIME
    assert Interval.of(grain.label(first.start)) == first
    assert Interval.of(grain.label(last.start)) == last
    assert grain.align(Interval(None, None)) == Interval(None, None)
    assert list(grain.chunks(last)) == [last]


def test_an_aligned_interval_is_not_widened() -> None:
    assert Grain.MONTH.align(Interval.of("2013")) == Interval.of("2013")
    assert Grain.MONTH.align(Interval("2013-01-31", "2013-02-01T00:00:00.000001")) == Interval(
        "2013-01-01", "2013-03-01"
    )


@pytest.mark.parametrize("name", ["DAY", "days", "", "minute", "all", 7, None])
def test_no_other_grain_is_accepted(name: object) -> None:
    with pytest.raises(InvalidInput, match="hour, day, week, month or year"):
        Grain.of(name)  # type: ignore[arg-type]
