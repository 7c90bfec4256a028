"""Expiry: removes versions, and the segments and tombstones that only they reached.

The horizon is moved first, in one transaction under the head, and from then on decides what can be read. What that
makes unreachable is removed in batches, each a transaction that leaves every retained version readable. Log rows go
first, so a version that lost something is not in the log. An interrupted expiry is finished by the next one, and
`count_forgotten` counts what that will find. Storage is not touched: files of expired segments become rows of
`garbage`, to be collected after a grace.

*Dead* entries were dropped at or before every retained version that is not older than they are. Removing all their
deltas does not change the state of any retained version, because none holds them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Connection, exists, func, select, update

from lakehouse.catalog.forget.entries import (
    find_dead_views,
    find_forgotten,
    forget_commits,
    forget_entries,
    forget_marks,
    forget_operations,
    forget_tables,
    forget_views,
)
from lakehouse.catalog.locks import locks
from lakehouse.catalog.locks.operations import end_operations
from lakehouse.catalog.state.bins import rows_by_id
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.models import (
    commit_log,
    delta,
    lake,
    lake_table,
    operation,
    segment,
    tag,
    tombstone,
)
from lakehouse.catalog.store.rows import Values
from lakehouse.catalog.tasks import plan_counts, serving
from lakehouse.catalog.versions import consumers, pins
from lakehouse.catalog.versions.horizon import hold_history
from lakehouse.catalog.versions.log import version_at
from lakehouse.core.expire import Expired, Numbers, RetentionRequest, reached_by_none
from lakehouse.core.operation import NEED_NO_BASE, RESERVED
from lakehouse.faults import reach

MOST_ENTRIES = 1_000
"""How many segments and tombstones one transaction removes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``horizon``: versions below it expire. ``clean``: dead entries up to it are removed; a pin may hold it back.

    ``points`` are the versions up to ``clean`` whose states are retained, ``held`` is what holds the horizon back.
    """

    horizon: int
    clean: int
    points: Numbers
    versions: int
    held: str = ""


@dataclass(frozen=True, slots=True)
class DeadEntries:
    """Ids, bounds and sizes of dead segments or tombstones of one table."""

    table: int
    rows: list[Values]
    is_tombstone: bool

    @property
    def bytes(self) -> int:
        """Bytes of their files."""
        return sum(row["bytes"] for row in self.rows)


def expire(database: Database, request: RetentionRequest, *, dry_run: bool) -> Expired:
    """Expire what may be expired; with ``dry_run`` only count it."""
    if dry_run:
        return database.read(lambda connection: _counted(connection, request, database.now_us(connection)))
    limits = database.run(lambda connection: _record(connection, request, database.now_us(connection)))
    reach("expire.recorded")
    _until_none(database, lambda connection: forget_marks(connection, limits.clean, database.now_us(connection)))
    _until_none(database, lambda connection: forget_commits(connection, limits.clean, limits.points))
    _until_none(database, lambda connection: forget_views(connection, limits.clean, limits.points))
    segments = tombstones = size = 0
    dead = database.read(lambda connection: list(find_dead(connection, limits)))
    for entries in dead:
        for first in range(0, len(entries.rows), MOST_ENTRIES):
            count, freed = _forget(database, entries, entries.rows[first : first + MOST_ENTRIES], limits)
            reach("expire.forgotten")
            segments += 0 if entries.is_tombstone else count
            tombstones += count if entries.is_tombstone else 0
            size += freed
    _until_none(database, lambda connection: forget_operations(connection, limits.clean, database.now_us(connection)))
    _until_none(database, lambda connection: forget_tables(connection, limits.clean))
    return Expired(limits.versions, segments, tombstones, size, limits.horizon, limits.held)


def _until_none(database: Database, forget: Callable[[Connection], int]) -> None:
    """Remove batch by batch, each a transaction, until nothing is left."""
    while database.run(forget):
        reach("expire.forgotten")


def _forget(database: Database, entries: DeadEntries, rows: list[Values], limits: Limits) -> tuple[int, int]:
    """How many were removed, and their bytes; another expiry may have been faster."""

    def work(connection: Connection) -> tuple[int, int]:
        hold_history(connection)
        return forget_entries(
            connection,
            entries.table,
            rows,
            is_tombstone=entries.is_tombstone,
            clean=limits.clean,
            points=limits.points,
            now_us=database.now_us(connection),
        )

    return database.run(work)


def _record(connection: Connection, request: RetentionRequest, now_us: int) -> Limits:
    """Move the horizon; end operations past their lease that need a version which this expires."""
    hold_history(connection)
    limits = _limits(connection, request, now_us)
    connection.execute(update(lake).where(lake.c.horizon < limits.horizon).values(horizon=limits.horizon))
    pins.remove_dead(connection, now_us)
    locks.remove_dead(connection, now_us)
    plan_counts.remove_dead(connection, now_us)
    late = (
        select(operation.c.number)
        .where(operation.c.state == "running", operation.c.lease_until_us < now_us)
        .where(operation.c.kind.not_in([str(kind) for kind in NEED_NO_BASE]), operation.c.base_version < limits.clean)
    )
    ended = list(connection.execute(late).scalars())
    end_operations(connection, ended)
    return limits


def _limits(connection: Connection, request: RetentionRequest, now_us: int) -> Limits:
    row = connection.execute(select(lake.c.head, lake.c.horizon)).one()
    held = _held(connection, now_us)
    asked = min([row.head, *_asked(connection, request, now_us, row.horizon)])
    holder = min(held, key=held.__getitem__, default=None)
    least = asked if holder is None else min(asked, held[holder])
    # A committed version, so that the newest one at any later time is known.
    newest: int | None = connection.execute(
        select(func.max(commit_log.c.version)).where(commit_log.c.version <= least)
    ).scalar()
    horizon = max(row.horizon, newest or 0)
    gone = (commit_log.c.version >= row.horizon, commit_log.c.version < horizon)
    untagged = commit_log.c.version.not_in(select(tag.c.version))
    versions: int = connection.execute(select(func.count()).select_from(commit_log).where(*gone, untagged)).scalar_one()
    limits = _limits_at(connection, horizon, held, versions)
    return replace(limits, held=holder) if holder is not None and least < asked else limits


def _limits_at(connection: Connection, horizon: int, held: Mapping[str, int], versions: int) -> Limits:
    clean = min([horizon, *held.values()])
    tagged = connection.execute(select(tag.c.version).where(tag.c.version < clean).distinct()).scalars()
    return Limits(horizon, clean, np.array(sorted({*tagged, clean}), dtype=np.int64), versions)


def _held(connection: Connection, now_us: int) -> dict[str, int]:
    """The oldest versions that a running operation, a reader, a consumer and a query node need, if there are such."""
    living = (operation.c.state == "running", operation.c.kind != RESERVED, operation.c.lease_until_us >= now_us)
    base: int | None = connection.execute(select(func.min(operation.c.base_version)).where(*living)).scalar()
    held = {
        "an operation that runs": base,
        "a reader": pins.oldest(connection, now_us),
        "a consumer": consumers.oldest(connection, now_us),
        "a query node": serving.oldest(connection, now_us),
    }
    return {what: version for what, version in held.items() if version is not None}


def count_forgotten(connection: Connection, now_us: int) -> int:
    """Segments, tombstones, views and log rows that no version reaches and any next expiry removes.

    There are some after a tag was removed, or while an expiry runs or after one was killed.
    """
    horizon: int = connection.execute(select(lake.c.horizon)).scalar_one()
    limits = _limits_at(connection, horizon, _held(connection, now_us), 0)
    entries = sum(len(one.rows) for one in find_dead(connection, limits))
    views = len(find_dead_views(connection, limits.clean, limits.points))
    return entries + views + len(find_forgotten(connection, limits.clean, limits.points))


def _asked(connection: Connection, request: RetentionRequest, now_us: int, horizon: int) -> Iterator[int]:
    """Up to which version each part of a request expires."""
    before_us = request.before_us if request.age_seconds is None else now_us - int(request.age_seconds * 1_000_000)
    if before_us is not None:
        yield version_at(connection, before_us) or 0
    if request.keep_last is not None:
        newest = select(commit_log.c.version).where(commit_log.c.version >= horizon)
        nth = newest.order_by(commit_log.c.version.desc()).offset(request.keep_last - 1).limit(1)
        yield connection.execute(nth).scalar() or 0


def _counted(connection: Connection, request: RetentionRequest, now_us: int) -> Expired:
    limits = _limits(connection, request, now_us)
    dead = list(find_dead(connection, limits))
    segments = sum(len(one.rows) for one in dead if not one.is_tombstone)
    tombstones = sum(len(one.rows) for one in dead if one.is_tombstone)
    return Expired(limits.versions, segments, tombstones, sum(one.bytes for one in dead), limits.horizon, limits.held)


def find_dead(connection: Connection, limits: Limits) -> Iterator[DeadEntries]:
    """Entries that no retained version holds, by table. Cost: what was dropped up to ``clean`` and still exists."""
    has_entries = exists().where(delta.c.table_id == lake_table.c.id)
    dropped_tables: dict[int, int] = {
        row.id: row.dropped_version
        for row in connection.execute(
            select(lake_table.c.id, lake_table.c.dropped_version).where(
                lake_table.c.dropped_version <= limits.clean, has_entries
            )
        )
    }
    for of in (segment, tombstone):
        columns = [of.c[name] for name in _COLUMNS]
        gone = select(*columns).where(of.c.dropped_version <= limits.clean)
        if dropped_tables:
            gone = gone.where(of.c.table_id.not_in(list(dropped_tables)))
        yield from _dead([dict(row) for row in connection.execute(gone).mappings()], limits, of is tombstone, {})
    for table in dropped_tables:
        for of in (segment, tombstone):
            held = select(delta.c.entry).where(delta.c.table_id == table, delta.c.is_tombstone == (of is tombstone))
            ids = set(connection.execute(held.distinct()).scalars())
            yield from _dead(rows_by_id(connection, of.name, ids), limits, of is tombstone, dropped_tables)


def _dead(rows: Sequence[Values], limits: Limits, is_tombstone: bool, ends: Mapping[int, int]) -> Iterator[DeadEntries]:
    if not rows:
        return
    added = np.array([row["added_version"] for row in rows], dtype=np.int64)
    dropped = np.array([_end(row, ends) for row in rows], dtype=np.int64)
    by_table: defaultdict[int, list[Values]] = defaultdict(list)
    for place in np.flatnonzero(reached_by_none(added, dropped, limits.points)).tolist():
        by_table[rows[place]["table_id"]].append(rows[place])
    for table, found in sorted(by_table.items()):
        yield DeadEntries(table, sorted(found, key=lambda row: int(row["id"])), is_tombstone)


def _end(row: Values, ends: Mapping[int, int]) -> int:
    """The version that dropped an entry, or its table."""
    known = (row["dropped_version"], ends.get(row["table_id"]))
    return min(one for one in known if one is not None)


_COLUMNS = ("id", "table_id", "start_us", "end_us", "bytes", "path", "added_version", "dropped_version")
