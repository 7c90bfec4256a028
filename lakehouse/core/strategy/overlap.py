"""Overlap: large segments that lie over each other in time and cluster keys are sorted into ones that do not."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lakehouse.core.strategy.boxes import Boxes, met_in_time
from lakehouse.core.strategy.draft import (
    Drafts,
    FloatArray,
    IntArray,
    Mask,
    begins_of,
    numbers_of,
    pieces,
    propose,
    total,
)
from lakehouse.core.strategy.state import TableState
from lakehouse.core.task import Candidate

_MOST_OF_ONE_RUN = 0.75
"""Share of the bytes that may come from one run: to sort a little into much is not worth it."""
_MOST_LOOKED_AT = 200_000
"""Segments whose keys one plan compares, where more than that lie over each other in time."""
_FULL = 0.75
"""Share of a task's segments that has to overlap where a task can read fewer than the limit."""


def overlap(state: TableState) -> Iterable[Candidate]:
    """Compact the large segments of a chunk where on average ``overlap`` of them lie over one point.

    A point is a time and a value of each cluster column (`lakehouse.core.strategy.boxes`). Segments of one rewrite are
    one run: they were sorted, and sorting them again gives the same. What one task cannot read is cut in the order in
    which a compaction sorts, and each part has to gain by itself.

    Small segments are left to `small_files`; those of more than half a task's bytes are left alone, for it could not
    read two.
    """
    segments, policy = state.segments, state.policy
    rows, size = segments.numbers("rows"), segments.numbers("bytes")
    keys, inside = state.compaction_groups
    starts, ends, _ = segments.bounds
    is_large = (rows * 2 >= policy.target_rows) & (size * 2 < policy.task_bytes) & inside & (ends - starts > 1)
    places = _crowded(state, np.flatnonzero(is_large), keys)
    if not len(places):
        return []
    boxes = Boxes.of(segments.take(places), tuple(state.spec.cluster_by))
    groups = begins_of(keys[places])
    depth = boxes.depth(groups)
    chosen = np.flatnonzero(_is_deep(state, places, groups, depth) & (depth >= 2.0))
    if not len(chosen):
        return []
    # As a compaction sorts, so that what lies over each other comes into one task.
    middles = boxes.middles(len(boxes.sides) if policy.order == "zorder" else 1)
    chosen = chosen[np.lexsort((segments.ordinals[places[chosen]], middles[chosen], keys[places[chosen]]))]
    places, boxes = places[chosen], boxes.take(chosen)
    parts = pieces(size[places], begins_of(keys[places]), policy.task_bytes)
    depth = boxes.depth(parts)
    kept = _is_deep(state, places, parts, depth, of_task=True)
    if not kept.any():
        return []
    parts = begins_of(numbers_of(parts, len(places))[kept])
    return _proposed(state, places[kept], parts, depth[kept])


def _crowded(state: TableState, places: IntArray, keys: IntArray) -> IntArray:
    """Places by group, of the groups in which segments lie over each other in time: all that the others need."""
    starts, ends, _ = state.segments.bounds
    least = max(2.0, min(limit for _, limit in state.policy.overlap.steps))
    places = places[np.argsort(keys[places], kind="stable")]
    count = _of_pile(keys[places])
    places = places[count >= least]
    if not len(places):
        return places
    met = met_in_time(starts[places], ends[places])
    groups = begins_of(keys[places])
    mean = total(met, groups) / np.diff(np.append(groups, len(places)))
    return _some(places[mean[numbers_of(groups, len(places))] >= least], keys, state.version)


def _some(places: IntArray, keys: IntArray, version: int) -> IntArray:
    """No more groups than have about `_MOST_LOOKED_AT` segments, others at each version."""
    if len(places) <= _MOST_LOOKED_AT:
        return places
    groups = begins_of(keys[places])
    first = groups[version * 7_919 % len(groups)]
    turned = np.roll(places, -first)
    numbers = numbers_of(begins_of(keys[turned]), len(turned))
    chosen: IntArray = turned[numbers <= numbers[_MOST_LOOKED_AT]]
    return np.asarray(chosen[np.argsort(keys[chosen], kind="stable")], dtype=np.int64)


def _of_pile(keys: IntArray) -> IntArray:
    """For each segment how many are in its group."""
    groups = begins_of(keys)
    count = np.diff(np.append(groups, len(keys)))
    return np.repeat(count, count)


def _is_deep(
    state: TableState, places: IntArray, begins: IntArray, depth: FloatArray, *, of_task: bool = False
) -> Mask:
    """For each segment whether the mean depth of its run reaches the limit, and comes from several rewrites."""
    runs = numbers_of(begins, len(places))
    count = np.diff(np.append(begins, len(places)))
    rewrites, most = _rewrites(state, places, runs, len(begins))
    mean = np.minimum(total(depth, begins) / count, rewrites)
    limits = np.maximum(
        state.limits(state.policy.overlap, np.maximum.reduceat(state.segments.ordinals[places], begins)), 2.0
    )
    if of_task:
        limits = np.minimum(limits, np.maximum(2.0, _FULL * count))
    found: Mask = ((mean >= limits) & (most <= _MOST_OF_ONE_RUN) & (rewrites > 1))[runs]
    return found


def _rewrites(state: TableState, places: IntArray, runs: IntArray, length: int) -> tuple[IntArray, FloatArray]:
    """For each run how many rewrites and other segments it is of, and the greatest share of the bytes of one."""
    segments = state.segments.take(places)
    # A segment that was not sorted stands for itself; ordinals are not negative.
    origin = np.where(segments.flags("has_row_ids"), segments.ordinals, -1 - np.arange(len(places)))
    order = np.lexsort((origin, runs))
    is_first = np.ones(len(places), dtype=np.bool_)
    is_first[1:] = (np.diff(runs[order]) != 0) | (np.diff(origin[order]) != 0)
    begins = np.flatnonzero(is_first)
    of_run = runs[order][begins]
    size = np.maximum(segments.numbers("bytes"), 1)[order]
    largest = np.zeros(length)
    np.maximum.at(largest, of_run, total(size, begins))
    return np.bincount(of_run, minlength=length), largest / np.bincount(runs[order], weights=size, minlength=length)


def _proposed(state: TableState, places: IntArray, begins: IntArray, depth: FloatArray) -> list[Candidate]:
    count = np.diff(np.append(begins, len(places)))
    mean = total(depth, begins) / count
    size = total(state.segments.numbers("bytes")[places], begins) / count
    drafts = Drafts(places, begins, np.rint(mean - 1), (mean - 1) * size, np.zeros(len(begins)))
    over = " and ".join(["time", *state.spec.cluster_by])

    def cause(number: int) -> str:
        return f"{mean[number]:.1f} of {count[number]} segments lie over one point of {over}"

    return propose(state, "overlap", drafts, cause)
