"""Rows of the reference model under tombstones, and the one rule of visibility, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope, scope_matches

Row = tuple[Any, ...]
Named = Mapping[str, Any]
Where = Callable[[Named], bool]
"""A predicate: whether a row, by column, matches."""
Change = Callable[[Named], Named]
"""New values by column of a row, by column."""
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """One row, its place in the write order, its row id, and the commit that gave it these values.

    ``derived``: an update or a merge wrote it, which had read the table before.
    """

    row: Row
    ordinal: int
    id: int
    written: int
    derived: bool = False


@dataclass(frozen=True, slots=True)
class IntervalTombstone:
    """Hides older rows in its interval and keys."""

    ordinal: int
    interval: Interval
    keys: KeyScope | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class KeyTombstone:
    """Hides older rows with one of these primary keys."""

    ordinal: int
    primary_keys: frozenset[Key]


@dataclass(frozen=True, slots=True)
class RowTombstone:
    """Hides older rows with one of these row ids."""

    ordinal: int
    row_ids: frozenset[int]


Tombstone = IntervalTombstone | KeyTombstone | RowTombstone


@dataclass(frozen=True, slots=True)
class State:
    """What is live at one version."""

    stored: tuple[Stored, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()

    def adding(self, stored: Iterable[Stored] = (), tombstones: Iterable[Tombstone] = ()) -> State:
        """The same with more in it."""
        return State((*self.stored, *stored), (*self.tombstones, *tombstones))


def is_newer(tombstone: Tombstone, stored: Stored) -> bool:
    """Whether a tombstone is about what was written before it, as it is about this row."""
    return tombstone.ordinal > stored.ordinal


@dataclass(slots=True)
class ModelRows:
    """The meaning of a table's rows: their columns, time and key, and which are visible in a state."""

    columns: tuple[str, ...]
    time: str
    grain: Grain
    primary_key: tuple[str, ...] = ()

    def named(self, row: Row) -> dict[str, Any]:
        """A row's values by column."""
        return dict(zip(self.columns, row, strict=True))

    def row_of(self, named: Named) -> Row:
        """A row of values by column."""
        return tuple(named[column] for column in self.columns)

    def time_of(self, row: Row) -> datetime:
        """A row's time."""
        found: datetime = row[self.columns.index(self.time)]
        return found

    def key_of(self, row: Row) -> Key:
        """A row's primary key."""
        named = self.named(row)
        return tuple(named[column] for column in self.primary_key)

    def partners(self, state: State, named: Named, on: tuple[str, ...]) -> list[Stored]:
        """The visible rows of a state that equal a row in some columns."""
        return [
            stored
            for stored in self.visible(state)
            if all(self.named(stored.row)[column] == named[column] for column in on)
        ]

    def covered(self, row: Row, interval: Interval | None, keys: KeyScope | None) -> bool:
        """Whether a row lies in an interval (None: always) and key scope."""
        inside = interval is None or interval.contains(self.time_of(row))
        return inside and scope_matches(keys, self.named(row))

    def matches(self, tombstone: Tombstone, stored: Stored) -> bool:
        """Whether a tombstone matches a row, whatever their ordinals."""
        match tombstone:
            case IntervalTombstone():
                return self.covered(stored.row, tombstone.interval, tombstone.keys)
            case KeyTombstone():
                return self.key_of(stored.row) in tombstone.primary_keys
            case RowTombstone():
                return stored.id in tombstone.row_ids

    def hides(self, tombstone: Tombstone, stored: Stored) -> bool:
        """Whether a live tombstone hides a live row."""
        return is_newer(tombstone, stored) and self.matches(tombstone, stored)

    def sees(self, state: State, stored: Stored) -> bool:
        """The visibility rule: no live tombstone with a greater ordinal matches the row."""
        return not any(self.hides(tombstone, stored) for tombstone in state.tombstones)

    def visible(self, state: State) -> list[Stored]:
        """Every visible row of a state."""
        return [stored for stored in state.stored if self.sees(state, stored)]


def order(row: Row) -> tuple[tuple[bool, Any], ...]:
    """Sort key under which null comes first in every column."""
    return tuple((value is not None, value) for value in row)
