"""Time chunks: the cells of a table's time grain, aligned in UTC (weeks are ISO weeks, from Monday)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from lakehouse.core.interval import MAX_TIME, MIN_TIME, MIN_US, Interval, from_us
from lakehouse.errors import InvalidSchema

_HOUR_US = 3_600_000_000
_DAY_US = 24 * _HOUR_US
_WEEK_US = 7 * _DAY_US
_MONDAY_US = 4 * _DAY_US
"""1970-01-05, the first Monday of the epoch."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Grain(StrEnum):
    """The length of a time chunk.

    >>> Grain.of("week").chunk(Interval.of("2013-01-01").start)
    Interval('2012-12-31', '2013-01-07')
    """

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"
    ALL = "all"
    """All of time is one chunk: the grain of timeless tables, and of no other."""

    @classmethod
    def of(cls, value: str) -> Grain:
        """Read the name of a grain by which time is divided. Raises `InvalidInput` for any other."""
        try:
            return _DIVIDING[value]
        except (KeyError, TypeError) as error:
            raise InvalidSchema("no such grain; use hour, day, week, month or year", grain=value) from error

    def floor(self, instant: datetime) -> datetime:
        """Start of the chunk that holds an instant."""
        day = instant.replace(hour=0, minute=0, second=0, microsecond=0)
        match self:
            case Grain.HOUR:
                return instant.replace(minute=0, second=0, microsecond=0)
            case Grain.DAY:
                return day
            case Grain.WEEK:
                return day - timedelta(days=day.weekday())
            case Grain.MONTH:
                return day.replace(day=1)
            case Grain.YEAR:
                return day.replace(month=1, day=1)
            case Grain.ALL:
                return MIN_TIME

    def after(self, start: datetime) -> datetime:
        """Start of the chunk that follows the one starting at ``start``; the end of time for the last."""
        try:
            match self:
                case Grain.HOUR:
                    return start + timedelta(hours=1)
                case Grain.DAY:
                    return start + timedelta(days=1)
                case Grain.WEEK:
                    return start + timedelta(days=7)
                case Grain.MONTH:
                    return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
                case Grain.YEAR:
                    return start.replace(year=start.year + 1)
                case Grain.ALL:
                    return MAX_TIME
        except (OverflowError, ValueError):
            return MAX_TIME

    def chunk(self, instant: datetime) -> Interval:
        """The chunk that holds an instant."""
        start = self.floor(instant)
        return Interval(start, self.after(start))

    def chunks(self, interval: Interval) -> Iterator[Interval]:
        """Every whole chunk that an interval touches, in order. Cost: one step a chunk.

        >>> [str(chunk) for chunk in Grain.MONTH.chunks(Interval("2012-02-29", "2012-03-02"))]
        ['2012-02-01/2012-03-01', '2012-03-01/2012-04-01']
        """
        start = self.floor(interval.start)
        while start < interval.end:
            end = self.after(start)
            yield Interval(start, end)
            start = end

    def split(self, interval: Interval) -> Iterator[Interval]:  # type: ignore[override]  # text is its value only
        """An interval cut at chunk boundaries, in order.

        >>> [str(part) for part in Grain.DAY.split(Interval("2012-02-29T12", "2012-03-01T06"))]
        ['2012-02-29T12:00:00/2012-03-01', '2012-03-01/2012-03-01T06:00:00']
        """
        for chunk in self.chunks(interval):
            part = chunk.intersect(interval)
            assert part is not None
            yield part

    def align(self, interval: Interval) -> Interval:
        """The smallest run of whole chunks around an interval."""
        last = self.floor(interval.end)
        return Interval(self.floor(interval.start), last if last == interval.end else self.after(last))

    def floor_us(self, times_us: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Chunk starts of many instants, in microseconds since 1970; vectorised.

        >>> Grain.DAY.floor_us(np.array([-1, 0, 86_400_000_001])).tolist()
        [-86400000000, 0, 86400000000]
        """
        match self:
            case Grain.HOUR:
                return times_us - times_us % _HOUR_US
            case Grain.DAY:
                return times_us - times_us % _DAY_US
            case Grain.WEEK:
                return times_us - (times_us - _MONDAY_US) % _WEEK_US
            case Grain.MONTH | Grain.YEAR:
                unit = "M" if self is Grain.MONTH else "Y"
                return (
                    times_us.astype("datetime64[us]")
                    .astype(f"datetime64[{unit}]")
                    .astype("datetime64[us]")
                    .astype(np.int64)
                )
            case Grain.ALL:
                return np.full_like(times_us, MIN_US)

    def number_of(self, time_us: int) -> int:
        """The number of the chunk that holds a time, counted from the one that holds 1970-01-01.

        >>> Grain.WEEK.number_of(0), Grain.MONTH.number_of(34_214_400_000_000)
        (0, 13)
        """
        match self:
            case Grain.HOUR:
                return time_us // _HOUR_US
            case Grain.DAY:
                return time_us // _DAY_US
            case Grain.WEEK:
                return (time_us - _MONDAY_US) // _WEEK_US + 1
            case Grain.MONTH:
                instant = from_us(time_us)
                return (instant.year - 1970) * 12 + instant.month - 1
            case Grain.YEAR:
                return from_us(time_us).year - 1970
            case Grain.ALL:
                return 0

    def start_of(self, number: int) -> datetime:
        """Where a chunk starts, by its number; the first or last time that there is for one beyond.

        >>> [Grain.WEEK.start_of(number).isoformat()[:10] for number in (0, 1)], Grain.YEAR.start_of(99_999) == MAX_TIME
        (['1969-12-29', '1970-01-05'], True)
        """
        try:
            match self:
                case Grain.HOUR:
                    return _EPOCH + timedelta(hours=number)
                case Grain.DAY:
                    return _EPOCH + timedelta(days=number)
                case Grain.WEEK:
                    return _EPOCH + timedelta(days=number * 7 - 3)
                case Grain.MONTH:
                    return _EPOCH.replace(year=1970 + number // 12, month=number % 12 + 1)
                case Grain.YEAR:
                    return _EPOCH.replace(year=1970 + number)
                case Grain.ALL:
                    return MIN_TIME if number < 1 else MAX_TIME
        except (OverflowError, ValueError):
            return MIN_TIME if number < 0 else MAX_TIME

    def label(self, start: datetime) -> str:
        """The period text of the chunk that starts there, as `Interval.of` reads it; ``all`` for all of time.

        >>> Grain.WEEK.label(Interval.of("2013-W02").start)
        '2013-W02'
        """
        # Not strftime: it does not pad years below 1000.
        text = start.isoformat()
        match self:
            case Grain.HOUR:
                return text[:13]
            case Grain.DAY:
                return text[:10]
            case Grain.WEEK:
                year, week, _ = start.isocalendar()
                return f"{year:04d}-W{week:02d}"
            case Grain.MONTH:
                return text[:7]
            case Grain.YEAR:
                return text[:4]
            case Grain.ALL:
                return self.value


DIVIDING = tuple(grain for grain in Grain if grain is not Grain.ALL)
"""The grains of tables with a time."""
_DIVIDING = {grain.value: grain for grain in DIVIDING}


def chunk_from_us(grain: Grain, start_us: int) -> Interval:
    """The chunk that starts at ``start_us`` microseconds since 1970."""
    start = from_us(start_us)
    return Interval(start, grain.after(start))


@dataclass(frozen=True, slots=True)
class Chunk:
    """One time chunk of a table: its interval, the newest version that changed it, and what is live in it.

    ``segments``, ``rows`` and ``bytes`` count live segments that touch the chunk, hidden rows included; a segment that
    spans several chunks counts in each.
    """

    start: datetime
    end: datetime
    version: int
    segments: int
    rows: int
    bytes: int
    tombstones: int = 0
