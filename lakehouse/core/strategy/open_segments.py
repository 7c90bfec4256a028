"""Open segments: what small batches have committed becomes one segment once that is full, or old, enough."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lakehouse.core.strategy.draft import Drafts, Mask, begins_of, by_group, merged_by_group, propose, total
from lakehouse.core.strategy.state import TableState
from lakehouse.core.task import Candidate

_LEAST_SECONDS = 1.0
"""Between two looks for their age."""


def is_open(state: TableState) -> Mask:
    """Whether each segment is one that others may still be joined to: as a writer committed it, and small.

    Whatever a compaction or an update wrote is not. No segment is open in a table that does not say when one ends.
    """
    segments, policy = state.segments, state.policy
    if policy.segment_ends_after is None:
        return np.zeros(len(segments), dtype=np.bool_)
    rows, size = segments.numbers("rows"), segments.numbers("bytes")
    _, inside = state.compaction_groups
    found: Mask = inside & ~segments.flags("has_row_ids")
    found &= (rows * 2 < policy.target_rows) & (size * 2 < policy.task_bytes)
    if policy.segment_rows is not None:
        found &= rows < policy.segment_rows
    if policy.segment_bytes is not None:
        found &= size < policy.segment_bytes
    return found


def open_segments(state: TableState) -> Iterable[Candidate]:
    """Join the open segments of a chunk that together have ``segment_rows`` or ``segment_bytes``, or are old enough.

    The oldest of them counts. So a row is rewritten once for this, and what comes of it is a matter of `small_files`.
    """
    segments, policy = state.segments, state.policy
    places = np.flatnonzero(is_open(state))
    if len(places) < 2:
        return []
    assert policy.segment_ends_after is not None
    rows, size = segments.numbers("rows"), segments.numbers("bytes")
    keys, _ = state.compaction_groups
    places = places[by_group(keys[places], rows[places])]
    begins = begins_of(keys[places])
    oldest = np.minimum.reduceat(segments.ordinals[places], begins)
    ends = oldest <= state.settled.get(policy.segment_ends_after, -1)
    if policy.segment_rows is not None:
        ends |= total(rows[places], begins) >= policy.segment_rows
    if policy.segment_bytes is not None:
        ends |= total(size[places], begins) >= policy.segment_bytes
    places = places[np.repeat(ends, np.diff(np.append(begins, len(places))))]
    places, begins = merged_by_group(state, places, keys)
    count = np.diff(np.append(begins, len(places)))
    places = places[np.repeat(count > 1, count)]
    if not len(places):
        return []
    count = count[count > 1]
    begins = np.cumsum(count) - count
    held = total(rows[places], begins)
    outputs = np.maximum(-(-held // policy.target_rows), 1)
    nothing = np.zeros(len(begins))

    def cause(number: int) -> str:
        return f"{count[number]} batches of {held[number]:,} rows end a segment"

    return propose(
        state, "open_segments", Drafts(places, begins, np.maximum(count - outputs, 0), nothing, nothing), cause
    )


def next_end(state: TableState) -> float | None:
    """Seconds until what is open now is old enough to be joined, at the latest; None if nothing waits for that."""
    keys, _ = state.compaction_groups
    held = np.sort(keys[is_open(state)])
    after = state.policy.segment_ends_after
    return None if after is None or not (held[1:] == held[:-1]).any() else max(after, _LEAST_SECONDS)
