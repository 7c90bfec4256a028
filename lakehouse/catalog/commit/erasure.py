"""Replacing segments' files by files without erased rows, in every version that has those segments.

A segment keeps its id, ordinal and interval, so no delta changes. One without rows left is removed from every version.
Key frames that held the old files are removed at once, and written again after the commit; processes stop using what
they cached of the table (`lakehouse.catalog.state.bins`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from lakehouse.catalog.commit.concurrent import has_copiers_since
from lakehouse.catalog.commit.leftover import scopes_to_change
from lakehouse.catalog.commit.plan import CommitContext, Erasure, OperationPlan
from lakehouse.catalog.commit.row_changes import running_overtaken
from lakehouse.catalog.state.bins import PAIRS, batches, prepared_over, rows_by_id, rows_of_pairs, touching
from lakehouse.catalog.state.due_frames import frames_by_point, read_deltas
from lakehouse.catalog.state.key_frames import FrameWriter
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.models import delta, segment
from lakehouse.catalog.store.rows import SegmentsForm, segments_from_rows
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
"""How many segments `read_stored` returns at a time."""


def plan_erasure(context: CommitContext, contribution: EraseContribution, plan: OperationPlan) -> None:
    """Plan which files an erasure replaces and which segments it removes.

    Raises `LookAgain` if row-copying operations have committed since its scan, since they may have copied such rows.
    Raises `WriteConflict` if another erasure rewrote one of the segments first. Cost: the rewritten segments, and the
    table's keyed tombstones.
    """
    connection, spec = context.connection, context.spec
    hold_history(connection)  # so that nobody writes key frames from what they read before
    if has_copiers_since(connection, spec, contribution.seen):
        raise LookAgain
    _refuse_overtaken(context, contribution)
    rows = {row["id"]: row for row in rows_by_id(connection, "segment", [one.segment for one in contribution.rewrites])}
    _refuse_second(contribution, rows)
    there = [one for one in contribution.rewrites if one.segment in rows]
    unused = [one.new.path for one in contribution.rewrites if one.new is not None and one.segment not in rows]
    plan.erasure = Erasure(
        put=[(rows[one.segment], one.new) for one in there if one.new is not None],
        gone=[rows[one.segment] for one in there if one.new is None],
        scopes=scopes_to_change(connection, contribution.begun, contribution.scope),
        unused=[*unused, *(row["path"] for row in rows.values())],
    )
    whole = hull(spans_of(rows.values()))
    if whole is not None:
        plan.taken = whole, None


def spans_of(rows: Iterable[dict[str, Any]]) -> list[Interval]:
    """Intervals of rows of `models.segment`."""
    return [Interval(from_us(row["start_us"]), from_us(row["end_us"])) for row in rows]


def _refuse_overtaken(context: CommitContext, contribution: EraseContribution) -> None:
    """Refuse an erasure that comes before a running replace, whose rows it does not see, and after newer writes."""
    replace = running_overtaken(context, contribution.read, contribution.seen)
    if replace is not None:
        raise WriteConflict(
            "a replace runs where rows are erased, and newer writes are there already; run it again after the replace",
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


def write_frames(database: Database, writer: FrameWriter, spec: TableSpec, spans: Iterable[Interval]) -> None:
    """Write the missing key frames of bins, oldest first, since each is made from the one before.

    Cost: the history of the bins. Commits continue meanwhile.
    """

    def question(connection: Connection, bins: list[int]) -> tuple[int, Numbers]:
        return read_horizon(connection), read_deltas(connection, spec, delta.c.bin.in_(bins))

    for batch in batches(sorted({one for span in spans for one in bins_of(spec.bin_grain, span)})):
        horizon, found = database.read(partial(question, bins=batch))
        due = frames_by_point(found, partial(_versions_from, horizon))
        for point in sorted(due):
            writer.write(spec, list(due[point]), point)


def _versions_from(horizon: int, deltas: Numbers) -> Numbers:
    versions = np.unique(deltas[:, 1])
    return versions[versions >= horizon]


def read_stored(connection: Connection, spec: TableSpec, until: int, after: int) -> Segments:
    """Segments up to a version, live or not, that are in any version: the first `PAGE` with ids above ``after``."""
    came = (segment.c.table_id == spec.id, segment.c.added_version <= until, segment.c.id > after)
    query = select(segment).where(*came).order_by(segment.c.id).limit(PAGE)
    return _segments(spec, [dict(row) for row in connection.execute(query).mappings()])


def read_come(connection: Connection, spec: TableSpec, since: int, until: int) -> Segments:
    """Segments added after a version, up to another. Cost: the table's bins, and what changed in them."""
    parameters = {"table": spec.id, "after": since, "until": until}
    ids = {row[0] for row in rows_of_pairs(connection, _CAME, touching(spec, None), parameters)}
    rows = rows_by_id(connection, "segment", ids)
    return _segments(spec, [row for row in rows if row["added_version"] > since])


def _segments(spec: TableSpec, rows: list[dict[str, Any]]) -> Segments:
    return Segments.in_columns(segments_from_rows(SegmentsForm.of(spec), rows))


_CAME = prepared_over(
    PAIRS,
    """
    SELECT DISTINCT delta.entry FROM {wanted} bin CROSS JOIN delta
    WHERE bin.table_id = :table AND bin.bin BETWEEN pair.first AND pair.second AND bin.version > :after
      AND delta.table_id = bin.table_id AND delta.bin = bin.bin AND delta.version > :after AND delta.version <= :until
      AND delta.action = 1 AND NOT delta.is_tombstone
    """,
)
