"""Which nodes of a group hold a segment: those with the highest scores of rendezvous hashing.

Each node can tell alone, and of a node that comes or goes only the segments that it holds move. Source: D. Thaler,
C. Ravishankar, *Using name-based mappings to increase hit rates*, IEEE/ACM Transactions on Networking 6(1), 1998.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse.core.hashing import hash_values
from lakehouse.core.prune import Mask
from lakehouse.core.skyline import IntArray

Scores = npt.NDArray[np.uint64]


def held_by(node: str, nodes: Collection[str], ids: IntArray, replicas: int | None) -> Mask:
    """Which segments, by id, a node of a group holds, if ``replicas`` nodes are to hold each (None: all).

    Cost: a pass over the segments for each node.

    >>> ids = np.arange(1000)
    >>> held = [held_by(node, "abc", ids, replicas=2) for node in "abc"]
    >>> bool((np.sum(held, axis=0) == 2).all())
    True
    """
    others = sorted(set(nodes) - {node})
    if replicas is None or replicas > len(others):
        return np.ones(len(ids), dtype=np.bool_)
    own = _scores(node, ids)
    better = np.zeros(len(ids), dtype=np.int64)
    for other in others:
        theirs = _scores(other, ids)
        better += (theirs > own) | ((theirs == own) & (other < node))
    found: Mask = better < replicas
    return found


def _scores(node: str, ids: IntArray) -> Scores:
    """A number for each segment that looks drawn by chance, the same at every node."""
    seed = hash_values(pa.array([node]))[0]
    with np.errstate(over="ignore"):
        mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + seed
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Scores = mixed ^ (mixed >> np.uint64(31))
    return found
