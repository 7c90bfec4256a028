"""Taking dead entries and forgotten commits out of the catalog's tables; to be called under the head."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, bindparam, delete, exists, func, select

from lakehouse.catalog.frames import frame_of, note_frames
from lakehouse.catalog.log import version_at
from lakehouse.catalog.models import (
    bin,  # noqa: A004 - the word of the scheme
    chunk_lock,
    commit_log,
    commit_table,
    delta,
    garbage,
    key_frame,
    lake_table,
    lock_wait,
    operation,
    plan_count,
    rewritten,
    segment,
    segment_summary,
    tag,
    task,
    tombstone,
    tombstone_set,
    txn,
    upkeep,
)
from lakehouse.catalog.prepared import run_for_each
from lakehouse.catalog.rows import Values, spec_from_row
from lakehouse.catalog.state import StateReader, batches, rows_by_id
from lakehouse.catalog.summaries import forget_summaries
from lakehouse.core.bins import bins_of
from lakehouse.core.expire import Numbers, newest_at
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.operation import DEFINITIONS, Kind
from lakehouse.core.policy import Policy
from lakehouse.core.spec import TableSpec
from lakehouse.core.version import frame_due, replay
from lakehouse.errors import InternalError

MOST_COMMITS = 20_000
"""Rows of the log that one transaction forgets."""
MOST_OPERATIONS = 10_000
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
    """Forget entries that no retained version holds: their deltas, the key frames that name them, they themselves.

    Returns how many of them were still there, and their bytes.
    ``points`` are the retained versions up to ``clean``, the last of them. Cost: the deltas up to ``clean`` of the bins
    that held the entries, and a page for each key frame that is written in place of those that go.
    """
    of = tombstone if is_tombstone else segment
    # As they are now: an erasure, or another expiry, may have come since they were found.
    rows = rows_by_id(connection, of.name, [row["id"] for row in rows])
    if not rows:
        return 0, 0
    row = connection.execute(select(lake_table).where(lake_table.c.id == table)).one()
    spec = spec_from_row(row)
    if row.dropped_version is not None:
        # Nobody reads the table at later points, where what is dead with it has no DROP and still seems to be live.
        points = points[points < row.dropped_version]
    ids = np.array([row["id"] for row in rows], dtype=np.int64)
    touched = {
        one for row in rows for one in bins_of(spec.grain, Interval(from_us(row["start_us"]), from_us(row["end_us"])))
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
    pages = [page for point, lives in due.items() for page in _pages(connection, spec, point, lives)]
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
    tell_bins(connection, spec, bins)


def read_deltas(connection: Connection, spec: TableSpec, *where: ColumnElement[bool]) -> Numbers:
    """A table's deltas by bin and version: bin, version, entry, action, and 1 for those of tombstones."""
    columns = (delta.c.bin, delta.c.version, delta.c.entry, delta.c.action, delta.c.is_tombstone)
    query = select(*columns).where(delta.c.table_id == spec.id, *where).order_by(delta.c.bin, delta.c.version)
    rows = connection.execute(query).all()
    return np.array(list(map(tuple, rows)), dtype=np.int64).reshape(-1, len(columns))


def by_first(rows: Numbers) -> dict[int, Numbers]:
    """Sorted rows by their first column."""
    values, starts = np.unique(rows[:, 0], return_index=True)
    return dict(zip(values.tolist(), np.split(rows, starts[1:]), strict=True)) if len(rows) else {}


def frames_by_point(found: Numbers, points: Callable[[Numbers], Numbers]) -> dict[int, dict[int, int]]:
    """By point, of those that there are for a bin's deltas, the bins whose key frame is due, and how much it holds."""
    due: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for one, of_bin in by_first(found).items():
        for point, live in frames_due(of_bin, points(of_bin)):
            due[point][one] = live
    return due


def frames_due(kept: Numbers, points: Numbers) -> Iterable[tuple[int, int]]:
    """At which points of one bin's deltas, in order of versions, a key frame is due, and how much it will hold."""
    chain, start, is_framed = 0, 0, False
    for point in points.tolist():
        end = int(np.searchsorted(kept[:, 1], point, side="right"))
        chain += len(np.unique(kept[start:end, 1]))
        start = end
        if chain and frame_due(chain, is_framed=is_framed):
            chain, is_framed = 0, True
            yield point, len(replay([], kept[:end, 1], kept[:end, 3], kept[:end, 2]))


def insert_frames(connection: Connection, spec: TableSpec, point: int, lives: dict[int, int]) -> None:
    """Write key frames of bins at a point, where each is known to hold so many entries."""
    run_for_each(connection, key_frame.insert(), _pages(connection, spec, point, lives))


def _pages(connection: Connection, spec: TableSpec, point: int, lives: dict[int, int]) -> list[dict[str, Any]]:
    """Key frames of bins at a point, made before anything is taken out."""
    states = StateReader(0).read(connection, spec, point, [(one, one) for one in sorted(lives)])
    for number, live in lives.items():
        if len(states[number].ids) != live:
            raise InternalError(
                "an expiry would have changed a version that is kept; nothing was forgotten",
                table=spec.name,
                bin=number,
                version=point,
                expected=len(states[number].ids),
                found=live,
            )
    pages = []
    for state in states.values():
        entries, page = frame_of(state)
        pages.append(
            {"table_id": spec.id, "bin": state.bin, "version": state.version, "entries": entries, "page": page}
        )
    return pages


def tell_bins(connection: Connection, spec: TableSpec, bins: Sequence[int]) -> None:
    """Bring the rows of bins up to date; a bin of which nothing is left goes."""
    mine = (bin.c.table_id == spec.id, bin.c.bin.in_(bins))
    remains = exists().where(delta.c.table_id == bin.c.table_id, delta.c.bin == bin.c.bin)
    gone = list(connection.execute(select(bin.c.bin).where(*mine, ~remains)).scalars())
    if gone:
        for of in (key_frame, plan_count, bin):
            connection.execute(delete(of).where(of.c.table_id == spec.id, of.c.bin.in_(gone)))
    note_frames(connection, spec.id, bins)


def forget_commits(connection: Connection, clean: int, points: Numbers) -> int:
    """Forget what the log says of versions below ``clean``, but for those that a reader of a point is given.

    Returns how many rows went, at most twice `MOST_COMMITS`; 0 when there is nothing left to do.
    """
    gone = find_forgotten(connection, clean, points)[:MOST_COMMITS]
    its = (commit_table.c.version == bindparam("of_version"), commit_table.c.table_id == bindparam("of_table"))
    run_for_each(connection, delete(commit_table).where(*its), gone)
    # A txn's version stays known: the same pair again is told when it was committed.
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
    """Rows of the log, by version and table, below ``clean`` that no reader of a point is given."""
    rows = connection.execute(
        select(commit_table.c.version, commit_table.c.table_id, commit_table.c.operation)
        .where(commit_table.c.version <= clean)
        .order_by(commit_table.c.version)
    ).all()
    moves = {Kind.CREATE.value} | ({kind.value for kind in Kind} - {k.value for k in DEFINITIONS})
    told = [(row.version, row.table_id) for row in rows if row.operation in moves]  # a rename changes no row
    # The log may have forgotten the drop of a table that an older tag shows.
    drops = select(lake_table.c.dropped_version, lake_table.c.id).where(lake_table.c.dropped_version <= clean)
    versions, tables = zip(*told, *connection.execute(drops), strict=True) if told else ((), ())
    retained = newest_at(tables, versions, points)
    kept = {one for one, stays in zip(told, retained[: len(told)].tolist(), strict=True) if stays}
    tagged = set(connection.execute(select(tag.c.version)).scalars())
    return [
        {"of_version": row.version, "of_table": row.table_id}
        for row in rows
        if row.version < clean and row.version not in tagged and (row.version, row.table_id) not in kept
    ]


def forget_marks(connection: Connection, clean: int, now_us: int) -> int:
    """Forget each ``txn`` of a version below ``clean`` that is older than its table's ``txn_retention``.

    Returns how many went, at most `MOST_COMMITS` of a table. Cost: these, and the tables that have such a limit.
    """
    limited = lake_table.c.definition.contains("txn_retention"), lake_table.c.dropped_version.is_(None)
    count = 0
    for row in connection.execute(select(lake_table).where(*limited)).all():
        spec = spec_from_row(row)
        age_seconds = Policy.of(spec.properties).txn_retention_seconds
        if age_seconds is None:
            continue
        until = min(clean - 1, version_at(connection, now_us - int(age_seconds * 1_000_000)) or 0)
        old = select(txn.c.app, txn.c.sequence).where(txn.c.table_id == spec.id, txn.c.version <= until)
        marks = [{"of": app, "number": sequence} for app, sequence in connection.execute(old.limit(MOST_COMMITS))]
        its = txn.c.table_id == spec.id, txn.c.app == bindparam("of"), txn.c.sequence == bindparam("number")
        run_for_each(connection, delete(txn).where(*its), marks)
        count += len(marks)
    return count


def forget_operations(connection: Connection, clean: int, now_us: int) -> int:
    """Forget operations that ended long ago and that nothing refers to any more: so many, at most `MOST_OPERATIONS`."""
    ended = operation.c.state.in_(("committed", "collected")), operation.c.begun_us < now_us - _WEEK_US
    users = (segment, segment_summary, chunk_lock, rewritten)
    used = [exists().where(of.c.operation == operation.c.number) for of in users]
    old = (
        select(operation.c.number)
        .where(*ended, func.coalesce(operation.c.version, 0) < clean, *(~one for one in used))
        .where(operation.c.number.not_in(select(tombstone.c.operation)))
        .limit(MOST_OPERATIONS)
    )
    numbers = [{"old": number} for number in connection.execute(old).scalars()]
    run_for_each(connection, delete(operation).where(operation.c.number == bindparam("old")), numbers)
    return len(numbers)


def forget_tables(connection: Connection, clean: int) -> int:
    """Forget tables that were dropped and of which nothing else is left; how many.

    The newest table stays, dropped or not: its number must not be given to another one. Cost: a few seeks for each
    dropped table that is still there, and a pass over the operations if one may go.
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
    for of in (txn, upkeep, plan_count, lock_wait, task):
        run_for_each(connection, delete(of).where(of.c.table_id == bindparam("gone")), numbers)
    run_for_each(connection, delete(lake_table).where(lake_table.c.id == bindparam("gone")), numbers)
    return len(numbers)
