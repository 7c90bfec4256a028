"""Queries of the Tombstones page: each tombstone, what it masks, what that costs, and what will remove it."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from lakehouse.core import Interval, Tombstone
from lakehouse.core.interval import MAX_TIME, MIN_TIME
from lakehouse.core.predicate import In
from lakehouse.core.prune import matching
from lakehouse.core.row_masks import reached
from lakehouse.core.segments import Segments
from queries.words import age_text, count_text, keys_text, size_text, text_of

KINDS = ["interval", "key", "row"]


def list_tombstones(
    lake: Any, name: str, version: int, interval: Interval | None, kind: str | None
) -> tuple[list[Tombstone], Segments]:
    """The tombstones that are live in an interval, newest first, and the segments there."""
    table = lake.table(name)
    segments, tombstones = lake.catalog.live(table.spec, version, interval)
    listed = [
        one
        for one in tombstones
        if (kind is None or one.kind == kind) and (interval is None or one.interval.overlaps(interval))
    ]
    return sorted(listed, key=lambda one: (one.ordinal, one.id), reverse=True), segments


def describe_tombstones(lake: Any, name: str, listed: list[Tombstone], segments: Segments) -> pd.DataFrame:
    """A row a tombstone. Cost: a few passes over the segments for each: for a page of them, not for all."""
    origins = lake.catalog.origins(lake.table(name).spec, [one.id for one in listed])
    now = datetime.now(UTC)
    rows = []
    for one in listed:
        masked = segments.where(masks(one, segments))
        origin = origins.get(one.id)
        rows.append(
            {
                "tombstone": str(one.id),
                "kind": one.kind,
                "from": "ever" if one.start == MIN_TIME else text_of(one.start),
                "until": "ever" if one.end == MAX_TIME else text_of(one.end.replace(microsecond=0)),
                "keys": keys_text(one.keys),
                "ordinal": one.ordinal,
                "masks": f"{count_text(len(masked), 'segment')} of {count_text(masked.rows, 'row')}",
                "goes": when_it_goes(one, masked),
                "made by": f"{origin.operation} at {origin.version}" if origin else "",
                "age": age_text((now - origin.committed_at).total_seconds()) if origin else "",
                "its set": _set_text(one),
            }
        )
    return pd.DataFrame(rows)


def _set_text(tombstone: Tombstone) -> str:
    if tombstone.kind == "interval":
        return ""
    listed = count_text(tombstone.rows, "row" if tombstone.kind == "row" else "key")
    return f"{listed}, {size_text(tombstone.bytes)} in a file" if tombstone.path else listed


def masks(tombstone: Tombstone, segments: Segments) -> Any:
    """Which segments it may hide rows of, by bounds."""
    if tombstone.kind != "interval":
        found = np.zeros(len(segments), dtype=np.bool_)
        for mask, _ in reached(segments, [tombstone]):
            found |= mask
        return found
    starts, ends, ordinals = segments.bounds
    interval = tombstone.interval
    found = (starts < interval.end_us) & (ends > interval.start_us) & (ordinals < tombstone.ordinal)
    for column, values in (tombstone.keys or {}).items():
        if None not in values:
            found &= matching(In(column, tuple(values)), segments)
    return found


def when_it_goes(tombstone: Tombstone, masked: Segments) -> str:
    """What has to happen before a clean-up drops it."""
    if not len(masked):
        return "at the next clean-up, for it hides nothing"
    if tombstone.hides_interval:
        starts, ends, _ = masked.bounds
        inside = (starts >= tombstone.interval.start_us) & (ends <= tombstone.interval.end_us)
        if inside.all():
            return "at the next clean-up, with what it hides"
    compaction = f"by a compaction of {count_text(len(masked), 'segment')}"
    return f"when resolved, or {compaction}" if tombstone.kind == "key" else compaction
