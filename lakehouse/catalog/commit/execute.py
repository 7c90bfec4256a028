"""Executing a commit's plan: the only place that writes an operation's changes into the catalog.

First the few changes that other operations read, which wait for answers (`apply`); then everything new in each table,
sent together with COMMIT (`write_table`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, delete, update

from lakehouse.catalog.commit.erasure import spans_of
from lakehouse.catalog.commit.leftover import ScopeChange
from lakehouse.catalog.commit.plan import Erasure, OperationPlan
from lakehouse.catalog.locks import locks
from lakehouse.catalog.state.bins import batches
from lakehouse.catalog.state.due_frames import refresh_bins
from lakehouse.catalog.state.summaries import forget_summaries
from lakehouse.catalog.store import statements
from lakehouse.catalog.store.encoding import encode_keys, encode_statistics
from lakehouse.catalog.store.models import (
    delta,
    garbage,
    key_frame,
    lake_table,
    operation,
    segment,
    tombstone,
    updated_rows,
)
from lakehouse.catalog.store.prepared import run_for_each
from lakehouse.catalog.store.rows import Entry, segment_values, tombstone_values
from lakehouse.catalog.versions.definitions import write_definition, write_properties
from lakehouse.core.bins import bins_of
from lakehouse.core.codec import codec_number
from lakehouse.core.interval import Interval
from lakehouse.core.replace import MOST_CHUNKS
from lakehouse.core.segment import NewSegment, Segment
from lakehouse.core.sets import encode_set
from lakehouse.core.spec import TableSpec
from lakehouse.core.version import ADD, DROP
from lakehouse.errors import TooManyChunks

_INSERT_UPDATED_ROWS = updated_rows.insert()


@dataclass(slots=True)
class TableDelta:
    """What one commit changes in one table, by bin."""

    spec: TableSpec
    operation: str
    added: list[tuple[Entry, int]] = field(default_factory=list)
    """New entries with the number of the operation that made them."""
    changes: dict[tuple[int, int], tuple[int, Entry]] = field(default_factory=dict)
    """By bin and entry id: 1 or -1, and the entry."""
    sets: dict[int, bytes] = field(default_factory=dict)
    """Content of the sets of new tombstones, by id."""
    rows_deleted: int = 0
    """Rows that readers lose, as far as they were counted."""
    is_exact: bool = True
    """Whether all were."""
    counts_rows: bool = True

    def counts(self) -> dict[str, int | bool]:
        """The columns of `models.commit_table` that count."""
        distinct = {entry.id: (action, entry) for action, entry in self.changes.values()}
        found: defaultdict[tuple[int, bool], int] = defaultdict(int)
        rows: defaultdict[int, int] = defaultdict(int)
        for action, entry in distinct.values():
            is_segment = isinstance(entry, Segment)
            found[action, is_segment] += 1
            rows[action] += entry.rows if is_segment and self.counts_rows else 0
        return {
            "segments_added": found[ADD, True],
            "segments_dropped": found[DROP, True],
            "tombstones_added": found[ADD, False],
            "tombstones_dropped": found[DROP, False],
            "rows_added": rows[ADD],
            "rows_deleted": self.rows_deleted if self.is_exact else max(self.rows_deleted, rows[DROP]),
            "is_exact": self.is_exact,
            "bytes_added": sum(
                entry.bytes for action, entry in distinct.values() if action == ADD and isinstance(entry, Segment)
            ),
        }

    def include(self, plan: OperationPlan) -> None:
        """Add the changes of one more operation."""
        self.added.extend((entry, plan.begun.number) for entry in plan.new)
        self.sets.update(plan.sets)
        self.changes.update(plan.changes)


def apply(connection: Connection, plan: OperationPlan, version: int, now_us: int) -> None:
    """Write changes other than a table's entries: its definition, notes for running operations, an erasure's files."""
    begun = plan.begun
    if plan.erasure is not None:
        _erase(connection, plan, plan.erasure, version, now_us)
    if plan.definition is not None:
        write_definition(connection, plan.definition, version)
    if plan.properties is not None:
        write_properties(connection, plan.properties, now_us)
    if plan.taken is not None:
        interval, keys = plan.taken
        taken = update(operation).where(operation.c.number == begun.number)
        connection.execute(
            taken.values(
                start_us=interval.start_us, end_us=interval.end_us, keys=encode_keys(keys, begun.table.stored_names)
            )
        )
    brought = [
        {"operation": number, "version": version, "row_ids": encode_set(row_ids)}
        for number, row_ids in plan.updated_rows
    ]
    run_for_each(connection, _INSERT_UPDATED_ROWS, brought)
    for number in [*plan.gives_way, *([begun.number] if begun.locks else [])]:
        locks.release(connection, number)


def _erase(connection: Connection, plan: OperationPlan, erasure: Erasure, version: int, now_us: int) -> None:
    """Put an erasure's files in place.

    Ended operations lose their keys whatever was erased; running operations then treat them as of all keys, and may
    retry once. Cost: the operations that took intervals over, and the deltas and key frames of the segments' bins.
    """
    spec = plan.begun.table
    connection.execute(update(lake_table).where(lake_table.c.id == spec.id).values(erased_version=version))
    keyed = (operation.c.table_id == spec.id, operation.c["keys"].is_not(None), operation.c.start_us.is_not(None))
    connection.execute(update(operation).where(*keyed, operation.c.state != "running").values(keys=None))
    for change in erasure.scopes:
        _change_scope(connection, spec, change)
    _put_files(connection, plan.begun.number, erasure.put)
    unused = [*erasure.unused, *forget_summaries(connection, sorted(row["id"] for row in erasure.segments))]
    gone = zip(erasure.gone, spans_of(erasure.gone), strict=True)
    _take_out(connection, spec, [(row["id"], row["added_version"], span) for row, span in gone])
    whole = delete(segment).where(segment.c.id == bindparam("gone"))
    run_for_each(connection, whole, [{"gone": row["id"]} for row in erasure.gone])
    spans = [*spans_of(erasure.segments), *(one.covered for one in erasure.scopes)]
    for batch in batches(sorted({one for span in spans for one in bins_of(spec.bin_grain, span)})):
        connection.execute(delete(key_frame).where(key_frame.c.table_id == spec.id, key_frame.c.bin.in_(batch)))
        refresh_bins(connection, spec, batch)
    listed = [{"table_id": spec.id, "path": path, "marked_us": now_us} for path in unused]
    run_for_each(connection, garbage.insert(), listed)


def _change_scope(connection: Connection, spec: TableSpec, change: ScopeChange) -> None:
    if change.left is None:
        _take_out(connection, spec, [(change.tombstone, change.added_version, change.covered)])
        connection.execute(delete(tombstone).where(tombstone.c.id == change.tombstone))
    else:
        put = update(tombstone).where(tombstone.c.id == change.tombstone)
        connection.execute(put.values(keys=encode_keys(change.left, spec.stored_names)))


def _put_files(connection: Connection, number: int, put: list[tuple[dict[str, Any], NewSegment]]) -> None:
    """Give segments their new files."""
    changed = update(segment).where(segment.c.id == bindparam("changed"))
    names = ("operation", "path", "rows", "bytes", "has_row_ids", "statistics", "rewrites", "checksum", "codec")
    values = [
        {
            "changed": row["id"],
            "new_operation": number,
            "new_path": new.path,
            "new_rows": new.rows,
            "new_bytes": new.bytes,
            "new_has_row_ids": new.has_row_ids,
            "new_statistics": encode_statistics(new.min, new.max, new.nulls, new.buckets),
            "new_rewrites": row["rewrites"] + 1,
            "new_checksum": new.checksum or None,
            "new_codec": codec_number(new.codec) or None,
        }
        for row, new in put
    ]
    run_for_each(connection, changed.values({name: bindparam(f"new_{name}") for name in names}), values)


def _take_out(connection: Connection, spec: TableSpec, entries: Iterable[tuple[int, int, Interval]]) -> None:
    """Remove entries, each with the version that added it and its interval, from every version."""
    named = delete(delta).where(
        delta.c.table_id == spec.id,
        delta.c.bin == bindparam("of_bin"),
        delta.c.version >= bindparam("since"),
        delta.c.entry == bindparam("of_entry"),
    )
    rows = [
        {"of_bin": one, "of_entry": entry, "since": added}
        for entry, added, span in entries
        for one in bins_of(spec.bin_grain, span)
    ]
    run_for_each(connection, named, rows)


def write_table(connection: Connection, change: TableDelta, version: int) -> list[Any]:
    """Store a table's new entries and its delta; return cursors over the state of its bins."""
    table, bins = change.spec.id, touched_bins(change)
    new = {entry.id for entry, _ in change.added}
    statements.INSERT_SEGMENT.run_many(
        connection,
        [segment_values(entry, table, number, version) for entry, number in change.added if isinstance(entry, Segment)],
    )
    statements.INSERT_TOMBSTONE.run_many(
        connection,
        [
            tombstone_values(entry, table, number, version)
            for entry, number in change.added
            if not isinstance(entry, Segment)
        ],
    )
    statements.INSERT_SET.run_many(connection, [{"id": one, "content": held} for one, held in change.sets.items()])
    old: dict[int, dict[str, Any]] = {}
    rows = []
    for (number, entry), (action, held) in change.changes.items():
        is_tombstone = not isinstance(held, Segment)
        rows.append(
            {
                "table_id": table,
                "bin": number,
                "version": version,
                "entry": entry,
                "action": action,
                "is_tombstone": is_tombstone,
            }
        )
        if entry not in new:
            old[entry] = {"changed": entry, "at": version if action == DROP else None, "is_tombstone": is_tombstone}
    statements.INSERT_DELTA.run_many(connection, rows)
    statements.DROP_SEGMENT.run_many(connection, [row for row in old.values() if not row["is_tombstone"]])
    statements.DROP_TOMBSTONE.run_many(connection, [row for row in old.values() if row["is_tombstone"]])
    statements.INSERT_COUNTS.run(
        connection, {"version": version, "table_id": table, "operation": change.operation, **change.counts()}
    )
    row = {"table_id": table, "version": version, "frame_version": None, "frame_entries": 0, "chain": 1}
    return [statements.TOUCH.run(connection, {**row, "bin": one}) for one in bins]


def touched_bins(change: TableDelta) -> list[int]:
    """The bins of a delta, in order. Raises `InvalidInput` if there are too many."""
    bins = sorted({number for number, _ in change.changes})
    if len(bins) > MOST_CHUNKS:
        raise TooManyChunks(
            "one commit touches too many time chunks; use a coarser grain or smaller intervals",
            chunks=len(bins),
            most=MOST_CHUNKS,
        )
    return bins
