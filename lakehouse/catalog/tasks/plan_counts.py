"""How often chunks are planned, as counts by bin that halve every week."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, delete, select

from lakehouse.catalog.store.columns import inserting
from lakehouse.catalog.store.models import plan_count
from lakehouse.core.bins import bin_interval
from lakehouse.core.interval import MAX_TIME, MIN_TIME, to_us
from lakehouse.core.spec import TableId, TableSpec

WHOLE = -1
"""Stands for all bins of a table, for plans without an interval."""
_DAY_US = 86_400_000_000
_HALF_LIFE_DAYS = 7.0
_LIVES = 20
"""Half-lives after which even a count of a million is zero."""
_PER_DAY = math.log(2) / _HALF_LIFE_DAYS
"""Plans a day for which a count of 1 stands: a steady rate keeps a count of its rate divided by this."""

Rates = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Times in microseconds since 1970, ascending, at which a rate begins; and the rates, in plans a day."""


def add(connection: Connection, counts: Mapping[tuple[TableId, int], int], now_us: int) -> None:
    """Add to the counts of some tables' bins."""
    insert: Any = inserting(plan_count, connection.dialect.name)
    for (table, place), number in sorted(counts.items()):
        where = (plan_count.c.table_id == table, plan_count.c.bin == place)
        held = connection.execute(select(plan_count).where(*where).with_for_update()).first()
        plans = number + (0.0 if held is None else _now(held.plans, held.counted_us, now_us))
        values = {"plans": plans, "counted_us": now_us}
        connection.execute(
            insert.values(table_id=table, bin=place, **values).on_conflict_do_update(
                index_elements=[plan_count.c.table_id, plan_count.c.bin], set_=values
            )
        )


def remove_dead(connection: Connection, now_us: int) -> None:
    """Remove counts that have become zero."""
    age_us = int(_LIVES * _HALF_LIFE_DAYS * _DAY_US)
    connection.execute(delete(plan_count).where(plan_count.c.counted_us < now_us - age_us))


def read_rates(connection: Connection, spec: TableSpec, now_us: int) -> Rates:
    """How often each time of a table is planned; empty without counts."""
    edges: dict[int, float] = {}
    for row in connection.execute(select(plan_count).where(plan_count.c.table_id == spec.id)):
        rate = _now(row.plans, row.counted_us, now_us) * _PER_DAY
        if row.bin == WHOLE:
            start_us, end_us = to_us(MIN_TIME), to_us(MAX_TIME)
        else:
            held = bin_interval(spec.bin_grain, row.bin)
            start_us, end_us = held.start_us, held.end_us
        edges[start_us] = edges.get(start_us, 0.0) + rate
        edges[end_us] = edges.get(end_us, 0.0) - rate
    times = sorted(edges)
    steps = np.cumsum([edges[one] for one in times]) if times else np.empty(0)
    return np.array(times, dtype=np.int64), np.maximum(steps.astype(np.float64), 0.0)


def _now(plans: float, counted_us: int, now_us: int) -> float:
    """A count after decay."""
    result: float = plans * 0.5 ** (max(now_us - counted_us, 0) / _DAY_US / _HALF_LIFE_DAYS)
    return result
