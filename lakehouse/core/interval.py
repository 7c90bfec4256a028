"""Closed-open intervals of UTC time, in microseconds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from lakehouse.errors import InvalidInterval, InvalidTime

Instant = datetime | date | str | int
"""What `to_utc` reads as an instant."""
AsOf: TypeAlias = int | str | datetime | date
"""A version, the name of a tag, or a time (ISO 8601, if it is text)."""
IntervalLike: TypeAlias = "Interval | str | date | tuple[Instant | None, Instant | None]"
"""What `Interval.of` reads: an interval, a period such as ``2013-01``, a day, or a ``(start, end)`` pair."""
MIN_TIME = datetime.min.replace(tzinfo=UTC)
MAX_TIME = datetime.max.replace(tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PERIOD = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[T ](\d{2}))?)?|-W(\d{2}))?")


def to_utc(value: Any) -> datetime:
    """Turn a datetime, date, ISO 8601 text or microseconds since 1970 into an aware UTC datetime.

    Text and datetimes without an offset are read as UTC.

    >>> to_utc("2013-01-05T07:00:00+02:00")
    datetime.datetime(2013, 1, 5, 5, 0, tzinfo=datetime.timezone.utc)
    """
    if type(value) is datetime and value.tzinfo is UTC:
        return value  # the common case by far: values that the library made
    match value:
        case datetime():
            return _datetime_to_utc(value)
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case str():
            try:
                parsed = datetime.fromisoformat(value.strip())
            except ValueError as error:
                raise InvalidTime("not a time; write ISO 8601 such as 2013-01-05T07:00:00", value=value) from error
            return _datetime_to_utc(parsed)
        case bool():
            raise InvalidTime("not a time; pass a datetime or ISO 8601 text", value=value)
        case int():
            return from_us(value)
        case _:
            raise InvalidTime("not a time; pass a datetime or ISO 8601 text", value=repr(value))


def _datetime_to_utc(value: datetime) -> datetime:
    try:
        # A subclass such as a pandas timestamp compares and prints in ways of its own, and NaT has no date at all.
        plain = value if type(value) is datetime else datetime.combine(value.date(), value.timetz())
        return plain.replace(tzinfo=UTC) if plain.tzinfo is None else plain.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        raise InvalidTime("time is outside the years 1 to 9999; use a time inside", value=value) from error


def to_us(instant: datetime) -> int:
    """Microseconds since 1970-01-01T00:00:00Z of an aware datetime.

    >>> to_us(to_utc("1970-01-01T00:00:01"))
    1000000
    """
    return (instant - _EPOCH) // _MICROSECOND


MIN_US, MAX_US = to_us(MIN_TIME), to_us(MAX_TIME)
"""The ends of time in microseconds since 1970."""


def from_us(us: int) -> datetime:
    """The aware UTC datetime of microseconds since 1970; the inverse of `to_us`."""
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError as error:
        raise InvalidTime("time is outside the years 1 to 9999; use a time inside", microseconds=us) from error


def read_bounds(start: Instant | None, end: Instant | None) -> tuple[datetime, datetime]:
    """Two instants as UTC datetimes, ``None`` as the begin or end of time; the first must be before the second."""
    first = MIN_TIME if start is None else to_utc(start)
    last = MAX_TIME if end is None else to_utc(end)
    if first >= last:
        raise InvalidInterval(
            "interval is empty or reversed; its start must be before its end",
            start=first.isoformat(),
            end=last.isoformat(),
        )
    return first, last


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """A closed-open interval ``[start, end)`` of UTC time; ``None`` leaves a side unbounded.

    Raises `InvalidInput` if ``start`` is not before ``end``.

    >>> day = Interval("2013-01-05", "2013-01-06")
    >>> day.overlaps(Interval.of("2013-01")), Interval.of("2013-01-05T07").start.hour
    (True, 7)
    >>> print(day.intersect(Interval("2013-01-05T18:00", "2013-02-01")))
    2013-01-05T18:00:00/2013-01-06
    """

    start: datetime
    end: datetime

    if TYPE_CHECKING:  # what `__post_init__` accepts is wider than what the fields hold

        def __init__(self, start: Instant | None, end: Instant | None) -> None: ...

    def __post_init__(self) -> None:
        start, end = read_bounds(self.start, self.end)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    @classmethod
    def of(cls, value: Any) -> Interval:
        """Read an interval, a ``(start, end)`` pair, a period such as ``2013-01`` or ``2013-W02``, or ``start/end``."""
        match value:
            case Interval():
                return value
            case str():
                return cls._parse(value.strip())
            case datetime():
                raise InvalidInterval("one instant is no interval; pass a (start, end) pair", value=value)
            case date():
                return cls._parse(value.isoformat())
            case (start, end):
                return cls(start, end)
            case _:
                raise InvalidInterval(
                    "not an interval; pass Interval(start, end), a (start, end) pair or a period such as 2013-01",
                    value=repr(value),
                )

    @classmethod
    def _parse(cls, text: str) -> Interval:
        if "/" in text:
            first, _, last = text.partition("/")
            return cls(first, last)
        found = _PERIOD.fullmatch(text)
        if not found:
            raise InvalidInterval(
                "not a period; write 2013, 2013-01, 2013-W02, 2013-01-05, 2013-01-05T07 or start/end", value=text
            )
        year, month, day, hour, week = (int(part) if part else None for part in found.groups())
        assert year is not None
        try:
            if week is None:
                # "2013-00" names a month that does not exist; a missing month means the whole year.
                start = datetime(year, 1 if month is None else month, 1 if day is None else day, hour or 0, tzinfo=UTC)
            else:
                start = datetime.fromisocalendar(year, week, 1).replace(tzinfo=UTC)
        except ValueError as error:
            raise InvalidInterval("no such period in the calendar", value=text, cause=error) from error
        try:
            if week is not None:
                end = start + timedelta(days=7)
            elif hour is not None:
                end = start + timedelta(hours=1)
            elif day is not None:
                end = start + timedelta(days=1)
            elif month is not None:
                end = start.replace(year=year + month // 12, month=month % 12 + 1)
            else:
                end = start.replace(year=year + 1)
        except (ValueError, OverflowError):
            end = MAX_TIME  # the last period ends with time itself
        return cls(start, end)

    @property
    def start_us(self) -> int:
        """Start in microseconds since 1970."""
        return to_us(self.start)

    @property
    def end_us(self) -> int:
        """End (not inside) in microseconds since 1970."""
        return to_us(self.end)

    def contains(self, other: Interval | datetime) -> bool:
        """Whether an instant, or every instant of another interval, lies inside."""
        if isinstance(other, Interval):
            return self.start <= other.start and other.end <= self.end
        return self.start <= other < self.end

    def overlaps(self, other: Interval) -> bool:
        """Whether an instant lies in both."""
        return self.start < other.end and other.start < self.end

    def intersect(self, other: Interval) -> Interval | None:
        """The instants in both, or None."""
        if not self.overlaps(other):
            return None
        return Interval(max(self.start, other.start), min(self.end, other.end))

    def __str__(self) -> str:
        return f"{_short(self.start)}/{_short(self.end)}"

    def __repr__(self) -> str:
        return f"Interval({_short(self.start)!r}, {_short(self.end)!r})"


ALL_TIME = Interval(None, None)
"""From the least to the greatest time that there is."""


def hull(intervals: Iterable[Interval]) -> Interval | None:
    """The smallest interval around all, or None for none.

    >>> print(hull([Interval.of("2013-01-05"), Interval.of("2013-01-02")]))
    2013-01-02/2013-01-06
    """
    listed = list(intervals)
    if not listed:
        return None
    return Interval(min(one.start for one in listed), max(one.end for one in listed))


def _short(instant: datetime) -> str:
    text = instant.replace(tzinfo=None).isoformat()
    return text.removesuffix("T00:00:00")
