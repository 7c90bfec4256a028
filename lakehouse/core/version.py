"""Versions: what is live at a version is a key frame and the deltas after it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lakehouse.core.skyline import distinct

ADD = 1
DROP = -1
LONGEST_CHAIN = 32
"""Versions behind a key frame that a read replays at most."""

Ids = npt.NDArray[np.int64]


class IdDiff(NamedTuple):
    """Sorted ids that are live in the second state only, and in the first only."""

    added: Ids
    dropped: Ids


def replay(frame_ids: npt.ArrayLike, versions: npt.ArrayLike, actions: npt.ArrayLike, ids: npt.ArrayLike) -> Ids:
    """Ids that are live after a key frame's entries and the changes after it, sorted.

    ``versions``, ``actions`` (`ADD` or `DROP`) and ``ids`` hold one change a place, in any order of versions; changes
    of one version apply in the order given. An id may come and go any number of times, as a restore makes it do.
    Takes O(n log n).

    >>> replay([1, 2], versions=[5, 6, 7], actions=[ADD, DROP, ADD], ids=[3, 1, 1]).tolist()
    [1, 2, 3]
    """
    version, action, changed = _int64(versions), _int64(actions), _int64(ids)
    frame = _int64(frame_ids)
    assert len(version) == len(action) == len(changed), "one version, action and id a change"
    if (version[1:] < version[:-1]).any():
        order = np.argsort(version, kind="stable")
        action, changed = action[order], changed[order]
    every = np.concatenate([frame, changed])
    alive = np.concatenate([np.ones(len(frame), dtype=np.bool_), action == ADD])
    order = np.argsort(every, kind="stable")
    every, alive = every[order], alive[order]
    last = np.ones(len(every), dtype=np.bool_)
    last[:-1] = every[1:] != every[:-1]
    live: Ids = every[last & alive]
    return live


def diff(ids_a: npt.ArrayLike, ids_b: npt.ArrayLike) -> IdDiff:
    """What leads from one state to another.

    >>> diff([1, 2], [2, 3])
    IdDiff(added=array([3]), dropped=array([1]))
    """
    a, b = distinct(_int64(ids_a)), distinct(_int64(ids_b))
    return IdDiff(added=_without(b, a), dropped=_without(a, b))


def _without(ids: Ids, others: Ids) -> Ids:
    """Sorted ids that are not among sorted others."""
    place = np.searchsorted(others, ids)
    is_shared = np.zeros(len(ids), dtype=np.bool_)
    inside = place < len(others)
    is_shared[inside] = others[place[inside]] == ids[inside]
    found: Ids = ids[~is_shared]
    return found


def frame_due(chain_length: int, *, is_framed: bool) -> bool:
    """Whether a bin should get a new key frame, where ``chain_length`` versions lie behind its newest one, if any.

    >>> frame_due(1, is_framed=False), frame_due(31, is_framed=True), frame_due(32, is_framed=True)
    (True, False, True)
    """
    return not is_framed or chain_length >= LONGEST_CHAIN


def _int64(values: npt.ArrayLike) -> Ids:
    return np.asarray(values, dtype=np.int64)
