"""Intervals, and everything that reads as one."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

from lakehouse.core.interval import MAX_TIME, MIN_TIME, Interval, from_us, hull, to_us, to_utc
from lakehouse.errors import InvalidInput


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2013", "2013-01-01", "2014-01-01"),
        ("2012-02", "2012-02-01", "2012-03-01"),
        ("2013-12", "2013-12-01", "2014-01-01"),
        ("2012-02-29", "2012-02-29", "2012-03-01"),
        ("2013-01-05T07", "2013-01-05T07:00", "2013-01-05T08:00"),
        ("2013-01-05 07", "2013-01-05T07:00", "2013-01-05T08:00"),
        ("2013-W01", "2012-12-31", "2013-01-07"),
        ("2015-W53", "2015-12-28", "2016-01-04"),
        (" 2013-01-05 ", "2013-01-05", "2013-01-06"),
        ("2013-01-05/2013-01-06T12:30", "2013-01-05", "2013-01-06T12:30"),
        ("2013-01-05T02:00:00+02:00/2013-01-05T01:00:00Z", "2013-01-05", "2013-01-05T01:00"),
        ("0001", "0001-01-01", "0002-01-01"),
        ("0001-W01", "0001-01-01", "0001-01-08"),
    ],
)
def test_a_period_reads_as_its_interval(text: str, start: str, end: str) -> None:
    assert Interval.of(text) == Interval(at(start), at(end))


@pytest.mark.parametrize("text", ["9999", "9999-12", "9999-W52", "9999-12-31", "9999-12-31T23"])
def test_the_last_period_ends_with_time_itself(text: str) -> None:
    assert Interval.of(text).end == MAX_TIME


@pytest.mark.parametrize(
    "text",
    [
        "",
        "20130105",
        "2013-1",
        "2013-00",
        "2013-13",
        "2013-02-29",
        "2013-01-00",
        "2013-01-05T24",
        "2013-W00",
        "2014-W53",
        "0000",
        "10000",
        "yesterday",
        "/",
        "2013-01-05/",
        "2013-01-06/2013-01-05",
        "2013-01-05/2013-01-05",
    ],
)
def test_what_is_no_period_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput):
        Interval.of(text)


@pytest.mark.parametrize("value", [None, 7, 2.5, object(), at("2013-01-05"), ("2013", "2014", "2015"), (True, False)])
def test_what_is_no_interval_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        Interval.of(value)


def test_an_interval_reads_from_a_pair_a_date_and_an_interval() -> None:
    day = Interval.of("2013-01-05")
    assert Interval.of(date(2013, 1, 5)) == day
    assert Interval.of(("2013-01-05", "2013-01-06")) == day
    assert Interval.of([at("2013-01-05"), date(2013, 1, 6)]) == day
    assert Interval.of(day) is day


def test_a_side_that_is_none_is_unbounded() -> None:
    assert Interval(None, None) == Interval(MIN_TIME, MAX_TIME)
    assert Interval.of((None, "2013-01-05")).start == MIN_TIME
    assert Interval.of(("2013-01-05", None)).contains(at("9998-01-01"))


@pytest.mark.parametrize("pair", [("2013-01-05", "2013-01-05"), ("2013-01-06", "2013-01-05")])
def test_an_empty_or_reversed_interval_is_refused_and_names_both_ends(pair: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput, match="start=2013-01-0") as caught:
        Interval(*pair)
    assert caught.value.end == "2013-01-05T00:00:00+00:00"


def test_times_of_any_zone_become_utc() -> None:
    tokyo = datetime(2013, 1, 5, 9, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert to_utc(tokyo) == at("2013-01-05")
    assert to_utc(tokyo).tzinfo is UTC
    assert to_utc(tokyo.replace(tzinfo=None)) == at("2013-01-05T09:00")
    assert to_utc("2013-01-05T09:00:00+09:00") == at("2013-01-05")


def test_the_second_of_two_equal_local_hours_is_known_by_its_fold() -> None:
    first = datetime(2013, 11, 3, 1, 30, tzinfo=ZoneInfo("America/New_York"))
    assert to_utc(first.replace(fold=1)) - to_utc(first) == timedelta(hours=1)


def test_a_pandas_timestamp_becomes_a_plain_datetime() -> None:
    found = Interval(pd.Timestamp("2013-01-05T00:00:00.000001"), pd.Timestamp("2013-01-06", tz="Asia/Tokyo"))
    assert type(found.start) is datetime
    assert found == Interval(at("2013-01-05T00:00:00.000001"), at("2013-01-05T15:00"))
    with pytest.raises(InvalidInput):
        to_utc(pd.NaT)


@pytest.mark.parametrize("value", [True, 2.5, None, b"2013", "noon", 10**18, -(10**18)])
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        to_utc(value)


def test_a_time_outside_the_calendar_is_refused_with_its_reason() -> None:
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    for value in (early, early.isoformat()):
        with pytest.raises(InvalidInput, match="years 1 to 9999"):
            to_utc(value)


def test_microseconds_are_exact_over_the_whole_calendar() -> None:
    assert (to_us(MIN_TIME), to_us(MAX_TIME)) == (-62135596800000000, 253402300799999999)
    assert (from_us(-1), from_us(-62135596800000000)) == (at("1969-12-31T23:59:59.999999"), MIN_TIME)


def test_touching_intervals_do_not_overlap_and_a_start_is_inside_but_an_end_is_not() -> None:
    day, following = Interval.of("2013-01-05"), Interval.of("2013-01-06")
    assert not day.overlaps(following)
    assert not following.overlaps(day)
    assert day.intersect(following) is None
    assert day.contains(day.start)
    assert not day.contains(day.end)
    assert day.contains(day)
    assert not day.contains(Interval(day.start, day.end + timedelta(microseconds=1)))
    assert hull([]) is None


def test_an_interval_prints_as_it_is_written() -> None:
    assert str(Interval.of("2013-01-05T07")) == "2013-01-05T07:00:00/2013-01-05T08:00:00"
    assert repr(Interval.of("2013-01-05")) == "Interval('2013-01-05', '2013-01-06')"
