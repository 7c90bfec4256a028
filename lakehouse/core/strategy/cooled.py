"""Cooled: segments whose rows have reached an age for which the table names another codec."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lakehouse.core.interval import from_us, to_us
from lakehouse.core.strategy.draft import Drafts, by_group, merged_by_group, numbers_of, propose, total
from lakehouse.core.strategy.state import TableState
from lakehouse.core.task import Candidate

LEAST_BYTES = 1 << 20
"""A rewrite of less saves no space worth a commit."""


def cooled(state: TableState) -> Iterable[Candidate]:
    """Rewrite segments that have outgrown their codec (`lakehouse.core.codec`), together those of one chunk.

    That saves space and no time of scans, so its score is 0: everything else is done first and, where bytes to rewrite
    are short, instead. What else would rewrite these segments writes them with the new codec too. Nothing is proposed
    for a table with one codec, nor for less than `LEAST_BYTES`.
    """
    segments, codecs = state.segments, state.spec.codecs
    if len(codecs.steps) == 1 or not len(segments):
        return []
    _, ends, _ = segments.bounds
    bounds = codecs.bounds(state.spec.grain, to_us(state.now))
    places = np.flatnonzero(codecs.outgrown(segments.numbers("codec"), ends - 1, bounds))
    if not len(places):
        return []
    size, rows = segments.numbers("bytes"), segments.numbers("rows")
    keys, _ = state.compaction_groups
    places, begins = merged_by_group(state, places[by_group(keys[places], rows[places])], keys)
    is_worth_it = total(size[places], begins) >= LEAST_BYTES
    number = numbers_of(begins, len(places))
    places, number = places[is_worth_it[number]], number[is_worth_it[number]]
    begins = np.flatnonzero(np.diff(number, prepend=-1))
    nothing = np.zeros(len(begins), dtype=np.int64)
    held = total(rows[places], begins)

    def cause(number: int) -> str:
        return f"{held[number]:,} rows have cooled: compression is {codecs}"

    return propose(state, "compression", Drafts(places, begins, nothing, nothing, nothing), cause)


def next_cooling(state: TableState) -> float | None:
    """Seconds until the first segments reach an age at which they will have outgrown their codec; None if none will.

    Rows of a timeless table have no age.
    """
    segments, codecs, grain = state.segments, state.spec.codecs, state.spec.grain
    if len(codecs.steps) == 1 or not len(segments) or not state.spec.time:
        return None
    _, ends, _ = segments.bounds
    held, last_us, now_us = segments.numbers("codec"), ends - 1, to_us(state.now)
    bounds = codecs.bounds(grain, now_us)
    due = []
    for place, (age, _) in enumerate(codecs.steps[1:]):
        waits = last_us >= bounds[place]
        then = np.full(len(bounds), np.iinfo(np.int64).min)
        then[: place + 1] = np.iinfo(np.int64).max  # as if this step, and no later one, had been reached
        waits &= codecs.outgrown(held, last_us, then)
        if waits.any():
            chunk = grain.chunk(from_us(int(last_us[waits].min())))
            due.append((chunk.end_us - now_us) / 1e6 + age)
    return min(due, default=None)
