"""Differences between states of bins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from lakehouse.catalog.state.bins import BinState, live_in
from lakehouse.catalog.store.rows import Entry
from lakehouse.core.diff import EntryDiff
from lakehouse.core.version import ADD, DROP, diff


def changes_between(before: BinState | None, after: BinState | None) -> Iterator[tuple[int, Entry]]:
    """The difference between two states of a bin: ADD or DROP and the entry, by id."""
    nothing = np.empty(0, dtype=np.int64)
    change = diff(nothing if before is None else before.ids, nothing if after is None else after.ids)
    for action, ids, state in ((ADD, change.added, after), (DROP, change.dropped, before)):
        if state is not None and len(ids):
            yield from ((action, segment) for segment in state.segments.where(np.isin(state.segments.ids, ids)))
            yield from ((action, state.tombstones[one]) for one in ids.tolist() if one in state.tombstones)


def changed_entries(before: Mapping[int, BinState], after: Mapping[int, BinState]) -> list[tuple[int, Entry]]:
    """The differences between states of some bins and later ones: ADD or DROP and the entry, each once, by id."""
    changes: dict[int, tuple[int, Entry]] = {}
    for number in before.keys() | after.keys():
        for action, entry in changes_between(before.get(number), after.get(number)):
            changes[entry.id] = (action, entry)
    return [changes[entry] for entry in sorted(changes)]


def entries_between(before: Mapping[int, BinState], after: Mapping[int, BinState]) -> EntryDiff:
    """The same as `changed_entries`, in columns: for differences of many."""
    old, old_tombstones = live_in(before.values())
    new, new_tombstones = live_in(after.values())
    return EntryDiff(
        added_segments=new.where(~np.isin(new.ids, old.ids)),
        dropped_segments=old.where(~np.isin(old.ids, new.ids)),
        added_tombstones=tuple(new_tombstones[one] for one in sorted(new_tombstones.keys() - old_tombstones.keys())),
        dropped_tombstones=tuple(old_tombstones[one] for one in sorted(old_tombstones.keys() - new_tombstones.keys())),
    )
