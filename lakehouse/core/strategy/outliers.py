"""Outliers: segments that span far more time than their rows fill, so that scans of all of it have to open them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lakehouse.core.strategy.draft import Drafts, FloatArray, IntArray, begins_of, pieces, propose, total
from lakehouse.core.strategy.state import TableState
from lakehouse.core.task import Candidate


def outliers(state: TableState) -> Iterable[Candidate]:
    """Rewrite segments whose interval is ``outliers`` times as wide as the share of their rows in what lies there.

    In a table whose segments are to lie in one chunk, that is each that does not. In a ragged table, those that span
    chunks, are that many times as wide as its middle segment, and hold less than that share of the rows in their
    interval: a compaction cuts them where they are empty. One that a compaction made stays as it is, for it was cut.
    """
    starts, ends, ordinals = state.segments.bounds
    grain = state.spec.grain
    first = grain.floor_us(starts)
    places = np.flatnonzero(grain.floor_us(ends - 1) != first)
    if not len(places):
        return []
    if not state.spec.ragged:
        places = places[np.lexsort((starts[places], first[places]))]
        return _proposed(state, places, first[places])
    limits = state.limits(state.policy.outliers, ordinals[places])
    widths = (ends - starts).astype(np.float64)
    wide = widths[places] >= limits * np.median(widths)
    thin = _mass(state, places) >= limits * np.maximum(state.segments.numbers("rows")[places], 1)
    cut = state.segments.flags("has_row_ids")[places]
    places = places[wide & thin & ~cut]
    return _proposed(state, places, np.arange(len(places)))


def _mass(state: TableState, places: IntArray) -> FloatArray:
    """Rows of all segments in the intervals of some, each segment's rows being spread evenly over its interval."""
    starts, ends, _ = state.segments.bounds
    density = state.segments.numbers("rows") / (ends - starts)
    edges = np.concatenate([starts, ends])
    order = np.argsort(edges, kind="stable")
    edges = edges[order]
    height = np.cumsum(np.concatenate([density, -density])[order])
    below = np.concatenate([[0.0], np.cumsum(height[:-1] * np.diff(edges))])
    found: FloatArray = np.interp(ends[places], edges, below) - np.interp(starts[places], edges, below)
    return found


def _proposed(state: TableState, places: IntArray, groups: IntArray) -> list[Candidate]:
    """Candidates of what begins in one group, and of each that is too large to be read with others."""
    if not len(places):
        return []
    starts, ends, _ = state.segments.bounds
    size = state.segments.numbers("bytes")
    large = size[places] * 2 >= state.policy.task_bytes
    begins = pieces(size[places[~large]], begins_of(groups[~large]), state.policy.task_bytes)
    begins = np.concatenate([begins, np.arange(int((~large).sum()), len(places))])
    places = np.concatenate([places[~large], places[large]])
    chunk = state.spec.grain.chunk(state.segments[int(places[0])].start)
    spanned = (ends - starts)[places] / (chunk.end_us - chunk.start_us)
    widest = np.maximum.reduceat(spanned, begins)
    # A scan of one chunk reads all of it for a part.
    saved = total(size[places] * (1 - 1 / np.maximum(spanned, 1.5)), begins)
    count = np.diff(np.append(begins, len(places)))
    rows = total(state.segments.numbers("rows")[places], begins)
    drafts = Drafts(places, begins, count, saved, np.zeros(len(begins)))
    unit = state.spec.grain.value

    def cause(number: int) -> str:
        return f"{count[number]} segments of {rows[number]:,} rows span up to {widest[number]:,.0f} {unit}s"

    return propose(state, "outliers", drafts, cause)
