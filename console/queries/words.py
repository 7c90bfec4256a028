"""Values as words: times, sizes, changes and entries, as short as they can be said."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.chunk import Grain
from lakehouse.core.interval import MAX_TIME, MIN_TIME
from lakehouse.core.keys import KeyScope
from shown import shown

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def change(added: int, dropped: int) -> str:
    """What came and what went, as in "+3 −1"."""
    return " ".join(f"{sign}{count:,}" for sign, count in (("+", added), ("−", dropped)) if count)


def size_text(count: int) -> str:
    """A number of bytes in the unit that fits."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:,.0f} {unit}" if size >= 100 or unit == "B" else f"{size:.1f} {unit}"


def sizes_text(added: int, dropped: int) -> str:
    """Bytes that came and went, as in "+3.1 MB −40 kB"."""
    return " ".join(f"{sign}{size_text(count)}" for sign, count in (("+", added), ("−", dropped)) if count)


def text_of(instant: datetime) -> str:
    """A UTC time as short as it can be said."""
    return instant.replace(tzinfo=None).isoformat(sep=" ").removesuffix(":00").removesuffix(" 00:00")


def span_text(interval: Interval) -> str:
    """An interval, from when until when, to the second."""
    return " – ".join(text_of(edge.replace(microsecond=0)) for edge in (interval.start, interval.end))


def chunk_text(grain: Grain, run: Interval, reach: Interval | None = None) -> str:
    """A run of chunks by its first and last label: a run that holds all of ``reach`` is every chunk that there is.

    >>> day = Interval.of("2013-01-05")
    >>> chunk_text(Grain.DAY, day), chunk_text(Grain.DAY, Interval("2013-01-05", "2013-01-13"))
    ('2013-01-05', '2013-01-05 to 2013-01-12')
    >>> chunk_text(Grain.DAY, Interval("1970-01-01", "4700-09-01"), Interval("2013-01-01", "2013-02-01"))
    'every chunk'
    >>> chunk_text(Grain.ALL, run=day)
    'all of time'
    """
    if grain is Grain.ALL:
        return "all of time"
    if grain.chunk(run.start) == run:
        return grain.label(run.start)
    if reach is not None:
        if run.contains(reach):
            return "every chunk"
        run = run.intersect(reach) or run
    last = grain.floor(run.end - timedelta(microseconds=1))
    return f"{grain.label(grain.floor(run.start))} to {grain.label(last)}"


def keys_text(keys: KeyScope | None) -> str:
    """A key scope as it can be typed: ``carrier=UA, carrier=AA``; nothing for every row."""
    listed = [f"{column}={value}" for column, values in (keys or {}).items() for value in values]
    return shown(", ".join(listed), 200)


def describe(entry: Segment | Tombstone) -> str:
    """One line on a segment or tombstone."""
    if isinstance(entry, Segment):
        return f"segment {entry.id}"
    scope = "" if entry.keys is None else f", only {keys_text(entry.keys)}"
    return f"{entry.kind} tombstone {entry.id}{scope}"


def framed(rows: Iterable[dict[str, Any]], *times: str) -> pd.DataFrame:
    """Rows as a data frame, some of its columns times of any year: by itself pandas has only those of 1677 to 2262."""
    found = pd.DataFrame(list(rows))
    return found.astype(dict.fromkeys(times, "datetime64[us, UTC]")) if len(found) else found


def milliseconds(instant: datetime) -> float:
    """Milliseconds since 1970, as a browser counts time."""
    return (instant - _EPOCH) / timedelta(milliseconds=1)


def instant_of(milliseconds: float) -> datetime:
    """The second at which a browser's time falls; one beyond the calendar is its end."""
    least, most = ((edge - _EPOCH) / timedelta(milliseconds=1) for edge in (MIN_TIME, MAX_TIME))
    held = _EPOCH + timedelta(milliseconds=1) * min(max(milliseconds, least), most)
    return held.replace(microsecond=0)


def count_text(count: int, one: str) -> str:
    """A number of things: ``1 segment``, ``2 segments``."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def age_text(seconds: float) -> str:
    """How long something lasts or how old it is, in the unit that fits."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} s"
