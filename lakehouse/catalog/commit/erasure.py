"""Putting files without erased rows in the place of segments' files, in every version that has those segments.

A segment keeps its id, its ordinal and its interval, so that no delta changes. One of which nothing is left is taken
out of every version: none shows a row of it. Key frames that held the old files go at once, and are written again after
the commit; what processes remember of the table is not used any more (`lakehouse.catalog.state.bins`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, delete, select, update

from lakehouse.catalog.commit.concurrent import has_copiers_since, note_taken
from lakehouse.catalog.commit.leftover import forget_scopes
from lakehouse.catalog.commit.row_changes import CommitContext, running_overtaken
from lakehouse.catalog.state.bins import PAIRS, batches, prepared_over, rows_by_id, rows_of_pairs, touching
from lakehouse.catalog.state.due_frames import frames_by_point, read_deltas, refresh_bins
from lakehouse.catalog.state.key_frames import FrameWriter
from lakehouse.catalog.state.summaries import forget_summaries
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.encoding import encode_statistics
from lakehouse.catalog.store.models import delta, garbage, key_frame, lake_table, segment
from lakehouse.catalog.store.prepared import run_for_each
from lakehouse.catalog.store.rows import segments_from_rows, segments_schema
from lakehouse.catalog.versions.horizon import hold_history, read_horizon
from lakehouse.core.bins import bins_of
from lakehouse.core.contribution import EraseContribution
from lakehouse.core.expire import Numbers
from lakehouse.core.interval import Interval, from_us, hull
from lakehouse.core.operation import LookAgain
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec
from lakehouse.errors import WriteConflict

PAGE = 10_000
"""Segments that `read_stored` gives at a time."""


def erase(context: CommitContext, contribution: EraseContribution, now_us: int) -> None:
    """Put rewrites in place, under the head.

    Raises `LookAgain` if others committed since it looked what they had made of rows: that may be such rows again, and
    comes after all that these read. Raises `WriteConflict` if another erasure was faster with a segment. Cost: the
    rewritten segments, and the deltas and key frames of their bins.
    """
    connection, spec = context.connection, context.spec
    hold_history(connection)  # against those who write key frames of what they read before
    if has_copiers_since(connection, spec, contribution.seen):
        raise LookAgain
    _refuse_overtaken(context, contribution)
    rows = {row["id"]: row for row in rows_by_id(connection, "segment", [one.segment for one in contribution.rewrites])}
    _refuse_second(contribution, rows)
    marks = [one.new.path for one in contribution.rewrites if one.new is not None and one.segment not in rows]
    connection.execute(update(lake_table).where(lake_table.c.id == spec.id).values(erased_version=context.version))
    changed = forget_scopes(connection, contribution.begun, contribution.scope)
    spans = {one: Interval(from_us(row["start_us"]), from_us(row["end_us"])) for one, row in rows.items()}
    whole = hull(spans.values())
    if whole is not None:
        note_taken(connection, contribution.begun, whole, None)
        _put_files(connection, contribution, rows)
        marks += [row["path"] for row in rows.values()]
        marks += forget_summaries(connection, sorted(rows))
        _take_out(connection, spec, contribution, rows, spans)
    if whole is not None or changed:
        bins = sorted({one for span in [*spans.values(), *changed] for one in bins_of(spec.grain, span)})
        for batch in batches(bins):
            held = (key_frame.c.table_id == spec.id, key_frame.c.bin.in_(batch))
            connection.execute(delete(key_frame).where(*held))
            refresh_bins(connection, spec, batch)
    listed = [{"table_id": spec.id, "path": path, "marked_us": now_us} for path in marks]
    run_for_each(connection, garbage.insert(), listed)


def _refuse_overtaken(context: CommitContext, contribution: EraseContribution) -> None:
    """Refuse what comes before a running replace, whose rows it does not see, and after what is newer than that."""
    replace = running_overtaken(context, contribution.read, contribution.seen)
    if replace is not None:
        raise WriteConflict(
            "a replace runs where rows are erased, and something newer is there already; run it again after that one",
            table=contribution.begun.table.name,
            operation=contribution.begun.id,
            replace=replace.id,
            held=replace.removal.interval,
        )


def _refuse_second(contribution: EraseContribution, rows: dict[int, Any]) -> None:
    others = [one for one in contribution.rewrites if one.segment in rows and rows[one.segment]["path"] != one.path]
    if others:
        raise WriteConflict(
            "another erasure rewrote the same segments since this one read them; run it again",
            table=contribution.begun.table.name,
            operation=contribution.begun.id,
            segments=len(others),
        )


def _put_files(connection: Connection, contribution: EraseContribution, rows: dict[int, Any]) -> None:
    """Give segments their new files."""
    put = [(rows[one.segment], one.new) for one in contribution.rewrites if one.new and one.segment in rows]
    changed = update(segment).where(segment.c.id == bindparam("changed"))
    names = ("operation", "path", "rows", "bytes", "has_row_ids", "statistics", "rewrites", "checksum")
    values = [
        {
            "changed": row["id"],
            "new_operation": contribution.begun.number,
            "new_path": new.path,
            "new_rows": new.rows,
            "new_bytes": new.bytes,
            "new_has_row_ids": new.has_row_ids,
            "new_statistics": encode_statistics(new.min, new.max, new.nulls, new.buckets),
            "new_rewrites": row["rewrites"] + 1,
            "new_checksum": new.checksum or None,
        }
        for row, new in put
    ]
    run_for_each(connection, changed.values({name: bindparam(f"new_{name}") for name in names}), values)


def _take_out(
    connection: Connection,
    spec: TableSpec,
    contribution: EraseContribution,
    rows: dict[int, Any],
    spans: dict[int, Interval],
) -> None:
    """Take segments of which nothing is left out of every version."""
    gone = [rows[one.segment] for one in contribution.rewrites if one.new is None and one.segment in rows]
    if not gone:
        return
    kept_in = [
        {"of_bin": one, "of_entry": row["id"], "since": row["added_version"]}
        for row in gone
        for one in bins_of(spec.grain, spans[row["id"]])
    ]
    told = delete(delta).where(
        delta.c.table_id == spec.id,
        delta.c.bin == bindparam("of_bin"),
        delta.c.version >= bindparam("since"),
        delta.c.entry == bindparam("of_entry"),
    )
    run_for_each(connection, told, kept_in)
    whole = delete(segment).where(segment.c.id == bindparam("gone"))
    run_for_each(connection, whole, [{"gone": row["id"]} for row in gone])


def write_frames(database: Database, writer: FrameWriter, spec: TableSpec, spans: Iterable[Interval]) -> None:
    """Write the key frames of bins that were left without, oldest first: each is made from the one before.

    Cost: the history of the bins. Commits go on meanwhile.
    """

    def question(connection: Connection, bins: list[int]) -> tuple[int, Numbers]:
        return read_horizon(connection), read_deltas(connection, spec, delta.c.bin.in_(bins))

    for batch in batches(sorted({one for span in spans for one in bins_of(spec.grain, span)})):
        horizon, found = database.read(lambda connection, batch=batch: question(connection, batch))  # type: ignore[misc]
        due = frames_by_point(found, partial(_versions_from, horizon))
        for point in sorted(due):
            writer.write(spec, list(due[point]), point)


def _versions_from(horizon: int, deltas: Numbers) -> Numbers:
    versions = np.unique(deltas[:, 1])
    return versions[versions >= horizon]


def read_stored(connection: Connection, spec: TableSpec, until: int, after: int) -> Segments:
    """Segments of versions up to one, live or not, that any version has: the first `PAGE` with ids above ``after``."""
    came = (segment.c.table_id == spec.id, segment.c.added_version <= until, segment.c.id > after)
    query = select(segment).where(*came).order_by(segment.c.id).limit(PAGE)
    return _segments(spec, [dict(row) for row in connection.execute(query).mappings()])


def read_come(connection: Connection, spec: TableSpec, since: int, until: int) -> Segments:
    """Segments that came in versions after one, up to another. Cost: the table's bins, and what changed in them."""
    parameters = {"table": spec.id, "after": since, "until": until}
    ids = {row[0] for row in rows_of_pairs(connection, _CAME, touching(spec, None), parameters)}
    rows = rows_by_id(connection, "segment", ids)
    return _segments(spec, [row for row in rows if row["added_version"] > since])


def _segments(spec: TableSpec, rows: list[dict[str, Any]]) -> Segments:
    return Segments(segments_from_rows(segments_schema(spec), rows))


_CAME = prepared_over(
    PAIRS,
    """
    SELECT DISTINCT delta.entry FROM {wanted} bin CROSS JOIN delta
    WHERE bin.table_id = :table AND bin.bin BETWEEN pair.first AND pair.second AND bin.version > :after
      AND delta.table_id = bin.table_id AND delta.bin = bin.bin AND delta.version > :after AND delta.version <= :until
      AND delta.action = 1 AND NOT delta.is_tombstone
    """,
)
