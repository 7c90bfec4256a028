"""Which segments could hold a row that passes a filter, where columns have indexes: `matching`, and a look into those.

The look itself is the caller's. It is asked last, and only of segments that nothing else leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from lakehouse.core.hashing import Hashes, hash_literal
from lakehouse.core.predicate import And, Compare, In, Or, Predicate
from lakehouse.core.prune import Mask, matching
from lakehouse.core.segments import Segments

Look = Callable[[str, Segments, Hashes], Mask]
"""Of a column: for each segment whether a value with one of the hashes may be there."""


def asks(predicate: Predicate, indexed: pa.Schema) -> bool:
    """Whether a look into indexes of some columns could leave out a segment.

    >>> ids = pa.schema([("id", pa.int64())])
    >>> asks(Compare("id", "=", 7), ids), asks(Compare("id", "<", 7), ids), asks(Compare("name", "=", "a"), ids)
    (True, False, False)
    """
    match predicate:
        case And(parts) | Or(parts):
            return any(asks(part, indexed) for part in parts)
        case _:
            return _wanted(predicate, indexed) is not None


def matching_indexed(predicate: Predicate, segments: Segments, indexed: pa.Schema, look: Look) -> Mask:
    """For each segment whether a row may pass. Looks are as few as can be: of what is left, and once a condition."""
    match predicate:
        case And(parts):
            return _in_turn(_least_first(parts, indexed), segments, indexed, look, until=False)
        case Or(parts):
            return _in_turn(_least_first(parts, indexed), segments, indexed, look, until=True)
        case _:
            found = matching(predicate, segments)
            wanted = _wanted(predicate, indexed)
            if wanted is None or not found.any():
                return found
            left = np.flatnonzero(found)
            found[left] = look(wanted[0], segments.take(left), wanted[1])
            return found


def _in_turn(parts: Sequence[Predicate], segments: Segments, indexed: pa.Schema, look: Look, *, until: bool) -> Mask:
    """Parts one after the other, each for those segments only of which none before was ``until``."""
    found = np.full(len(segments), not until)
    left = np.arange(len(segments))
    for part in parts:
        if not len(left):
            break
        said = matching_indexed(part, segments.take(left), indexed, look)
        found[left[said == until]] = until
        left = left[said != until]
    return found


def _least_first(parts: Sequence[Predicate], indexed: pa.Schema) -> list[Predicate]:
    return sorted(parts, key=lambda part: asks(part, indexed))


def _wanted(predicate: Predicate, indexed: pa.Schema) -> tuple[str, Hashes] | None:
    """The column of a condition and the hashes of the values that pass; None where an index cannot tell."""
    match predicate:
        case Compare(column, "=", value):
            values = [value]
        case In(column, members):
            values = [one for one in members if one is not None]
        case _:
            return None
    if column not in indexed.names or not values:
        return None
    hashes = [hash_literal(one, indexed.field(column).type) for one in values]
    known = [one for one in hashes if one is not None]
    return (column, np.unique(np.concatenate(known))) if len(known) == len(hashes) else None
