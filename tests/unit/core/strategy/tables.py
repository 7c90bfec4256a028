"""Small tables for strategies to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from lakehouse.core.chunk import Grain
from lakehouse.core.policy import DAY, Policy
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.strategy import TableState
from lakehouse.core.tombstone import Tombstone

MIB = 1 << 20
NEW = 10**6
"""Ordinals from here on are a minute old; `OLD` and below, a month."""
OLD = 10**5
SCHEMA = pa.schema([("time", pa.timestamp("us", "UTC")), ("client", pa.int64()), ("name", pa.string())])


def segment(
    id: int,
    *,
    day: int = 5,
    rows: int = 1_000,
    size: int | None = None,
    ordinal: int = OLD,
    hours: tuple[int, int] = (0, 24),
    **more: Any,
) -> Segment:
    start = datetime(2013, 1, 1, tzinfo=UTC).timestamp() + (day - 1) * DAY
    bounds = [int((start + hour * 3600) * 1e6) for hour in hours]
    return Segment(
        id=id,
        start=bounds[0],
        end=bounds[1],
        ordinal=ordinal,
        rows=rows,
        bytes=rows * 20 if size is None else size,
        first_row_id=id * 10_000_000,
        **more,
    )


def state(
    segments: Iterable[Segment],
    tombstones: Iterable[Tombstone] = (),
    *,
    properties: Mapping[str, str] | None = None,
    cluster_by: Mapping[str, int] | None = None,
    scans: float = 1.0,
) -> TableState:
    held = dict(properties or {})
    policy = Policy.of(held)
    spec = TableSpec(
        TableId(1),
        "t",
        "t",
        SCHEMA,
        "time",
        Grain.DAY,
        primary_key=("client",),
        cluster_by=cluster_by or {},
        properties=held,
    )
    rates = (np.array([0]), np.array([scans]))
    return TableState(
        spec,
        policy,
        2 * NEW,
        datetime(2013, 3, 1, tzinfo=UTC),
        Segments.of(list(segments)),
        tuple(tombstones),
        settled=dict.fromkeys(policy.ages, OLD),
        scans=rates,
    )
