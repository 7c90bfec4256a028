"""A summary of all tables, with totals computed by the database, so that no segment is read by itself."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from lakehouse.catalog.store.models import commit_log, commit_table, lake_table, segment, tombstone
from lakehouse.catalog.store.rows import spec_from_row
from lakehouse.catalog.versions.horizon import is_readable
from lakehouse.catalog.versions.log import on_rows
from lakehouse.core.beside import is_beside
from lakehouse.core.interval import from_us
from lakehouse.core.listing import Listing
from lakehouse.core.overview import TableSummary

DAY_US = 86_400_000_000


def read_overview(connection: Connection, *, now_us: int, days: int) -> Listing[TableSummary]:
    """One summary for each table of users, by name.

    Cost: one pass over the live segments, and over the versions of some days.
    """
    live = (
        select(
            segment.c.table_id,
            func.count(),
            func.sum(segment.c.rows),
            func.sum(segment.c.bytes),
            func.min(segment.c.start_us),
            func.max(segment.c.end_us),
        )
        .where(segment.c.dropped_version.is_(None))
        .group_by(segment.c.table_id)
    )
    stored = {row[0]: row[1:] for row in connection.execute(live)}
    masks = select(tombstone.c.table_id, func.count()).where(tombstone.c.dropped_version.is_(None))
    tombstones = {row[0]: row[1] for row in connection.execute(masks.group_by(tombstone.c.table_id))}
    newest = select(commit_table.c.table_id, func.max(commit_table.c.version), func.count()).where(
        on_rows, is_readable(commit_table.c.table_id)
    )
    versions = {row[0]: row[1:] for row in connection.execute(newest.group_by(commit_table.c.table_id))}
    growth = _growth(connection, now_us, days)
    found = []
    for row in connection.execute(
        select(lake_table).where(lake_table.c.dropped_version.is_(None)).order_by(lake_table.c.name)
    ):
        if is_beside(row.name):
            continue
        segments, rows, size, start, end = stored.get(row.id, (0, 0, 0, None, None))
        if not spec_from_row(row).time:
            start = end = None
        version, count = versions.get(row.id, (row.created_version, 0))
        found.append(
            TableSummary(
                name=row.name,
                version=version,
                versions=count,
                segments=segments,
                rows=int(rows),
                bytes=int(size),
                tombstones=tombstones.get(row.id, 0),
                start=None if start is None else from_us(start),
                end=None if end is None else from_us(end),
                rows_added=growth.get(row.id, (0,) * days),
            )
        )
    return Listing(found)


def _growth(connection: Connection, now_us: int, days: int) -> dict[int, tuple[int, ...]]:
    """Rows that commits added and dropped on each of the last days, today last, by table."""
    today = now_us // DAY_US
    first = today - days + 1
    query = (
        select(
            commit_table.c.table_id,
            (commit_log.c.committed_us - commit_log.c.committed_us % DAY_US).label("day"),
            func.sum(commit_table.c.rows_added - commit_table.c.rows_deleted),
        )
        .join(commit_log, commit_log.c.version == commit_table.c.version)
        .where(commit_log.c.committed_us >= first * DAY_US)
        .group_by(commit_table.c.table_id, "day")
    )
    found: dict[int, list[int]] = {}
    for table, day_us, rows in connection.execute(query):
        found.setdefault(table, [0] * days)[min(days - 1, int(day_us) // DAY_US - first)] = int(rows)
    return {table: tuple(rows) for table, rows in found.items()}
