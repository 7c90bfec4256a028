"""Indexes and sketches of segments: which exist, and how their rows are stored and removed.

They are derived: without one, the segment is read. A summary's row refers to its segment, and is removed with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, select, update

from lakehouse.catalog.state.bins import IDS, prepared_over, rows_by_id, rows_of_ids, unchanged_since
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.models import garbage, operation, segment_summary
from lakehouse.catalog.store.prepared import run_for_each
from lakehouse.catalog.versions.horizon import hold_history
from lakehouse.core.interval import from_us
from lakehouse.core.operation import Begun
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableSpec
from lakehouse.core.summary import Summary, SummaryKind, columns_of, field_id
from lakehouse.errors import LockLost
from lakehouse.faults import reach

_INLINE_BYTES = 1 << 20
"""Bytes of content that one transaction stores, because others wait for it."""
_IDS = 50_000
_PRESENT = prepared_over(
    IDS,
    """
    SELECT segment_summary.segment FROM {wanted} segment_summary
    WHERE segment_summary.segment = wanted.value AND segment_summary.kind = :kind AND segment_summary.field = :field
    """,
)
_OF_COLUMN = prepared_over(
    IDS,
    """
    SELECT segment_summary.segment, segment_summary.field, segment_summary.content, segment_summary.path,
      segment_summary.bytes, segment_summary.checksum
    FROM {wanted} segment_summary
    WHERE segment_summary.segment = wanted.value AND segment_summary.kind = :kind AND segment_summary.field = :field
    """,
)
_OF_ALL = prepared_over(
    IDS,
    """
    SELECT segment_summary.segment, segment_summary.field, segment_summary.content, segment_summary.path,
      segment_summary.bytes, segment_summary.checksum
    FROM {wanted} segment_summary
    WHERE segment_summary.segment = wanted.value AND segment_summary.kind = :kind
    """,
)
_PATHS = prepared_over(
    IDS,
    """
    SELECT segment_summary.path FROM {wanted} segment_summary
    WHERE segment_summary.segment = wanted.value AND segment_summary.path <> ''
    """,
)


class Summaries:
    """Catalog queries on summaries, and their registration."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def missing(self, spec: TableSpec, kind: SummaryKind, segments: Iterable[int]) -> list[int]:
        """Those of some segments that lack a summary of a column, ascending.

        Cost: one look-up for each segment and column.
        """
        wanted = sorted(set(segments))
        fields = [field_id(spec, name) for name in columns_of(spec, kind)]
        if kind is SummaryKind.SKETCH:
            fields = [
                max(fields)
            ]  # summaries of a segment are made together, and the newest column has the greatest id

        def question(connection: Connection) -> list[int]:
            lacking: set[int] = set()
            for batch in _batches(wanted):
                for one in fields:
                    present = rows_of_ids(connection, _PRESENT, batch, {"kind": kind.value, "field": one})
                    lacking |= set(batch) - {row[0] for row in present}
            return sorted(lacking)

        return self._database.read(question) if wanted and fields else []

    def read(self, kind: SummaryKind, segments: Iterable[int], field: int | None = None) -> list[Summary]:
        """Summaries of segments, of one column or of all; segments without one are left out. Cost: one look-up each."""
        wanted = sorted(segments)

        def question(connection: Connection) -> list[Summary]:
            parameters = {"kind": kind.value} | ({} if field is None else {"field": field})
            statement = _OF_ALL if field is None else _OF_COLUMN
            return [
                Summary(row[0], row[1], bytes(row[2] or b""), row[3], row[4], bytes(row[5] or b""))
                for batch in _batches(wanted)
                for row in rows_of_ids(connection, statement, batch, parameters)
            ]

        return self._database.read(question) if wanted else []

    def live(self, spec: TableSpec, segments: Iterable[int]) -> list[Segment]:
        """Those of some segments that exist and are live; with the fields that reading needs."""
        wanted = sorted(set(segments))

        def question(connection: Connection) -> list[Segment]:
            rows = (row for batch in _batches(wanted) for row in rows_by_id(connection, "segment", batch))
            return [_segment(row) for row in rows if row["table_id"] == spec.id and row["dropped_version"] is None]

        return self._database.read(question) if wanted else []

    def register(self, begun: Begun, kind: SummaryKind, made: Sequence[Summary]) -> int:
        """Store the summaries of an operation, end it, and return how many were stored. It makes no version.

        Summaries of segments that are gone, or that already have one, are not stored, and their files become garbage.
        Raises `LockLost` if the operation was ended; then the catalog names none of its files.
        """
        reach("summaries.written")
        inline = iter([one for one in made if not one.path])
        stored = 0
        while batch := list(_of_size(inline)):
            stored += self._database.run(lambda connection, batch=batch: len(_insert(connection, begun, kind, batch)))  # type: ignore[misc]
            reach("summaries.stored")
        files = [one for one in made if one.path]

        def work(connection: Connection) -> int:
            head, _ = hold_history(connection)
            ended = connection.execute(
                update(operation)
                .where(operation.c.number == begun.number, operation.c.state == "running")
                .values(state="committed", version=head)
            )
            if ended.rowcount != 1:
                raise LockLost("the operation was ended while it ran; begin it again", operation=begun.id)
            kept = {one.path for one in _insert(connection, begun, kind, files)}
            now_us = self._database.now_us(connection)
            left = [one.path for one in files if one.path not in kept]
            marks = [{"table_id": begun.table.id, "path": path, "marked_us": now_us} for path in left]
            run_for_each(connection, garbage.insert(), marks)
            return len(kept)

        def settled(connection: Connection) -> int | None:
            state = connection.execute(select(operation.c.state).where(operation.c.number == begun.number)).scalar()
            return len(files) if state == "committed" else None

        stored += self._database.run(work, settled=settled)
        reach("summaries.registered")
        return stored


def _insert(connection: Connection, begun: Begun, kind: SummaryKind, made: Sequence[Summary]) -> list[Summary]:
    """Store those whose segments are unchanged and have no such summary yet; return them."""
    if not made:
        return []
    hold_history(connection)
    ids = sorted({one.segment for one in made})
    there = unchanged_since(connection, ids, begun.base_version)
    known = {(row[0], row[1]) for row in rows_of_ids(connection, _OF_ALL, ids, {"kind": kind.value})}
    new = [one for one in made if one.segment in there and (one.segment, one.field_id) not in known]
    rows = [
        {
            "segment": one.segment,
            "kind": kind.value,
            "field": one.field_id,
            "operation": begun.number if one.path else None,
            "content": one.content if not one.path else None,
            "path": one.path,
            "bytes": one.bytes,
            "checksum": one.checksum or None,
        }
        for one in new
    ]
    run_for_each(connection, segment_summary.insert(), rows)
    return new


def forget_summaries(connection: Connection, segments: Sequence[int]) -> list[str]:
    """Remove the summaries of dead segments from the catalog; return the paths of their files."""
    paths = [row[0] for row in rows_of_ids(connection, _PATHS, segments)]
    for batch in _batches(segments, 400):
        connection.execute(delete(segment_summary).where(segment_summary.c.segment.in_(batch)))
    return paths


def _segment(row: dict[str, Any]) -> Segment:
    return Segment(
        row["id"],
        from_us(row["start_us"]),
        from_us(row["end_us"]),
        row["ordinal"],
        rows=row["rows"],
        bytes=row["bytes"],
        path=row["path"],
        checksum=bytes(row["checksum"] or b""),
    )


def _batches(ids: Sequence[int], most: int = _IDS) -> Iterator[Sequence[int]]:
    for first in range(0, len(ids), most):
        yield ids[first : first + most]


def _of_size(made: Iterator[Summary]) -> Iterator[Summary]:
    size = 0
    for one in islice(made, 1_000):
        yield one
        size += len(one.content)
        if size >= _INLINE_BYTES:
            return
