"""What one operation's part of a commit comes to, as data: made under the head, carried out by `execute`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pyroaring import BitMap64
from sqlalchemy import Connection

from lakehouse.catalog.commit.leftover import ScopeChange
from lakehouse.catalog.state.bins import StateReader, live_in, touching
from lakehouse.catalog.state.tombstone_sets import Sets
from lakehouse.catalog.store.rows import Entry
from lakehouse.core.bins import bins_of
from lakehouse.core.contribution import Contribution
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.operation import Begun
from lakehouse.core.segment import NewSegment
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone


@dataclass(frozen=True, slots=True)
class CommitContext:
    """What the planning of one contribution reads: the catalog as it is at ``version``, under the head."""

    connection: Connection
    states: StateReader
    sets: Sets
    contribution: Contribution
    version: int

    @property
    def spec(self) -> TableSpec:
        """The table."""
        return self.contribution.begun.table

    def live(self, interval: Interval | None) -> tuple[Segments, list[Tombstone]]:
        """What is live now in the chunks of an interval (None: all)."""
        found = self.states.read(self.connection, self.spec, self.version, touching(self.spec, interval))
        segments, tombstones = live_in(found.values())
        return segments, list(tombstones.values())


@dataclass(frozen=True, slots=True)
class Erasure:
    """Files to put in the place of segments' files in every version, and what else goes with erased rows."""

    put: list[tuple[dict[str, Any], NewSegment]]
    """Rows of `models.segment` with the files that they get."""
    gone: list[dict[str, Any]]
    """Rows of segments without rows left, which are removed from every version."""
    scopes: list[ScopeChange]
    """Keyed tombstones that no longer name the erased keys."""
    unused: list[str]
    """Files that the catalog no longer names, or never named."""

    @property
    def segments(self) -> list[dict[str, Any]]:
        """Rows of all that lose their files."""
        return [row for row, _ in self.put] + self.gone


@dataclass(slots=True)
class OperationPlan:
    """What one operation changes. Planning reads, and may refuse; it writes nothing."""

    begun: Begun
    new: list[Entry] = field(default_factory=list)
    """Entries to store."""
    sets: dict[int, bytes] = field(default_factory=dict)
    """Content of the sets of new tombstones that the catalog keeps, by the tombstone's id."""
    changes: dict[tuple[int, int], tuple[int, Entry]] = field(default_factory=dict)
    """By bin and entry id: 1 for ADD or -1 for DROP, and the entry."""
    taken: tuple[Interval, KeyScope | None] | None = None
    """The interval and keys that the operation replaced or deleted whole, for `concurrent.removals_since`."""
    updated_rows: list[tuple[int, BitMap64]] = field(default_factory=list)
    """Row ids that a running replace, by its number, has to hide in addition to what it finds."""
    gives_way: list[int] = field(default_factory=list)
    """Numbers of other operations that lose their locks."""
    erasure: Erasure | None = None
    """Files that replace others in every version."""
    definition: TableSpec | None = None
    """The table's new definition, if its columns change."""
    properties: TableSpec | None = None
    """The table's definition with other properties, if those alone change."""

    def change(self, action: int, entries: Iterable[Entry]) -> None:
        """Add or drop entries in every bin that they are kept in."""
        for entry in entries:
            for one in bins_of(self.begun.table.bin_grain, entry.interval):
                self.changes[one, entry.id] = (action, entry)
