"""What the catalog tells about versions, chunks, key frames and locks, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.listing import Listing
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.tombstone import Tombstone


@dataclass(frozen=True, slots=True)
class Commit:
    """One version: what an operation did, all at once.

    ``added`` and ``dropped`` count segments. ``rows_added`` counts the rows of new segments; ``rows_deleted`` those
    that readers lost or saw rewritten, as of the version that the operation read. Where not ``is_exact`` nobody looked
    at them (an upsert; a delete of keys; a restore; a replace or keyed delete that cuts more than a million rows), and
    it counts those of dropped segments, as stored. Of an erasure it counts rows that went from files, whether a reader
    still saw them or not. Both are 0 for a compaction, which changes no row; ``bytes_added`` counts its segments too.
    """

    version: int
    operation: str
    committed_at: datetime
    tables: tuple[str, ...]
    added: int = 0
    dropped: int = 0
    rows_added: int = 0
    rows_deleted: int = 0
    tombstones_added: int = 0
    tombstones_dropped: int = 0
    message: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    txn: tuple[str, int] | None = None
    bytes_added: int = 0
    is_exact: bool = True

    @property
    def rows_lost(self) -> str:
        """The deleted rows for people: ``2``; ``2 stored`` or ``?`` where nobody counted what readers lost.

        >>> Commit(2, "restore", datetime(2013, 1, 1), ("t",), rows_deleted=1200, is_exact=False).rows_lost
        '1,200 stored'
        """
        if self.is_exact:
            return f"{self.rows_deleted:,}"
        return f"{self.rows_deleted:,} stored" if self.rows_deleted else "?"

    def to_arrow(self) -> pa.Table:
        """The commit as an Arrow table of one row."""
        return Listing([self]).to_arrow()


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


@dataclass(frozen=True, slots=True)
class KeyFrame:
    """One chunk's state at one version, materialized: how many live entries it holds, and its size."""

    chunk: Interval
    version: int
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One step by which a chunk's state is built: its key frame (``is_key_frame``), or the delta of a version after it.

    ``added`` and ``dropped`` count entries; ``entries`` is how many are live after the step, ``bytes`` the size of a
    key frame. ``chunk`` may be a run of chunks: what spans many of them is kept once for all.
    """

    chunk: Interval
    version: int
    is_key_frame: bool
    added: int
    dropped: int
    entries: int
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table at a glance, as it is stored now: rows that tombstones hide are counted.

    ``versions`` is how many can still be told, ``start`` and ``end`` bound its rows' times, ``rows_added`` has the rows
    that its versions added, less those that they dropped, on each of the last days (UTC), today last.
    """

    name: str
    version: int
    versions: int
    segments: int
    rows: int
    bytes: int
    tombstones: int
    start: datetime | None
    end: datetime | None
    rows_added: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChainLength:
    """How far the newest key frame of a chunk, or of a run of chunks kept together, lies behind.

    ``version`` is the newest that changed it, ``frame_version`` that of its newest key frame with ``entries`` (None: it
    has none), ``chain`` the number of versions after that.
    """

    chunk: Interval
    version: int
    frame_version: int | None
    entries: int
    chain: int


@dataclass(frozen=True, slots=True)
class Touch:
    """What one version did to an interval: segments and tombstones that overlap it, and the rows of those segments.

    Rows are counted as stored and by whole segments, however little of them lies in the interval.
    """

    version: int
    segments_added: int = 0
    segments_dropped: int = 0
    tombstones_added: int = 0
    tombstones_dropped: int = 0
    rows_added: int = 0
    rows_dropped: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """The version that added a segment or tombstone, and the one that dropped it; None while it is live."""

    entry: int
    version: int
    operation: str
    committed_at: datetime
    dropped_version: int | None = None


@dataclass(frozen=True, slots=True)
class EntryDiff:
    """What leads from one version to another, each segment and tombstone once, by id; segments stay in columns."""

    added_segments: Segments
    dropped_segments: Segments
    added_tombstones: tuple[Tombstone, ...]
    dropped_tombstones: tuple[Tombstone, ...]


@dataclass(frozen=True, slots=True)
class ChunkLock:
    """A running operation's exclusive hold on a chunk (for ``keys``, or all); it may be taken after ``expires_at``."""

    chunk: Interval
    operation: str
    priority: int
    token: int
    expires_at: datetime
    keys: KeyScope | None = field(default=None, hash=False)
    kind: str = ""


@dataclass(frozen=True, slots=True)
class ChunkDiff:
    """What was added to and dropped from one chunk between two versions."""

    added_segments: tuple[Segment, ...] = ()
    dropped_segments: tuple[Segment, ...] = ()
    added_tombstones: tuple[Tombstone, ...] = ()
    dropped_tombstones: tuple[Tombstone, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added_segments or self.dropped_segments or self.added_tombstones or self.dropped_tombstones)


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    """The ADD and DROP that lead from version ``a`` to version ``b`` of a table, by chunk in order of time.

    ``added`` and ``dropped`` list every segment and tombstone once, whatever the number of chunks it touches.
    """

    a: int
    b: int
    chunks: Mapping[Interval, ChunkDiff] = field(default_factory=dict, hash=False)

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
        return f"<diff from {self.a} to {self.b}: {added} added, {dropped} dropped in {len(self.chunks)} chunks>"

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
