"""A table's maintenance policy: what its properties say, checked, and the defaults of all that they do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from lakehouse.core.duration import age_seconds, duration_seconds
from lakehouse.core.spec import TARGET_ROWS
from lakehouse.core.steps import age_text, read_steps, steps_text
from lakehouse.errors import InvalidInput, InvalidProperty

HOUR, DAY = 3_600.0, 86_400.0
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_HOURS = re.compile(r"([01]?\d|2[0-4])-([01]?\d|2[0-4])")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit that changes with age: pairs of an age in seconds and the limit from then on, the first of age 0.

    The age is that of the newest thing that was written to what is looked at: what still changes is left alone longer.

    >>> deleted = Threshold.of("0.2, 0.05 after 7d")
    >>> deleted.at(3600), deleted.at(8 * 86400), str(deleted)
    (0.2, 0.05, '0.2, 0.05 after 7d')
    """

    steps: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, text: str) -> Threshold:
        """Read ``LIMIT[, LIMIT after AGE ...]``, ages growing. Raises `InvalidInput`."""
        steps = read_steps(text, _limit)
        if steps is None:
            raise InvalidProperty("a threshold is written as in '8, 2 after 1d'; ages grow", found=text)
        return cls(steps)

    def at(self, age_seconds: float) -> float:
        """The limit at an age."""
        return next(limit for age, limit in reversed(self.steps) if age_seconds >= age or age == 0.0)

    @property
    def ages(self) -> tuple[float, ...]:
        """The ages at which the limit changes, in seconds."""
        return tuple(age for age, _ in self.steps[1:])

    def __str__(self) -> str:
        return steps_text((age, f"{limit:g}") for age, limit in self.steps)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Hours of the UTC day in which nothing is rewritten; from a greater to a smaller hour they pass midnight.

    >>> night = QuietHours.of("22-6")
    >>> [night.holds(datetime(2013, 1, 5, hour)) for hour in (21, 22, 5, 6)]
    [False, True, True, False]
    """

    start: int
    end: int

    @classmethod
    def of(cls, text: str) -> QuietHours:
        """Read ``22-6``. Raises `InvalidInput`."""
        found = _HOURS.fullmatch(text)
        if found is None or int(found[1]) == int(found[2]):
            raise InvalidProperty("quiet hours are written as in 22-6, hours of the UTC day", quiet_hours=text)
        return cls(int(found[1]), int(found[2]))

    def holds(self, now: datetime) -> bool:
        """Whether a time lies in them."""
        if self.start < self.end:
            return self.start <= now.hour < self.end
        return now.hour >= self.start or now.hour < self.end

    def __str__(self) -> str:
        return f"{self.start:02d}-{self.end:02d}"


@dataclass(frozen=True, slots=True)
class Policy:
    """How a table is kept in shape; each field is a property of the same name, dots for underscores as in `NAMES`.

    ``retention_seconds`` and ``keep_last`` say how long versions stay readable (None: for ever);
    ``txn_retention_seconds`` how long a ``txn`` is known, at least as long. ``small_files``: a chunk's segments below
    half the target are compacted once that many of like size are there. ``overlap``: so many segments, on average, over
    one point of time and cluster keys. ``deleted_rows``: that share of hidden rows. ``outliers``: an interval that many
    times wider than the share of its rows. ``tombstone_debt``: so many milliseconds of a scan for masks. ``order``:
    what compactions sort by. ``index`` names columns that get Bloom filters, ``statistics`` asks for sketches of
    distinct values: each reads a segment once more. ``task_bytes`` is the most that one task reads,
    ``write_amplification`` the most that may be rewritten for each byte that was written.
    """

    enabled: bool = True
    target_rows: int = TARGET_ROWS
    retention_seconds: float | None = 30 * DAY
    keep_last: int = 10
    txn_retention_seconds: float | None = None
    quiet_hours: QuietHours | None = None
    segment_rows: int | None = None
    segment_bytes: int | None = None
    segment_age_seconds: float | None = None
    small_files: Threshold = Threshold(((0.0, 8.0), (3600.0, 4.0), (DAY, 2.0)))
    overlap: Threshold = Threshold(((0.0, 16.0), (3600.0, 8.0), (DAY, 4.0)))
    deleted_rows: Threshold = Threshold(((0.0, 0.3), (DAY, 0.1), (7 * DAY, 0.05)))
    outliers: Threshold = Threshold(((0.0, 16.0), (DAY, 8.0)))
    tombstone_debt: Threshold = Threshold(((0.0, 50.0), (3600.0, 10.0), (DAY, 2.0)))
    order: str = "time"
    index: tuple[str, ...] = ()
    statistics: bool = False
    task_bytes: int = 1 << 30
    write_amplification: float = 4.0
    others: Mapping[str, str] = field(default_factory=dict)
    """Properties that the library does not know, for strategies of others."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Policy:
        """Read a table's properties. Raises `InvalidInput` naming the property.

        >>> Policy.of({"maintenance": "off", "task_bytes": "64MiB"}).task_bytes
        67108864
        """
        found: dict[str, Any] = {}
        for name, text in properties.items():
            if name in NAMES:
                try:
                    found[NAMES[name][0]] = NAMES[name][1](text)
                except InvalidInput as error:
                    raise InvalidProperty(f"property {name}: {error}") from error
        return cls(**found, others={name: text for name, text in properties.items() if name not in NAMES})

    @property
    def ages(self) -> tuple[float, ...]:
        """Ages in seconds at which a limit changes, ascending."""
        thresholds = [held for one in fields(self) if isinstance(held := getattr(self, one.name), Threshold)]
        ended = () if self.segment_ends_after is None else (self.segment_ends_after,)
        return tuple(sorted({*ended, *(age for one in thresholds for age in one.ages)}))

    @property
    def segment_ends_after(self) -> float | None:
        """The age in seconds at which batches become one segment at the latest; None if the table joins none so.

        >>> Policy().segment_ends_after, Policy.of({"segment_rows": "1000"}).segment_ends_after
        (None, 3600.0)
        """
        if self.segment_age_seconds is not None:
            return self.segment_age_seconds
        return None if self.segment_rows is None and self.segment_bytes is None else HOUR

    def described(self) -> dict[str, str]:
        """Every property with its value, as it would be written."""
        shown = {name: _shown(name, getattr(self, attribute)) for name, (attribute, _) in NAMES.items()}
        return shown | dict(self.others)


def longest_retention(policies: Iterable[Policy]) -> tuple[float, int] | None:
    """The age in seconds, and the number, of versions that every table's policy lets go of; None if one keeps all.

    >>> longest_retention([Policy(), Policy.of({"retention": "90d"})])
    (7776000.0, 10)
    >>> longest_retention([Policy(), Policy.of({"retention": "forever"})])
    """
    listed = list(policies)
    ages = [one.retention_seconds for one in listed if one.retention_seconds is not None]
    if not listed or len(ages) < len(listed):
        return None
    return max(ages), max(one.keep_last for one in listed)


def read_size(text: str) -> int:
    """Bytes of a text such as ``64MiB`` or ``1GB``. Raises `InvalidInput`.

    >>> read_size("64MiB"), read_size("1.5kB"), read_size("4096")
    (67108864, 1500, 4096)
    """
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2].lower() or " ")) if found else 0
    if size < 1:
        raise InvalidProperty("a size is written as in 64MiB, 1GB or 4096", found=text)
    return size


def _switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise InvalidProperty("on or off", found=text)
    return text == "on"


def _retention(text: str) -> float | None:
    seconds = age_seconds(text)
    if seconds is None and text != "forever":
        raise InvalidProperty("an age such as 30d, or forever", found=text)
    return seconds


def _age(text: str) -> float:
    seconds = duration_seconds(text)
    if seconds is None:
        raise InvalidProperty("an age such as 30s or 5m", found=text)
    return seconds


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 2**40):
        raise InvalidProperty("a whole number of at least 1", found=text)
    return int(text)


def _limit(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _factor(text: str) -> float:
    value = _limit(text)
    if value is None:
        raise InvalidProperty("a number of at least 0", found=text)
    return value


def _order(text: str) -> str:
    if text not in ("time", "zorder"):
        raise InvalidProperty("time or zorder", found=text)
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


NAMES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "maintenance": ("enabled", _switch),
    "target_rows": ("target_rows", _count),
    "retention": ("retention_seconds", _retention),
    "keep_last": ("keep_last", _count),
    "txn_retention": ("txn_retention_seconds", _retention),
    "quiet_hours": ("quiet_hours", QuietHours.of),
    "segment_rows": ("segment_rows", _count),
    "segment_bytes": ("segment_bytes", read_size),
    "segment_age": ("segment_age_seconds", _age),
    "small_files": ("small_files", Threshold.of),
    "overlap": ("overlap", Threshold.of),
    "deleted_rows": ("deleted_rows", Threshold.of),
    "outliers": ("outliers", Threshold.of),
    "tombstone_debt": ("tombstone_debt", Threshold.of),
    "order": ("order", _order),
    "index": ("index", _names),
    "statistics": ("statistics", _switch),
    "task_bytes": ("task_bytes", read_size),
    "write_amplification": ("write_amplification", _factor),
}
"""Each property of the policy: its field, and what reads its text."""


def _shown(name: str, held: Any) -> str:
    match held:
        case bool():
            return "on" if held else "off"
        case None:
            return "forever" if NAMES[name][1] is _retention else "none"
        case tuple():
            return ", ".join(held) or "none"
        case float():
            return age_text(held) if NAMES[name][1] in (_retention, _age) else f"{held:g}"
        case _:
            return str(held)
