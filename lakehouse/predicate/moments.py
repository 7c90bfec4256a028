"""Dates and times as filters write them: beyond the years 1 to 9999, too, where Python has none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from lakehouse.core.interval import MAX_TIME, MIN_TIME, from_us, to_us

_ZULU = re.compile(r"\s*(?:UTC|Z)$")
_FAR = re.compile(r"([+-]?)([0-9]{4,5})(-[0-9]{2}-[0-9]{2}(?![0-9]).*)")
_DAY = timedelta(days=1)
DAY_US = _DAY // timedelta(microseconds=1)
_CYCLE_YEARS, _CYCLE_US = 400, 146_097 * DAY_US
"""The calendar repeats itself, days of the week and all."""
_FIRST_DAY, _LAST_DAY = (one.toordinal() - date(1970, 1, 1).toordinal() for one in (date.min, date.max))


@dataclass(frozen=True, slots=True)
class FarTime:
    """A time before the year 1 or after the year 9999, in microseconds since 1970. ``aware`` if it is an instant."""

    us: int
    aware: bool


@dataclass(frozen=True, slots=True)
class FarDate:
    """A day before the year 1 or after the year 9999, in days since 1970."""

    days: int


def read_moment(text: str) -> datetime | FarTime:
    """A written time: in UTC if it says an offset, else naive. Raises `ValueError`.

    >>> read_moment("2013-01-05 07:00+02:00"), read_moment("10000-01-01")
    (datetime.datetime(2013, 1, 5, 5, 0, tzinfo=datetime.timezone.utc), FarTime(us=253402300800000000, aware=False))
    """
    us, offset_us = _read(text)
    return moment(us - (offset_us or 0), offset_us is not None)


def read_time(text: str) -> datetime:
    """The same for a time of the years 1 to 9999. Raises `ValueError` for any other."""
    found = read_moment(text)
    if isinstance(found, FarTime):
        raise ValueError(text)
    return found


def read_day(text: str) -> date | FarDate:
    """The day of a written time, on the clock that it says. Raises `ValueError`."""
    return day(_read(text)[0] // DAY_US)


def moment(us: int, aware: bool) -> datetime | FarTime:
    """A time by its microseconds since 1970."""
    if not to_us(MIN_TIME) <= us <= to_us(MAX_TIME):
        return FarTime(us, aware)
    found = from_us(us)
    return found if aware else found.replace(tzinfo=None)


def day(days: int) -> date | FarDate:
    """A day by its number since 1970.

    >>> day(0), day(2932897)
    (datetime.date(1970, 1, 1), FarDate(days=2932897))
    """
    if not _FIRST_DAY <= days <= _LAST_DAY:
        return FarDate(days)
    return date(1970, 1, 1) + days * _DAY


def us_of(value: date | FarDate | FarTime) -> int:
    """Microseconds since 1970 of a time, or of the begin of a day; without an offset it is UTC."""
    match value:
        case FarTime():
            return value.us
        case FarDate():
            return value.days * DAY_US
        case datetime():
            return to_us(value.replace(tzinfo=UTC) if value.tzinfo is None else value)
    return to_us(datetime(value.year, value.month, value.day, tzinfo=UTC))


def is_aware(value: date | FarDate | FarTime) -> bool:
    """Whether a time is an instant: one that was written with an offset."""
    return value.aware if isinstance(value, FarTime) else isinstance(value, datetime) and value.tzinfo is not None


def _read(text: str) -> tuple[int, int | None]:
    """Microseconds since 1970 of what the clock shows, and of its offset if one is said."""
    written, cycles = _ZULU.sub("+00:00", text.strip()), 0
    far = _FAR.fullmatch(written)
    if far is not None:
        year = int(far[1] + far[2])
        near = 2000 + year % _CYCLE_YEARS
        written, cycles = f"{near}{far[3]}", (year - near) // _CYCLE_YEARS
    found = datetime.fromisoformat(written)
    offset = found.utcoffset()
    shown = to_us(found.replace(tzinfo=UTC)) + cycles * _CYCLE_US
    return shown, None if offset is None else offset // timedelta(microseconds=1)
