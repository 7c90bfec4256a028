"""Tombstone debt: what scans pay for comparing rows with tombstones, where it is more than the work that ends it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lakehouse.core.interval import Interval
from lakehouse.core.row_masks import reached
from lakehouse.core.strategy.draft import (
    Drafts,
    Mask,
    begins_of,
    by_group,
    merged_by_group,
    numbers_of,
    propose,
    total,
)
from lakehouse.core.strategy.state import TableState
from lakehouse.core.task import MASK_MS_PER_ROW, READ_MS_PER_BYTE, Candidate, Gain, TaskKind
from lakehouse.core.tombstone import Tombstone

PAYBACK_DAYS = 7.0
"""A rewrite has to be paid for by the scans of so many days."""
REWRITE_MS_PER_BYTE = 10 * READ_MS_PER_BYTE
"""Cost of a byte that is read, written, and stored again."""


def tombstone_debt(state: TableState) -> Iterable[Candidate]:
    """Resolve key tombstones, and compact what others mask, where one scan of it pays ``tombstone_debt`` milliseconds.

    Key tombstones are compared with every row of the segments that they reach: those of an age at which all of them
    together cost a scan more than the limit become one task (RESOLVE). Segments masked by row tombstones, or by
    interval tombstones that cover a part of them or some keys, are compacted where the scans of `PAYBACK_DAYS` days pay
    more for that than the rewrite costs.
    """
    return [*_resolved(state), *_merged(state)]


def _resolved(state: TableState) -> list[Candidate]:
    keyed = [one for one in state.tombstones if one.kind == "key"]
    for age, limit in state.policy.tombstone_debt.steps:
        old = [one for one in keyed if not age or one.ordinal <= state.settled.get(age, -1)]
        candidate = _resolve(state, old, limit)
        if candidate is not None:  # of all that are as old, and so of the most
            return [candidate]
    return []


def _resolve(state: TableState, tombstones: list[Tombstone], limit: float) -> Candidate | None:
    """A task for those that reach something, if together they cost enough."""
    hidden = state.hidden
    part, telling = state.segments.where(hidden.keyed), hidden.keys
    if part.rows * MASK_MS_PER_ROW < limit:
        return None
    if len(tombstones) < sum(one.kind == "key" for one in state.tombstones):
        touched: Mask = np.zeros(len(part), dtype=np.bool_)
        telling = []
        for mask, bundle in reached(part, tombstones):
            touched |= mask
            telling.extend(bundle)
        part = part.where(touched)
    if not telling or part.rows * MASK_MS_PER_ROW < limit:
        return None
    starts, ends, _ = part.bounds
    # The columns of the key, the time and the row id are all that is read of a file.
    columns = len({*state.spec.primary_key, *state.spec.times})
    share = min(1.0, columns / max(len(state.spec.schema), 1))
    scans = state.scans_of(starts, ends)
    return Candidate(
        TaskKind.RESOLVE,
        "tombstone_debt",
        f"{sum(one.rows for one in telling):,} keys in {len(telling)} tombstones are compared with {part.rows:,} rows",
        Interval(int(starts.min()), int(ends.max())),
        np.empty(0, dtype=np.int64),
        np.array(sorted(one.id for one in telling), dtype=np.int64),
        bytes=int(part.bytes * share),
        rows=part.rows,
        gain=Gain(masked_rows=part.rows),
        scans=float(np.average(scans, weights=np.maximum(part.numbers("rows"), 1))),
    )


def _merged(state: TableState) -> list[Candidate]:
    segments = state.segments
    hidden = state.hidden
    if not hidden.placed.any():
        return []
    starts, ends, ordinals = segments.bounds
    rows, size = segments.numbers("rows"), segments.numbers("bytes")
    paid_ms = rows * MASK_MS_PER_ROW
    pays = paid_ms * state.scans_of(starts, ends) * PAYBACK_DAYS >= size * REWRITE_MS_PER_BYTE
    places = np.flatnonzero(hidden.placed & pays)
    if not len(places):
        return []
    keys, _ = state.compaction_groups
    places = places[by_group(keys[places], rows[places])]
    groups = begins_of(keys[places])
    newest = np.maximum.reduceat(np.maximum(hidden.newest, ordinals)[places], groups)
    is_much = total(paid_ms[places], groups) >= state.limits(state.policy.tombstone_debt, newest)
    places = places[is_much[numbers_of(groups, len(places))]]
    if not len(places):
        return []
    places, begins = merged_by_group(state, places[by_group(keys[places], rows[places])], keys)
    masked = total(rows[places], begins)
    saved_bytes = total((hidden.rows * size / np.maximum(rows, 1))[places], begins)
    drafts = Drafts(places, begins, np.zeros(len(begins)), saved_bytes, masked)

    def cause(number: int) -> str:
        return f"each scan compares {masked[number]:,} rows with tombstones"

    return propose(state, "tombstone_debt", drafts, cause)
