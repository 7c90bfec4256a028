"""Queries of the Service page: the queue, what runs, what was done, and its results."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

import links
from lakehouse.core.task import Gain, Task, TaskState
from queries.words import age_text, span_text
from shown import shown

MOST = 200
"""The most tasks of one state that are listed."""
ENDED = (TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED)


def queue(lake: Any, table: str | None) -> pd.DataFrame:
    """Waiting tasks, best first: why, their inputs, and what a scan would gain."""
    return pd.DataFrame(_waiting(one) for one in lake.tasks(table=table, state=TaskState.WAITING, limit=MOST))


def dry_run(lake: Any, table: str | None) -> pd.DataFrame:
    """What a round with a new plan would do now; nothing is written."""
    found = pd.DataFrame(_waiting(one) for one in lake.maintain(table=table, dry_run=True).tasks)
    return found.drop(columns=["task", "attempts", "not before"], errors="ignore")


def running(lake: Any, table: str | None) -> pd.DataFrame:
    """Running tasks, with the rest of their claims."""
    now = lake.catalog.now()
    return pd.DataFrame(
        {
            **_facts(one),
            "for": age_text((now - one.started_at).total_seconds()) if one.started_at else "",
            "claim left": age_text(max(0.0, (one.lease_until - now).total_seconds())) if one.lease_until else "",
            "cause": shown(one.cause),
            "interval": _interval(one),
            "attempts": one.attempts,
        }
        for one in lake.tasks(table=table, state=TaskState.RUNNING, limit=MOST)
    )


def history(lake: Any, table: str | None, *, plans: bool) -> pd.DataFrame:
    """Ended tasks, latest first, with predicted and actual gain of a scan."""
    ended = [one for state in ENDED for one in lake.tasks(table=table, state=state, limit=2 * MOST)]
    ended = [one for one in ended if one.ended_at is not None and (plans or one.kind != "plan")]
    ended.sort(key=lambda one: (one.ended_at, one.id), reverse=True)
    return pd.DataFrame(_ended(one) for one in ended[:MOST])


def amplification(lake: Any, tables: Iterable[str]) -> pd.DataFrame:
    """For each table the bytes that users wrote and that maintenance rewrote."""
    found = {name: lake.table(name).amplification() for name in tables}
    return pd.DataFrame(
        {"table": name, "written": one.appended_bytes, "rewritten": one.rewritten_bytes, "ratio": one.ratio}
        for name, one in found.items()
    )


def policy(table: Any) -> pd.DataFrame:
    """A table's policy: each property with its value, and whether it is the table's own or a default."""
    own = table.properties
    return pd.DataFrame(
        {"property": shown(name), "value": shown(value), "set": name in own}
        for name, value in table.policy.described().items()
    )


def _facts(one: Task) -> dict[str, Any]:
    return {"task": one.id, "kind": one.kind.value, "table": one.table or "the lake"}


def _interval(one: Task) -> str:
    return "" if one.interval is None else span_text(one.interval)


def _waiting(one: Task) -> dict[str, Any]:
    return {
        **_facts(one),
        "score": one.score,
        "ms a scan": one.predicted.cost_ms,
        "reads": one.budget_bytes,
        "cause": shown(one.cause),
        "interval": _interval(one),
        "segments": one.segments,
        **_gain(one.predicted),
        "by": one.worker.value,
        "attempts": one.attempts,
        "last error": shown(one.error or ""),
        "not before": one.not_before,
    }


def _ended(one: Task) -> dict[str, Any]:
    took = (one.ended_at - one.started_at).total_seconds() if one.started_at and one.ended_at else None
    return {
        **_facts(one),
        "state": one.state.value,
        "ended": one.ended_at,
        "took s": took,
        "predicted ms": one.predicted.cost_ms,
        "gained ms": None if one.actual is None else one.actual.cost_ms,
        "made": None if one.version is None else links.page("versions", table=one.table, version=one.version),
        "cause": shown(one.cause),
        "interval": _interval(one),
        "read": one.budget_bytes,
        **_gain(one.actual or Gain()),
        "error": shown(one.error or ""),
    }


def _gain(gain: Gain) -> dict[str, int]:
    return {"files less": gain.files, "bytes less": gain.bytes, "rows not masked": gain.masked_rows}
