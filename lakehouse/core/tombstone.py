"""A tombstone: what hides rows of segments that were written before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NewType

from lakehouse.core.bucket import Buckets
from lakehouse.core.checksum import Checksum
from lakehouse.core.interval import MAX_TIME, MIN_TIME, Interval, read_bounds
from lakehouse.core.keys import KeyScope, key_scope
from lakehouse.errors import InvalidInput

TombstoneId = NewType("TombstoneId", int)
TombstoneKind = Literal["interval", "key", "row"]


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Hides matching rows of every segment whose ordinal is less than ``ordinal``.

    An ``interval`` tombstone matches rows whose time is in ``[start, end)`` and whose key columns lie in ``keys``
    (None: every row); a ``key`` tombstone those whose primary key is in its set; a ``row`` tombstone those whose
    ``_row_id`` is in its set. The sets of the two are kept apart, so that planning need not load them: inline in the
    catalog, or in a file (``path``, relative to the warehouse, its ``bytes`` and ``checksum``). ``rows`` says how many
    they hold; ``min``, ``max`` and ``buckets`` bound them by column, ``_row_id`` or those of the primary key.
    ``primary_keys`` and ``row_ids`` are for sets that are small enough to be in the value itself.

    >>> Tombstone(id=1, start="2013-01-05", end="2013-01-06", ordinal=4, keys={"carrier": "UA"}).keys
    {'carrier': ('UA',)}
    """

    id: Any
    kind: TombstoneKind = "interval"
    start: datetime = MIN_TIME
    end: datetime = MAX_TIME
    ordinal: int = field(kw_only=True)
    keys: KeyScope | None = field(default=None, hash=False)
    rows: int = field(default=0, compare=False)
    path: str = field(default="", compare=False)
    bytes: int = field(default=0, compare=False)
    checksum: Checksum = field(default=b"", compare=False, repr=False)
    min: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    max: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    buckets: Buckets = field(default_factory=dict, compare=False, repr=False)
    primary_keys: Collection[tuple[Any, ...]] | None = field(default=None, compare=False, repr=False)
    row_ids: Collection[int] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in ("interval", "key", "row"):
            raise InvalidInput("unknown kind of tombstone; use interval, key or row", kind=self.kind)
        start, end = read_bounds(self.start, self.end)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)
        object.__setattr__(self, "keys", key_scope(self.keys))

    @property
    def interval(self) -> Interval:
        """The closed-open interval in which rows can match."""
        return Interval(self.start, self.end)

    @property
    def hides_interval(self) -> bool:
        """Whether every row of the interval matches, so that segments can be hidden without a look at their rows."""
        return self.kind == "interval" and self.keys is None
