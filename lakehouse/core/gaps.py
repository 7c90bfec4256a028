"""Where a segment that spans far more time than its rows fill can be cut: at its widest gaps."""

from __future__ import annotations

import itertools

import numpy as np

from lakehouse.core.skyline import IntArray

MOST_PARTS = 8
LEAST_SHARE = 1 / 16
"""Share of the whole interval that a gap has to be, so that a cut narrows the parts."""


def cut_at_gaps(times: IntArray, end: int) -> list[tuple[int, int]]:
    """Parts ``[start, end)`` that together hold all times but as few as possible of the times between.

    ``times`` are those at which something begins, each once, in order, such as the starts of chunks that have rows;
    ``end`` is where the last one ends.

    >>> cut_at_gaps(np.array([0, 10, 900, 910]), 920)
    [(0, 900), (900, 920)]
    >>> cut_at_gaps(np.arange(0, 100, 2), 100)
    [(0, 100)]
    """
    if not len(times):
        return []
    steps = np.diff(times)
    wide = np.flatnonzero(steps > LEAST_SHARE * (end - int(times[0])))
    widest = np.sort(wide[np.argsort(-steps[wide], kind="stable")[: MOST_PARTS - 1]])
    edges = [int(times[0]), *times[widest + 1].tolist(), end]
    return list(itertools.pairwise(edges))
