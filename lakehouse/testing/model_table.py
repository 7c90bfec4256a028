"""One table of the reference model: rows under tombstones, and the one rule of visibility, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope, scope_matches
from lakehouse.errors import VersionNotFound

if TYPE_CHECKING:
    from lakehouse.testing.model_operation import ModelOperation

Row = tuple[Any, ...]
Named = Mapping[str, Any]
Where = Callable[[Named], bool]
"""A predicate: whether a row, by column, is meant."""
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
    """Hides what is older than it, in its interval and keys."""

    ordinal: int
    interval: Interval
    keys: KeyScope | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class KeyTombstone:
    """Hides what is older than it and has one of these primary keys."""

    ordinal: int
    primary_keys: frozenset[Key]


@dataclass(frozen=True, slots=True)
class RowTombstone:
    """Hides what is older than it and has one of these row ids."""

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
class ModelTable:
    """A table: its definition, the state at every version, and the operations that have begun and not ended.

    ``done`` are the replaces, takes and merges that were committed, with their versions, ``restores`` and ``erasures``
    the versions of those. Row ids are given out in the order of commits.
    """

    columns: tuple[str, ...]
    time: str
    grain: Grain
    versions: dict[int, State]
    primary_key: tuple[str, ...] = ()
    write_order: Literal["commit", "start"] = "commit"
    running: list[ModelOperation] = field(default_factory=list)
    done: list[tuple[int, ModelOperation]] = field(default_factory=list)
    restores: list[int] = field(default_factory=list)
    erasures: list[int] = field(default_factory=list)
    row_ids: int = 0

    @property
    def holders(self) -> list[ModelOperation]:
        """The running operations that hold chunks."""
        return [one for one in self.running if one.holds and not one.fenced]

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
        """The rows that can be seen in a state and are equal to one in some columns."""
        return [
            stored
            for stored in self.visible(state)
            if all(self.named(stored.row)[column] == named[column] for column in on)
        ]

    def store(self, rows: Iterable[Row], ordinal: int, version: int, *, derived: bool = False) -> tuple[Stored, ...]:
        """New rows of a commit, each with a row id that no row had."""
        listed = list(rows)
        first, self.row_ids = self.row_ids, self.row_ids + len(listed)
        return tuple(Stored(row, ordinal, first + place, version, derived) for place, row in enumerate(listed))

    def covered(self, row: Row, interval: Interval | None, keys: KeyScope | None) -> bool:
        """Whether a row lies in an interval (None: always) and key scope."""
        inside = interval is None or interval.contains(self.time_of(row))
        return inside and scope_matches(keys, self.named(row))

    def matches(self, tombstone: Tombstone, stored: Stored) -> bool:
        """Whether a tombstone is about a row, whatever their ordinals."""
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
        """Every row that can be seen in a state."""
        return [stored for stored in state.stored if self.sees(state, stored)]

    def at(self, version: int) -> State:
        """The state at the newest version that is not after ``version``."""
        known = [number for number in self.versions if number <= version]
        if not known:
            raise VersionNotFound("the table is younger than this version", version=version)
        return self.versions[max(known)]

    @property
    def newest(self) -> int:
        """The newest version."""
        return max(self.versions)

    @property
    def head(self) -> State:
        """The newest state."""
        return self.versions[self.newest]


def order(row: Row) -> tuple[tuple[bool, Any], ...]:
    """Sort key under which null comes first in every column."""
    return tuple((value is not None, value) for value in row)
