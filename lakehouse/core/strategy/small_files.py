"""Small files: segments far below the target are compacted with others of like size, as in a log-structured merge tree.

A compaction of n segments of which the largest has an n-th of the rows multiplies the size of each by at least n: so a
row is rewritten once for each power of n between the size of an append and the target (O'Neil et al., The
log-structured merge-tree, Acta Informatica 33, 1996).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lakehouse.core.strategy.draft import (
    Drafts,
    FloatArray,
    IntArray,
    Mask,
    begins_of,
    by_group,
    numbers_of,
    pieces,
    propose,
    within,
)
from lakehouse.core.strategy.open_segments import is_open
from lakehouse.core.strategy.state import TableState
from lakehouse.core.task import OPEN_MS, READ_MS_PER_BYTE, Candidate

LEFT = 3
"""Small segments of very different size that may stay in an old chunk, beside full ones."""
WORTH = 0.05
"""Share of a scan that the opening of files may cost in an old chunk."""
_LEAST_GROWTH = 1 + 1 / 16


def small_files(state: TableState) -> Iterable[Candidate]:
    """Compact, in each chunk, the smallest segments as long as all together are ``small_files`` times their largest.

    Small is what has less than half of the target's rows and of a task's bytes, so that two make one. A chunk's limit
    is that of its youngest small segment: what is still written to is rewritten a few times only. A chunk that is older
    than the threshold's last age is expected to stay as it is: there, segments are also compacted where opening them
    takes more than `WORTH` of a scan, and no more than `LEFT` of them stay. Segments that are still open are left to
    `open_segments`.
    """
    segments, policy = state.segments, state.policy
    rows, size = np.maximum(segments.numbers("rows"), 1), segments.numbers("bytes")
    keys, inside = state.compaction_groups
    inside = inside & ~is_open(state)
    places = np.flatnonzero(inside & (rows * 2 < policy.target_rows) & (size * 2 < policy.task_bytes))
    if len(places) < 2:
        return []
    places = places[by_group(keys[places], rows[places])]
    begins = begins_of(keys[places])
    newest = np.maximum.reduceat(segments.ordinals[places], begins)
    limits = np.maximum(state.limits(policy.small_files, newest), 2.0)
    last_age = policy.small_files.steps[-1][0]
    settled = newest <= state.settled.get(last_age, -1) if last_age else np.zeros(len(begins), dtype=np.bool_)
    taken = _smallest(rows[places], size[places], begins, limits, settled) & ~_of_one_rewrite(state, places, begins)
    return _proposed(state, places[taken])


def _of_one_rewrite(state: TableState, places: IntArray, begins: IntArray) -> Mask:
    """Few segments that one rewrite made: it had a reason not to make one, and would have it again."""
    ordinals, stored = state.segments.ordinals[places], state.segments.flags("has_row_ids")[places]
    lengths = np.diff(np.append(begins, len(places)))
    is_one = np.minimum.reduceat(ordinals, begins) == np.maximum.reduceat(ordinals, begins)
    is_one &= np.logical_and.reduceat(stored, begins) & (lengths <= LEFT)
    found: Mask = np.repeat(is_one, lengths)
    return found


def _smallest(rows: IntArray, size: IntArray, begins: IntArray, limits: FloatArray, settled: Mask) -> Mask:
    """Of segments by group and rows, the smallest of each group that are worth a compaction."""
    lengths = np.diff(np.append(begins, len(rows)))
    place = np.arange(len(rows))
    number = place - np.repeat(begins, lengths) + 1
    limit = np.repeat(limits, lengths)
    together = within(rows, begins)
    opening = (number - 1) * OPEN_MS > WORTH * within(size, begins) * READ_MS_PER_BYTE
    last_worth = opening & (together >= _LEAST_GROWTH * rows) & (number >= limit)
    last_worth |= number == np.repeat(lengths, lengths) - LEFT + 1
    is_worth = (together >= limit * rows) | (np.repeat(settled, lengths) & last_worth)
    last = np.maximum.reduceat(np.where(is_worth & (number > 1), place, -1), begins)
    taken: Mask = place <= np.repeat(last, lengths)
    return taken


def _proposed(state: TableState, places: IntArray) -> list[Candidate]:
    """Candidates of what is to be compacted, by group and rows; what one task cannot read is cut into several."""
    segments, target = state.segments, state.policy.target_rows
    keys, _ = state.compaction_groups
    begins = pieces(segments.numbers("bytes")[places], begins_of(keys[places]), state.policy.task_bytes)
    count = np.diff(np.append(begins, len(places)))
    kept = np.repeat(count > 1, count)
    if not kept.any():
        return []
    numbers = numbers_of(begins, len(places))[kept]
    places, begins, count = places[kept], begins_of(numbers), count[count > 1]
    rows = np.add.reduceat(segments.numbers("rows")[places], begins)
    outputs = np.maximum(-(-rows // target), 1)
    nothing = np.zeros(len(begins))
    drafts = Drafts(places, begins, np.maximum(count - outputs, 0), nothing, nothing)

    def cause(number: int) -> str:
        return f"{count[number]} small segments hold {rows[number]:,} rows, for {outputs[number]} of {target:,}"

    return propose(state, "small_files", drafts, cause)
