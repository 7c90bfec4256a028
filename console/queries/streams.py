"""Queries of the Streams page: topics as their processes reported them, and consumers of change feeds."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

import links
from lakehouse.core.topic import Health, Topic
from queries.words import age_text
from shown import shown

MOST = 500
"""The most topics, or consumers, that are listed."""
_SORTED = (Health.FAILED, Health.STALLED, Health.WELL, Health.ENDED)


@dataclass(frozen=True, slots=True)
class Streams:
    """What the page shows: a row for each topic and consumer, figures, and why topics make no progress."""

    topics: pd.DataFrame
    consumers: pd.DataFrame
    troubles: list[tuple[str, str]]
    running: int
    stalled: int
    rows_per_second: float


def streams(lake: Any) -> Streams:
    """All topics, those in trouble first, and all consumers. Cost: two small reads of the catalog."""
    topics = sorted(lake.topics(), key=lambda one: (_SORTED.index(one.health()), one.name))
    found = [(one, one.health()) for one in topics]
    return Streams(
        pd.DataFrame(_topic(one, health) for one, health in found[:MOST]),
        pd.DataFrame(_consumer(one) for one in lake.consumers()[:MOST]),
        [(shown(one.name, 100), shown(why, 500)) for one in topics[:MOST] if (why := one.stall()) is not None],
        sum(one.state == "running" for one in topics),
        sum(health in (Health.STALLED, Health.FAILED) for _, health in found),
        sum(one.progress.rows_per_second for one, health in found if health is Health.WELL),
    )


def _topic(one: Topic, health: Health) -> dict[str, Any]:
    told = one.progress
    version = None if told.version is None else links.page("versions", table=told.table, version=told.version)
    return {
        "topic": shown(one.name),
        "health": health.value,
        "table": shown(told.table),
        "rows": told.rows,
        "rows a second": told.rows_per_second,
        "lag": None if told.lag is None else f"{told.lag:,} {told.lag_unit or ''}".strip(),
        "last batch": told.batch,
        "ended": one.at(told.batch_ago),
        "made": version,
        "restarts": told.restarts,
        "last error": shown(told.error or "", 300),
        "failed": one.at(told.error_ago),
        "state": one.state.value,
        "source": shown(told.source, 200),
        "mode": told.mode,
        "took s": told.batch_seconds,
        "reported": f"{age_text(one.silent_seconds)} ago",
        "process": shown(one.process),
    }


def _consumer(one: Any) -> dict[str, Any]:
    return {
        "consumer": shown(one.name),
        "table": shown(one.table),
        "read to version": one.version,
        "versions to read": one.lag,
        "until": one.expires_at,
    }
