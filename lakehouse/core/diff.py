"""What leads from one version of a table to another, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakehouse.core.interval import Interval
from lakehouse.core.listing import Listing
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.tombstone import Tombstone


@dataclass(frozen=True, slots=True)
class EntryDiff:
    """What leads from one version to another, each segment and tombstone once, by id; segments stay in columns."""

    added_segments: Segments
    dropped_segments: Segments
    added_tombstones: tuple[Tombstone, ...]
    dropped_tombstones: tuple[Tombstone, ...]


@dataclass(frozen=True, slots=True)
class ChunkDiff:
    """What was added to and dropped from one chunk between two versions."""

    added_segments: tuple[Segment, ...] = ()
    dropped_segments: tuple[Segment, ...] = ()
    added_tombstones: tuple[Tombstone, ...] = ()
    dropped_tombstones: tuple[Tombstone, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added_segments or self.dropped_segments or self.added_tombstones or self.dropped_tombstones)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One way in which a column, a part of one, or the table's layout differs between two versions.

    ``kind``: *added*, *dropped*, *renamed*, *widened*, *narrowed* (by a restore), *retyped*, *nullability*, *default*
    (for new rows), *commented* or *moved*. ``column`` is its name after the change, or the last that it had, with those
    of what it is in: ``place.zone``. Without a column it is *primary key*, *cluster by* or *grain*, of the table.

    >>> str(ColumnChange("widened", "delay", "int32", "int64"))
    'column delay widened: int32 to int64'
    """

    kind: str
    column: str
    before: str
    after: str

    def __str__(self) -> str:
        if not self.column:
            return f"{self.kind}: {self.before or 'none'} to {self.after or 'none'}"
        if self.kind in ("added", "dropped"):
            return f"column {self.column} {self.kind}: {self.before or self.after}"
        return f"column {self.column} {self.kind}: {self.before or 'nothing'} to {self.after or 'nothing'}"


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    """The ADD and DROP that lead from version ``a`` to version ``b`` of a table, by chunk in order of time.

    They are versions that changed rows; ``columns`` are the changes of columns between the versions that were asked
    for, which may have come after the rows. ``added`` and ``dropped`` list every segment and tombstone once, whatever
    the number of chunks it touches.
    """

    a: int
    b: int
    chunks: Mapping[Interval, ChunkDiff] = field(default_factory=dict, hash=False)
    columns: tuple[ColumnChange, ...] = ()

    @property
    def added(self) -> Listing[Segment | Tombstone]:
        """Segments and tombstones that are live at ``b`` and were not at ``a``."""
        return _distinct(
            entry for change in self.chunks.values() for entry in (*change.added_segments, *change.added_tombstones)
        )

    @property
    def dropped(self) -> Listing[Segment | Tombstone]:
        """Segments and tombstones that were live at ``a`` and are not at ``b``."""
        return _distinct(
            entry for change in self.chunks.values() for entry in (*change.dropped_segments, *change.dropped_tombstones)
        )

    def __repr__(self) -> str:
        added, dropped = len(self.added), len(self.dropped)
        columns = "".join(f"; {one}" for one in self.columns)
        return (
            f"<diff from {self.a} to {self.b}: {added} added, {dropped} dropped in {len(self.chunks)} chunks{columns}>"
        )

    def to_arrow(self) -> pa.Table:
        """A row for every ADD and DROP in every chunk."""
        rows: list[dict[str, Any]] = []
        for chunk, change in self.chunks.items():
            added: tuple[Segment | Tombstone, ...] = (*change.added_segments, *change.added_tombstones)
            dropped: tuple[Segment | Tombstone, ...] = (*change.dropped_segments, *change.dropped_tombstones)
            for action, entries in (("add", added), ("drop", dropped)):
                for entry in entries:
                    kind = "segment" if isinstance(entry, Segment) else "tombstone"
                    rows.append(
                        {
                            "chunk_start": chunk.start,
                            "chunk_end": chunk.end,
                            "action": action,
                            "kind": kind,
                            "id": entry.id,
                            "start": entry.start,
                            "end": entry.end,
                            "ordinal": entry.ordinal,
                            "rows": entry.rows,
                        }
                    )
        return pa.Table.from_pylist(rows)


def _distinct(entries: Any) -> Listing[Segment | Tombstone]:
    seen = {entry.id: entry for entry in entries}
    return Listing(seen[entry] for entry in sorted(seen))
