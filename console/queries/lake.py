"""Queries of the Lake page: every table with its size, growth and health, and current activity."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from queries.words import age_text, framed, size_text

GROWTH_DAYS = 14
MOST_TASKS = 10_000
MICROSECOND = timedelta(microseconds=1)


def list_tables(lake: Any) -> pd.DataFrame:
    """One row for each table. *rows stored* includes hidden rows; *rows* is given if no tombstones hide any.

    *debt* is the work of the table service: waiting tasks, and how long the oldest of them has waited.
    """
    running: dict[str, int] = {}
    for one in lake.operations():
        running[one.table] = running.get(one.table, 0) + 1
    waiting: dict[str, list[datetime]] = {}
    for task in lake.tasks(state="waiting", limit=MOST_TASKS):
        waiting.setdefault(task.table or "", []).append(task.created_at)
    now = datetime.now(UTC)
    return framed(
        (
            {
                "table": one.name,
                "rows": None if one.tombstones and one.rows else one.rows,
                "rows stored": one.rows,
                "size": one.bytes,
                "segments": one.segments,
                "tombstones": one.tombstones,
                "growth": list(one.rows_added),
                "tasks waiting": len(waiting.get(one.name, [])),
                "oldest": _age(now, waiting.get(one.name, [])),
                "running": running.get(one.name, 0),
                "head": one.version,
                "versions": one.versions,
                "first row": one.start,
                "last row": None if one.end is None else one.end - MICROSECOND,
            }
            for one in lake.catalog.overview(GROWTH_DAYS)
        ),
        "first row",
        "last row",
    )


def cache_text(lake: Any) -> str:
    """What this machine keeps of an object store's files, and how often the console found them here; "" of a folder."""
    cache = lake.session.warehouse.cache
    if cache is None:
        return ""
    held = cache.usage()
    size, limit = size_text(held.bytes), size_text(cache.limit_bytes)
    return (
        f"cache on this machine: {held.files:,} copies, {size} of at most {limit}, in {cache.root}; "
        f"the console found {cache.hits:,} there and fetched {cache.misses:,}"
    )


def _age(now: datetime, since: list[datetime]) -> str:
    return age_text((now - min(since)).total_seconds()) if since else ""
