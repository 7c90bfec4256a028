"""What holds of every lake at any time, as predicates over plain values; each says why it has to.

`lake.check` asks them of what the catalog holds. So do the tests of random histories and of killed writers.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from lakehouse.core.bins import bins_of
from lakehouse.core.chunk import Grain
from lakehouse.core.conflict import Cell, locks_clash
from lakehouse.core.interval import Interval
from lakehouse.core.timeline import Slice
from lakehouse.core.version import ADD, DROP

Events = Sequence[tuple[int, int]]
"""What was done to one entry in one bin, in order: version, and `ADD` or `DROP`."""


def head_is_newest(*, horizon: int, newest: int, head: int, counter: int) -> bool:
    """The head is the newest version in the log: a commit moves both, and numbers are drawn before they are committed.

    >>> head_is_newest(horizon=2, newest=5, head=5, counter=7), head_is_newest(horizon=2, newest=4, head=5, counter=7)
    (True, False)
    """
    return horizon <= head <= counter and newest == head


def is_logged(version: int, logged: Collection[int], horizon: int) -> bool:
    """A delta's version is in its table's log, for one commit writes both; only below the horizon is the log forgotten.

    >>> is_logged(7, {5, 7}, horizon=4), is_logged(6, {5, 7}, horizon=4), is_logged(3, {5, 7}, horizon=4)
    (True, False, True)
    """
    return version < horizon or version in logged


def names_are_apart(lives: Iterable[tuple[str, int, int | None]]) -> bool:
    """No two tables or views have one name, whatever its case, at one version: a name means one thing.

    Each life is a name, the version that made it, and the one that ended it.

    >>> names_are_apart([("late", 3, 7), ("Late", 7, None)]), names_are_apart([("late", 3, None), ("Late", 7, None)])
    (True, False)
    """
    held: dict[str, list[tuple[int, float]]] = {}
    for name, made, ended in lives:
        held.setdefault(name.casefold(), []).append((made, float("inf") if ended is None else ended))
    return all(one[1] <= other[0] for spans in held.values() for one, other in itertools.pairwise(sorted(spans)))


def lives_alternate(events: Events) -> bool:
    """An entry is added, dropped, and added again: a DROP names what is live and an ADD what is not, under the head.

    >>> lives_alternate([(3, ADD), (5, DROP), (9, ADD)]), lives_alternate([(3, ADD), (5, ADD)])
    (True, False)
    """
    return all(action == (DROP if place % 2 else ADD) for place, (_, action) in enumerate(events))


def lived_as_stated(events: Events, *, added: int, dropped: int | None) -> bool:
    """An entry says when it was first added and last dropped, for expiry and look-ups ask it and not its deltas.

    >>> lived_as_stated([(3, ADD), (5, DROP)], added=3, dropped=5), lived_as_stated([(3, ADD)], added=3, dropped=5)
    (True, False)
    """
    last, action = events[-1]
    return (added, dropped) == (events[0][0], None if action == ADD else last)


def is_ordered_before(ordinal: int, added: int) -> bool:
    """An entry's ordinal is at most the version that added it, for it is that, or was drawn or read before the commit.

    A compaction's output above its version would come back from under tombstones that came while it ran.

    >>> is_ordered_before(7, added=7), is_ordered_before(5, added=7), is_ordered_before(8, added=7)
    (True, True, False)
    """
    return ordinal <= added


def is_in_its_bins(grain: Grain, interval: Interval, bins: Collection[int]) -> bool:
    """An entry is kept in the bins of its interval and in no others, for a plan looks nowhere else.

    >>> day = Interval.of("2013-01-05")
    >>> is_in_its_bins(Grain.DAY, day, bins_of(Grain.DAY, day)), is_in_its_bins(Grain.DAY, day, [])
    (True, False)
    """
    return set(bins) == set(bins_of(grain, interval))


def row_ids_are_apart(first_row_ids: npt.ArrayLike, rows: npt.ArrayLike) -> bool:
    """Segments of a table that number their rows by position share no row id, for a row tombstone names rows by it.

    >>> row_ids_are_apart([10, 0], [5, 10]), row_ids_are_apart([9, 0], [5, 10])
    (True, False)
    """
    first = np.asarray(first_row_ids, dtype=np.int64)
    order = np.argsort(first, kind="stable")
    first, end = first[order], (first + np.asarray(rows, dtype=np.int64))[order]
    return bool((end[:-1] <= first[1:]).all())


def key_frame_holds(live: Sequence[int], *, segments: Sequence[int], tombstones: Sequence[int], entries: int) -> bool:
    """A key frame holds what its deltas lead to, for it is derived from them and read in their place.

    ``live`` is what `lakehouse.core.version.replay` of the deltas gives, by id.

    >>> key_frame_holds([1, 2, 5], segments=[1, 5], tombstones=[2], entries=3)
    True
    >>> key_frame_holds([1, 2, 5], segments=[1], tombstones=[2], entries=3)
    False
    """
    held = [*segments, *tombstones]
    return entries == len(live) == len(held) and set(held) == set(live)


def bin_knows_newest(version: int, *, newest: int, forgotten: int) -> bool:
    """A bin names the newest version that changed it, so that who remembers that one reads nothing.

    What an expiry or erasure took out may have been newer than all that is left, up to the version ``forgotten``.

    >>> [bin_knows_newest(version, newest=5, forgotten=7) for version in (5, 6, 4, 8)]
    [True, True, False, False]
    """
    return version == newest or newest < version <= forgotten


def locks_are_apart(held: Iterable[tuple[str, Cell]]) -> bool:
    """No two operations hold one chunk for keys that overlap, for each would take over what the other writes.

    ``held`` names an operation and what it holds. Cost: a step for each pair.

    >>> day, part = Cell(Interval.of("2013-01-05")), Cell(Interval.of("2013-01-05"), {"client": 77})
    >>> locks_are_apart([("a", day), ("a", part)]), locks_are_apart([("a", day), ("b", part)])
    (True, False)
    """
    return not any(one != other and locks_clash(a, b) for (one, a), (other, b) in itertools.combinations(held, 2))


def slices_are_apart(slices: Iterable[Slice]) -> bool:
    """Slices of a timeline follow each other and each shows a segment, for nothing is visible between them.

    >>> from lakehouse.core import Segment, timeline
    >>> found = timeline([Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1)], []).slices
    >>> slices_are_apart(found), slices_are_apart([*found, *found])
    (True, False)
    """
    listed = list(slices)
    return all(one.segments for one in listed) and all(
        one.end <= following.start for one, following in itertools.pairwise(listed)
    )
