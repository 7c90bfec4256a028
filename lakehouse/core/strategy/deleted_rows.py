"""Deleted rows: segments of which tombstones hide a good share are rewritten without them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lakehouse.core.strategy.draft import Drafts, by_group, merged_by_group, propose, total
from lakehouse.core.strategy.state import TableState
from lakehouse.core.task import Candidate


def deleted_rows(state: TableState) -> Iterable[Candidate]:
    """Rewrite the segments of which at least ``deleted_rows`` of the rows are hidden, together those of one chunk.

    The limit is for the age of what hides them: rows that went a moment ago may have more to follow. How many are
    hidden is an estimate by bounds (`lakehouse.core.strategy.hidden`).
    """
    segments = state.segments
    hidden = state.hidden
    rows = segments.numbers("rows")
    share = hidden.rows / np.maximum(rows, 1)
    limits = state.limits(state.policy.deleted_rows, np.maximum(hidden.newest, segments.ordinals))
    places = np.flatnonzero((share >= limits) & (hidden.rows >= 0.5))
    if not len(places):
        return []
    keys, _ = state.compaction_groups
    places, begins = merged_by_group(state, places[by_group(keys[places], rows[places])], keys)
    gone = total(hidden.rows[places], begins)
    held = total(rows[places], begins)
    saved_bytes = total((share * segments.numbers("bytes"))[places], begins)
    masked = total(np.where(hidden.placed | hidden.keyed, rows, 0)[places], begins)
    drafts = Drafts(places, begins, np.zeros(len(begins)), saved_bytes, masked)

    def cause(number: int) -> str:
        return f"about {gone[number] / held[number]:.0%} of {held[number]:,} rows are deleted"

    return propose(state, "deleted_rows", drafts, cause)
