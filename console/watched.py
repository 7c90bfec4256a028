"""Two addresses for monitoring: whether the console and its catalog answer, and figures of the lake.

Figures name no table and no value, but topics of streams, and only this machine gets them.
"""

import logging
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

import lakehouse
from lakehouse.actions.reach import is_loopback
from lakehouse.errors import LakehouseError, coded
from lakehouse.streaming.topics.figures import CONTENT_TYPE, exposition
from senders import is_forwarded

logger = logging.getLogger("lakehouse.console")
_MOST_TASKS = 10_000


@cache
def _lake() -> Any:
    return lakehouse.connect()


def close() -> None:
    """Close the lake, at the end."""
    if _lake.cache_info().currsize:
        _lake().close()
        _lake.cache_clear()


def health(_: Request) -> Response:
    """200 if the catalog answers, 503 if it does not."""
    try:
        _lake().head  # noqa: B018 - asks the catalog
    except LakehouseError as error:
        logger.warning("the catalog does not answer: %s", coded(error))
        return PlainTextResponse("the catalog does not answer\n", 503)
    return PlainTextResponse("ok\n")


def metrics(request: Request) -> Response:
    """Figures in Prometheus's text format; 404 for other machines, also for those behind a proxy."""
    client = request.client.host if request.client else ""
    if not is_loopback(client) or is_forwarded(request.headers):
        return PlainTextResponse("not found\n", 404)
    try:
        found, topics = figures(_lake()), _lake().topics()
    except LakehouseError as error:
        logger.warning("the catalog does not answer: %s", coded(error))
        return PlainTextResponse("the catalog does not answer\n", 503)
    lines = (
        f"# HELP {name} {meaning}\n# TYPE {name} gauge\n{name} {value}\n" for name, (meaning, value) in found.items()
    )
    return PlainTextResponse("".join(lines) + exposition(topics, with_tables=False), media_type=CONTENT_TYPE)


def figures(lake: Any) -> dict[str, tuple[str, float]]:
    """Figures by name, each with what it means. Cost: a few small reads of the catalog, whatever the lake's size."""
    activity, now = lake.activity(), lake.catalog.now()
    waiting = lake.tasks(state="waiting", limit=_MOST_TASKS)
    oldest = min((one.created_at for one in waiting), default=now)
    dead = sum(one.lease_seconds < 0 for one in activity.operations)
    return {
        "lakehouse_head_version": ("Newest version of the lake.", lake.head),
        "lakehouse_tables": ("Tables of the lake.", len(lake.tables())),
        "lakehouse_operations_running": ("Operations between begin and commit.", len(activity.operations)),
        "lakehouse_operations_expired": ("Of those, with an expired lease.", dead),
        "lakehouse_locks": ("Ranges of chunks that are locked.", len(activity.locks)),
        "lakehouse_lock_waits": ("Operations that wait for a lock.", len(activity.waits)),
        "lakehouse_tasks_waiting": ("Maintenance tasks that wait.", len(waiting)),
        "lakehouse_tasks_running": ("Maintenance tasks that run.", len(lake.tasks(state="running"))),
        "lakehouse_tasks_oldest_seconds": ("Age of the oldest waiting task.", (now - oldest).total_seconds()),
    }
