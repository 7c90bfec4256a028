"""Values as words: times, sizes, changes and entries, as short as they can be said."""

from datetime import UTC, datetime

import pandas as pd

from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.keys import KeyScope
from shown import shown

_FIRST_DRAWN = datetime(1700, 1, 1, tzinfo=UTC)
_LAST_DRAWN = datetime(2250, 1, 1, tzinfo=UTC)


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


def drawable(instant: datetime) -> pd.Timestamp:
    """A time inside what a browser and pandas can draw."""
    return pd.Timestamp(min(max(instant, _FIRST_DRAWN), _LAST_DRAWN))


def count_text(count: int, one: str) -> str:
    """A number of things: ``1 segment``, ``2 segments``."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def age_text(seconds: float) -> str:
    """How long something lasts or how old it is, in the unit that fits."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} s"
