"""The history of an interval: the versions that added or dropped something there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Select, and_, case, exists, func, or_, select

from lakehouse.catalog.state.bins import batches, touching
from lakehouse.catalog.store.models import commit_log, delta, lake, operation, segment, tag, tombstone
from lakehouse.core.history import Origin, Touch
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.listing import Listing
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.version import ADD, DROP


def _changes(spec: TableSpec, interval: Interval) -> Select[Any]:
    """Each ADD and DROP of entries that overlap an interval, once for each entry whatever the number of its bins.

    An outer join and not a UNION: over one, SQLite 3.53 ignores the requested order of groups.
    """
    in_bins = or_(*(delta.c.bin.between(first, last) for first, last in touching(spec, interval)))
    names = ("start_us", "end_us", "added_version", "dropped_version")
    start, end, added, dropped = (func.coalesce(segment.c[name], tombstone.c[name]) for name in names)
    # Leave out what an expiry may forget or is about to.
    horizon = select(lake.c.horizon).scalar_subquery()
    is_tagged = exists().where(tag.c.version >= added, tag.c.version < dropped)
    return (
        select(delta.c.version, delta.c.action, delta.c.is_tombstone, delta.c.entry, segment.c.rows)
        .outerjoin(segment, segment.c.id == delta.c.entry)
        .outerjoin(tombstone, tombstone.c.id == delta.c.entry)
        .where(delta.c.table_id == spec.id, in_bins, start < interval.end_us, end > interval.start_us)
        .where(or_(dropped.is_(None), dropped > horizon, is_tagged))
        .distinct()
    )


def read_origins(connection: Connection, spec: TableSpec, ids: Iterable[int]) -> dict[int, Origin]:
    """The versions that added and dropped segments and tombstones, by id. Cost: one look-up each."""
    found: dict[int, Origin] = {}
    for batch in batches(ids):
        for entry in (segment, tombstone):
            query = (
                select(
                    entry.c.id,
                    entry.c.added_version,
                    commit_log.c.operation,
                    commit_log.c.committed_us,
                    entry.c.dropped_version,
                )
                .join(commit_log, commit_log.c.version == entry.c.added_version)
                .where(entry.c.id.in_(batch), entry.c.table_id == spec.id)
            )
            for row in connection.execute(query):
                found[row.id] = Origin(
                    row.id, row.added_version, row.operation, from_us(row.committed_us), row.dropped_version
                )
    return found


def read_bytes_written(connection: Connection, versions: Iterable[int], table: TableId | None) -> dict[int, int]:
    """Bytes of segments that versions wrote, of one table or all, as far as they are still in the catalog."""
    found: dict[int, int] = {}
    for batch in batches(versions):
        query = (
            select(operation.c.version, func.sum(segment.c.bytes))
            .join(segment, segment.c.operation == operation.c.number)
            .where(operation.c.version.in_(batch))
            .group_by(operation.c.version)
        )
        if table is not None:
            query = query.where(segment.c.table_id == table)
        found |= {version: int(written) for version, written in connection.execute(query)}
    return found


def versions_touching(spec: TableSpec, interval: Interval) -> Select[Any]:
    """The versions that added or dropped something that overlaps an interval."""
    return select(_changes(spec, interval).subquery().c.version)


def read_history(connection: Connection, spec: TableSpec, interval: Interval, limit: int | None) -> Listing[Touch]:
    """The history of an interval, newest first. Cost: the deltas of the bins that may hold anything overlapping it."""
    changes = _changes(spec, interval).subquery()

    def total(action: int, is_tombstone: bool, what: Any) -> Any:
        fits = and_(changes.c.action == action, changes.c.is_tombstone.is_(is_tombstone))
        return func.sum(case((fits, what), else_=0))

    counts = [total(action, is_tombstone, 1) for is_tombstone in (False, True) for action in (ADD, DROP)]
    rows = [total(action, False, changes.c.rows) for action in (ADD, DROP)]
    newest = select(changes.c.version, *counts, *rows).group_by(changes.c.version)
    newest = newest.order_by(changes.c.version.desc()).limit(limit)
    return Listing(Touch(*(int(value) for value in row)) for row in connection.execute(newest))
