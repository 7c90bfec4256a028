"""Queries of the Locks and operations page: what runs, what it holds, and who waits for it."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from lakehouse.core.activity import Activity
from lakehouse.core.keys import KeyScope
from lakehouse.core.operation import Priority
from queries.words import age_text, text_of
from shown import shown


@dataclass(frozen=True, slots=True)
class GoingsOn:
    """Frames of the page: one row for each operation, lock, and place in the queue."""

    operations: pd.DataFrame
    locks: pd.DataFrame
    waits: pd.DataFrame


def goings_on(lake: Any) -> GoingsOn:
    """All current activity, of all tables, in one read."""
    activity: Activity = lake.activity()
    return GoingsOn(
        operations=pd.DataFrame(
            {
                "operation": one.operation,
                "table": one.table,
                "kind": one.kind,
                "begun": one.begun_at,
                "age": age_text(one.age_seconds),
                "lease left": lease_text(one.lease_seconds),
                "locks": one.locks,
                "reads at version": one.base_version,
            }
            for one in activity.operations
        ),
        locks=pd.DataFrame(
            {
                **_cell(one),
                "held by": one.operation,
                "kind": one.kind,
                "priority": priority_text(one.priority),
                "lease left": lease_text(one.lease_seconds),
                "waiting": one.waiting,
                "token": one.token,
            }
            for one in activity.locks
        ),
        waits=pd.DataFrame(
            {
                "place": number,
                **_cell(one),
                "wanted by": one.operation,
                "kind": one.kind,
                "priority": priority_text(one.priority),
                "waits for": ", ".join(one.behind),
            }
            for number, one in enumerate(activity.waits, 1)
        ),
    )


def _cell(one: Any) -> dict[str, Any]:
    return {
        "table": one.table,
        "from": text_of(one.interval.start),
        "until": text_of(one.interval.end),
        "keys": "all" if one.keys is None else keys_text(one.keys),
    }


def keys_text(keys: KeyScope) -> str:
    """A key scope: each column with its values."""
    return shown("; ".join(f"{column}: {', '.join(map(repr, values))}" for column, values in keys.items()))


def lease_text(seconds: float) -> str:
    """The rest of a lease; once it has expired, others may take its locks."""
    return age_text(seconds) if seconds > 0 else "ran out"


def priority_text(priority: int) -> str:
    """A lock's priority as a word: maintenance gives way to users."""
    return "maintenance" if priority == Priority.MAINTENANCE else "user"
