"""Removing dead entries and expired commits from the catalog's tables; call it under the head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlalchemy import Connection, bindparam, delete, exists, func, select

from lakehouse.catalog.state.bins import batches, rows_by_id
from lakehouse.catalog.state.due_frames import frames_by_point, pages_of, read_deltas, refresh_bins
from lakehouse.catalog.state.summaries import forget_summaries
from lakehouse.catalog.store.models import (
    bin,  # noqa: A004 - the word of the scheme
    chunk_lock,
    commit_log,
    commit_table,
    consumer,
    delta,
    garbage,
    key_frame,
    lake_table,
    lake_view,
    lock_wait,
    operation,
    plan_count,
    segment,
    segment_summary,
    table_schema,
    tag,
    task,
    tombstone,
    tombstone_set,
    txn,
    updated_rows,
    upkeep,
)
from lakehouse.catalog.store.prepared import run_for_each
from lakehouse.catalog.store.rows import Values, spec_from_row
from lakehouse.catalog.store.upload_model import upload
from lakehouse.catalog.versions.batches import is_newest_of_stream
from lakehouse.catalog.versions.horizon import STATES
from lakehouse.catalog.versions.log import version_at
from lakehouse.core.bins import bins_of
from lakehouse.core.expire import Numbers, newest_at, reached_by_none
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.policy import Policy
from lakehouse.core.spec import TableSpec

MOST_COMMITS = 20_000
"""How many rows of the log one transaction removes."""
MOST_OPERATIONS = 10_000
_LIFE = ("created_version", "dropped_version")
_WEEK_US = 7 * 24 * 3600 * 1_000_000


def forget_entries(
    connection: Connection,
    table: int,
    rows: Sequence[Values],
    *,
    is_tombstone: bool,
    clean: int,
    points: Numbers,
    now_us: int,
) -> tuple[int, int]:
    """Remove entries that no retained version holds, with their deltas and the key frames that name them.

    Returns how many of them still existed, and their bytes. ``points`` are the retained versions up to ``clean``, the
    last of them. Cost: the deltas up to ``clean`` of the bins that held the entries, and a page for each key frame
    written in place of removed ones.
    """
    of = tombstone if is_tombstone else segment
    # Read again: an erasure, or another expiry, may have changed them since they were found.
    rows = rows_by_id(connection, of.name, [row["id"] for row in rows])
    if not rows:
        return 0, 0
    row = connection.execute(select(lake_table).where(lake_table.c.id == table)).one()
    spec = spec_from_row(row)
    if row.dropped_version is not None:
        # Nobody reads the table at later points, where its dead entries have no DROP and still seem to be live.
        points = points[points < row.dropped_version]
    ids = np.array([row["id"] for row in rows], dtype=np.int64)
    touched = {
        one
        for row in rows
        for one in bins_of(spec.bin_grain, Interval(from_us(row["start_us"]), from_us(row["end_us"])))
    }
    for batch in batches(sorted(touched)):
        _forget_in_bins(connection, spec, batch, ids, clean=clean, points=points)
    files = [row["path"] for row in rows if row["path"]]
    if not is_tombstone:
        files += forget_summaries(connection, ids.tolist())
    dead = [{"dead": entry} for entry in ids.tolist()]
    for held in (of, tombstone_set) if is_tombstone else (of,):
        run_for_each(connection, delete(held).where(held.c.id == bindparam("dead")), dead)
    marks = [{"table_id": table, "path": path, "marked_us": now_us} for path in files]
    run_for_each(connection, garbage.insert(), marks)
    return len(rows), sum(row["bytes"] for row in rows)


def _forget_in_bins(
    connection: Connection, spec: TableSpec, bins: Sequence[int], ids: Numbers, *, clean: int, points: Numbers
) -> None:
    found = read_deltas(connection, spec, delta.c.bin.in_(bins), delta.c.version <= clean)
    is_dead = np.isin(found[:, 2], ids)
    kept = found[~is_dead]
    due = frames_by_point(kept, lambda _: points)
    pages = [page for point, lives in due.items() for page in pages_of(connection, spec, point, lives)]
    dead = [
        {"of_bin": one, "of_version": version, "of_entry": entry} for one, version, entry, *_ in found[is_dead].tolist()
    ]
    its = (delta.c.bin == bindparam("of_bin"), delta.c.version == bindparam("of_version"))
    gone = delete(delta).where(delta.c.table_id == spec.id, *its, delta.c.entry == bindparam("of_entry"))
    run_for_each(connection, gone, dead)
    connection.execute(
        delete(key_frame).where(
            key_frame.c.table_id == spec.id, key_frame.c.bin.in_(bins), key_frame.c.version <= clean
        )
    )
    run_for_each(connection, key_frame.insert(), pages)
    refresh_bins(connection, spec, bins)


def forget_commits(connection: Connection, clean: int, points: Numbers) -> int:
    """Remove log rows of versions below ``clean``, except those that readers of retained points need.

    Returns how many rows were removed, at most twice `MOST_COMMITS`; 0 when nothing is left to do.
    """
    gone = find_forgotten(connection, clean, points)[:MOST_COMMITS]
    its = (commit_table.c.version == bindparam("of_version"), commit_table.c.table_id == bindparam("of_table"))
    run_for_each(connection, delete(commit_table).where(*its), gone)
    # A txn's version stays known: the same pair again returns the commit that it made.
    bare = (
        commit_log.c.version < clean,
        ~exists().where(commit_table.c.version == commit_log.c.version),
        ~exists().where(tag.c.version == commit_log.c.version),
        ~exists().where(txn.c.version == commit_log.c.version),
    )
    versions = connection.execute(select(commit_log.c.version).where(*bare).limit(MOST_COMMITS)).scalars()
    empty = [{"of_version": version} for version in versions]
    run_for_each(connection, delete(commit_log).where(commit_log.c.version == bindparam("of_version")), empty)
    return len(gone) + len(empty)


def find_forgotten(connection: Connection, clean: int, points: Numbers) -> list[dict[str, int]]:
    """Log rows below ``clean``, by version and table, that no reader of a retained point needs."""
    rows = connection.execute(
        select(commit_table.c.version, commit_table.c.table_id, commit_table.c.operation)
        .where(commit_table.c.version <= clean)
        .order_by(commit_table.c.version)
    ).all()
    states = [(row.version, row.table_id) for row in rows if row.operation in STATES]
    # The drop of a table that an older tag shows may be gone from the log.
    drops = select(lake_table.c.dropped_version, lake_table.c.id).where(lake_table.c.dropped_version <= clean)
    versions, tables = zip(*states, *connection.execute(drops), strict=True) if states else ((), ())
    retained = newest_at(tables, versions, points)
    kept = {one for one, stays in zip(states, retained[: len(states)].tolist(), strict=True) if stays}
    tagged = set(connection.execute(select(tag.c.version)).scalars())
    return [
        {"of_version": row.version, "of_table": row.table_id}
        for row in rows
        if row.version < clean and row.version not in tagged and (row.version, row.table_id) not in kept
    ]


def find_dead_views(connection: Connection, clean: int, points: Numbers) -> list[str]:
    """Forms of views, by id, that no retained version has."""
    gone = select(lake_view).where(lake_view.c.dropped_version <= clean)
    rows = connection.execute(gone.order_by(lake_view.c.id)).all()
    made, dropped = (np.array([getattr(row, name) for row in rows], dtype=np.int64) for name in _LIFE)
    return [rows[place].id for place in np.flatnonzero(reached_by_none(made, dropped, points)).tolist()]


def forget_views(connection: Connection, clean: int, points: Numbers) -> int:
    """Remove forms of views that no retained version has; returns how many."""
    gone = [{"gone": one} for one in find_dead_views(connection, clean, points)]
    run_for_each(connection, delete(lake_view).where(lake_view.c.id == bindparam("gone")), gone)
    return len(gone)


def forget_marks(connection: Connection, clean: int, now_us: int) -> int:
    """Remove each ``txn`` of a version below ``clean`` that is older than its table's ``txn_retention``.

    The newest of each stream stays: it says how far the stream has read its sources.
    Returns how many were removed, at most `MOST_COMMITS` for a table. Cost: these, and the tables with such a limit.
    """
    limited = lake_table.c.definition.contains("txn_retention"), lake_table.c.dropped_version.is_(None)
    count = 0
    for row in connection.execute(select(lake_table).where(*limited)).all():
        spec = spec_from_row(row)
        age_seconds = Policy.of(spec.properties).txn_retention_seconds
        if age_seconds is None:
            continue
        until = min(clean - 1, version_at(connection, now_us - int(age_seconds * 1_000_000)) or 0)
        old = select(txn.c.app, txn.c.sequence).where(
            txn.c.table_id == spec.id, txn.c.version <= until, ~is_newest_of_stream()
        )
        marks = [{"of": app, "number": sequence} for app, sequence in connection.execute(old.limit(MOST_COMMITS))]
        its = txn.c.table_id == spec.id, txn.c.app == bindparam("of"), txn.c.sequence == bindparam("number")
        run_for_each(connection, delete(txn).where(*its), marks)
        count += len(marks)
    return count


def forget_operations(connection: Connection, clean: int, now_us: int) -> int:
    """Remove operations that ended long ago and that nothing refers to; returns how many, at most `MOST_OPERATIONS`."""
    ended = operation.c.state.in_(("committed", "collected")), operation.c.begun_us < now_us - _WEEK_US
    users = (segment, segment_summary, chunk_lock, updated_rows)
    used = [exists().where(of.c.operation == operation.c.number) for of in users]
    old = (
        select(operation.c.number)
        .where(*ended, func.coalesce(operation.c.version, 0) < clean, *(~one for one in used))
        .where(operation.c.number.not_in(select(tombstone.c.operation)))
        .limit(MOST_OPERATIONS)
    )
    numbers = [{"old": number} for number in connection.execute(old).scalars()]
    for of, its in ((upload, upload.c.operation), (operation, operation.c.number)):
        run_for_each(connection, delete(of).where(its == bindparam("old")), numbers)
    return len(numbers)


def forget_tables(connection: Connection, clean: int) -> int:
    """Remove dropped tables of which nothing else is left; returns how many.

    The newest table stays, dropped or not, so that its number is not given to another one. Cost: a few look-ups for
    each remaining dropped table, and a pass over the operations if one may be removed.
    """
    users = (commit_table, bin, delta, key_frame, garbage, segment, tombstone)
    used = [exists().where(of.c.table_id == lake_table.c.id) for of in users]
    works = exists().where(task.c.table_id == lake_table.c.id, task.c.state == "running")
    newest = select(func.max(lake_table.c.id)).scalar_subquery()
    bare = select(lake_table.c.id).where(
        lake_table.c.dropped_version < clean, lake_table.c.id < newest, ~works, *(~one for one in used)
    )
    gone = set(connection.execute(bare).scalars())
    if gone:
        gone.difference_update(connection.execute(select(operation.c.table_id).distinct()).scalars())
    numbers = [{"gone": one} for one in sorted(gone)]
    for of in (txn, upkeep, plan_count, lock_wait, task, table_schema, consumer):
        run_for_each(connection, delete(of).where(of.c.table_id == bindparam("gone")), numbers)
    run_for_each(connection, delete(lake_table).where(lake_table.c.id == bindparam("gone")), numbers)
    return len(numbers)
