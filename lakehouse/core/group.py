"""Segments grouped by the tombstones that mask them, so that an engine reads many files as one scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lakehouse.core.interval_join import Bounds, masking_pairs
from lakehouse.core.keys import KeyScope
from lakehouse.core.prune import holding
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import IntArray, bounds, distinct
from lakehouse.core.tombstone import Tombstone

MAX_GROUPS = 24
"""Above this number of groups, groups are joined where they can be."""


@dataclass(frozen=True, slots=True)
class ReadGroup:
    """Segments that the same interval tombstones mask, and the tombstones of rows and keys that may reach one of them.

    Engines read the segments that the latter do not reach as one scan with one mask.
    """

    segments: Sequence[Segment]
    tombstones: tuple[Tombstone, ...] = ()

    def masks(self) -> list[Tombstone]:
        """The interval tombstones, those of touching intervals and the same keys joined: fewer that hide the same rows.

        A replace of a year leaves a tombstone in each chunk; a row is tested against one.

        >>> parts = [Tombstone(id=n, start=f"2013-01-0{n}", end=f"2013-01-0{n + 1}", ordinal=n) for n in (5, 6, 8)]
        >>> [str(mask.interval) for mask in ReadGroup((), tuple(parts)).masks()]
        ['2013-01-05/2013-01-07', '2013-01-08/2013-01-09']
        """
        joined: list[Tombstone] = []
        newest: dict[str, int] = {}
        for one in sorted(self.tombstones, key=lambda tombstone: (tombstone.start, tombstone.ordinal)):
            if one.kind != "interval":
                continue
            scope = repr(one.keys)
            last = joined[newest[scope]] if scope in newest else None
            if last is not None and one.start <= last.end:
                joined[newest[scope]] = replace(last, end=max(last.end, one.end))
            else:
                joined.append(one)
                newest[scope] = len(joined) - 1
        return joined


@dataclass(slots=True)
class _Group:
    """Places of segments and of tombstones."""

    masks: set[int]
    segments: IntArray
    spared: set[int] = field(default_factory=set)
    """Tombstones that match rows of a segment here and are too old to hide them."""

    def takes(self, other: _Group) -> bool:
        """Whether all segments of both may be read under all tombstones of both."""
        return self.masks.isdisjoint(other.spared) and self.spared.isdisjoint(other.masks)

    def take(self, other: _Group) -> None:
        self.masks |= other.masks
        self.spared |= other.spared
        self.segments = np.concatenate([self.segments, other.segments])


def group_by_mask(
    segments: Sequence[Segment], span: Bounds, tombstones: Sequence[Tombstone], max_groups: int = MAX_GROUPS
) -> tuple[ReadGroup, ...]:
    """Group segments by the interval tombstones that mask them; ``span`` says which part of each segment is read.

    ``tombstones`` are in order of ordinal.
    """
    if not segments:
        return ()
    segments = Segments.of(segments)
    over = bounds(tombstones)
    groups = _distinct(segments, masking_pairs(span, over), tombstones)
    if len(groups) > max_groups:
        groups = _joined(groups, segments, span, tombstones, over, max_groups)
    groups.sort(key=lambda one: (bool(one.masks), int(one.segments[0])))
    return tuple(
        ReadGroup(
            segments if len(group.segments) == len(segments) else segments.take(np.sort(group.segments)),
            _in_order([tombstones[place] for place in group.masks]),
        )
        for group in groups
    )


def _distinct(
    segments: Segments, pairs: Iterable[tuple[IntArray, IntArray]], tombstones: Sequence[Tombstone]
) -> list[_Group]:
    """One group for each set of tombstones. Segments that none masks cost no step each."""
    masks: dict[int, list[int]] = {}
    for segment, mask in _matching(segments, pairs, tombstones):
        masks.setdefault(segment, []).append(mask)
    masked: dict[tuple[int, ...], list[int]] = {}
    for segment, over in masks.items():
        masked.setdefault(tuple(over), []).append(segment)
    bare = np.ones(len(segments), dtype=np.bool_)
    bare[list(masks)] = False
    groups = [_Group(set(), np.flatnonzero(bare))] if bare.any() else []
    return groups + [_Group(set(over), np.array(sorted(found), dtype=np.int64)) for over, found in masked.items()]


def _joined(
    groups: list[_Group],
    segments: Segments,
    span: Bounds,
    tombstones: Sequence[Tombstone],
    over: Bounds,
    max_groups: int,
) -> list[_Group]:
    """Join masked groups until few are left.

    First neighbours in time, whose tombstones may touch and then mask as one; then each that is left into the group
    with the fewest tombstones that takes it.
    """
    used = sorted({mask for group in groups for mask in group.masks})
    # The other way round: tombstones whose ordinal is not above the segment's.
    older: Bounds = (over[0][used], over[1][used], -over[2][used])
    spared: dict[int, set[int]] = {}
    pairs = masking_pairs((span[0], span[1], -span[2] - 1), older)
    for segment, mask in _matching(segments, pairs, [tombstones[place] for place in used]):
        spared.setdefault(segment, set()).add(used[mask])
    for group in groups:
        group.spared = set().union(*(spared.get(place, ()) for place in group.segments.tolist()))
    share = -(-sum(len(group.masks) for group in groups) // max_groups)
    joined: list[_Group] = []
    for group in sorted(groups, key=lambda one: (bool(one.masks), int(span[0][one.segments].min()))):
        last = joined[-1] if joined and joined[-1].masks else None
        if last is not None and len(last.masks) + len(group.masks) <= share and last.takes(group):
            last.take(group)
            continue
        takers = [one for one in joined if one.masks and one.takes(group)] if len(joined) >= max_groups else []
        if takers:
            min(takers, key=lambda one: len(one.masks)).take(group)
        else:
            joined.append(group)
    return joined


def _matching(
    segments: Segments, pairs: Iterable[tuple[IntArray, IntArray]], tombstones: Sequence[Tombstone]
) -> Iterator[tuple[int, int]]:
    """The pairs of which the segment may hold the tombstone's keys. Cost: a look at each scope of keys, and a pair."""
    scopes: dict[str, int] = {}
    scope = np.array([_number(scopes, one.keys) for one in tombstones], dtype=np.int64)
    for near, over in pairs:
        kept = np.ones(len(near), dtype=np.bool_)
        asked = scope[over]
        order = np.argsort(asked, kind="stable")
        for pair in np.split(order, np.flatnonzero(np.diff(asked[order])) + 1):
            if not len(pair) or asked[pair[0]] < 0:
                continue
            places = distinct(near[pair])
            asked_of = segments if len(places) == len(segments) else segments.take(places)
            held = holding(tombstones[over[pair[0]]].keys, asked_of)
            kept[pair] = held[np.searchsorted(places, near[pair])]
        yield from zip(near[kept].tolist(), over[kept].tolist(), strict=True)


def _number(scopes: dict[str, int], keys: KeyScope | None) -> int:
    """The number of a scope among those seen; -1 for no keys, which every segment holds."""
    return -1 if keys is None else scopes.setdefault(repr(keys), len(scopes))


def _in_order(tombstones: list[Tombstone]) -> tuple[Tombstone, ...]:
    return tuple(sorted(tombstones, key=lambda one: (one.ordinal, one.id)))
