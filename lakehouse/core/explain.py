"""Why something can be seen or not: what a laser at one instant strikes, and what stands in its way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Any, Literal

import numpy as np

from lakehouse.core.interval import to_us, to_utc
from lakehouse.core.keys import KeyScope, key_scope, scopes_overlap
from lakehouse.core.prune import Mask, holding
from lakehouse.core.row_masks import reached
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.tombstone import Tombstone

Verdict = Literal["visible", "masked", "hidden", "elsewhere"]
"""All rows asked for come through; some may not; none does; the segment holds none of them."""
Effect = Literal["hides", "masks", "older", "other keys", "other rows"]
"""All rows asked for of a segment; some of them; none, for it was written before; none, for it is about others."""


@dataclass(frozen=True, slots=True)
class Met:
    """A tombstone that a laser meets over a segment, and what it does to the rows asked for."""

    tombstone: Tombstone
    effect: Effect


@dataclass(frozen=True, slots=True)
class ProbedSegment:
    """A segment that a laser strikes, the tombstones that it meets there, newest first, and what comes of it."""

    segment: Segment
    verdict: Verdict
    met: tuple[Met, ...]

    @property
    def blocking(self) -> tuple[Tombstone, ...]:
        """The tombstones that hide every row asked for of this segment; any one of them suffices."""
        return tuple(one.tombstone for one in self.met if one.effect == "hides")


def explain(
    segments: Iterable[Segment],
    tombstones: Iterable[Tombstone],
    instant: Any,
    keys: Mapping[str, Any] | None = None,
    primary_key: Sequence[str] = (),
) -> tuple[ProbedSegment, ...]:
    """What a laser at an instant strikes, newest first, and for each why it can be seen or not.

    ``instant`` is anything that `lakehouse.core.interval.to_utc` reads. ``keys`` asks for rows of listed values of some
    columns only: segments whose bounds or buckets exclude them are ``elsewhere``. A segment is classified by its bounds
    alone, as a plan is made; a key tombstone by its ``primary_keys``, where it has them and ``keys`` lists values of
    each column of the ``primary_key``. ``visible`` says that nothing hides a row of it, not that it has one at the
    instant. Cost: one look at each segment, and one at each pair of a segment and a tombstone over the instant.

    >>> year = Segment(id=1, start="2013-01-01", end="2014-01-01", ordinal=1)
    >>> day = Segment(id=2, start="2013-01-05", end="2013-01-06", ordinal=4)
    >>> replaced = Tombstone(id=3, start="2013-01-05", end="2013-01-06", ordinal=4)
    >>> for probed in explain([year, day], [replaced], "2013-01-05T12:00"):
    ...     print(probed.segment.id, probed.verdict, [(one.tombstone.id, one.effect) for one in probed.met])
    2 visible [(3, 'older')]
    1 hidden [(3, 'hides')]
    """
    at, wanted = to_utc(instant), key_scope(keys)
    over = sorted((one for one in tombstones if one.start <= at < one.end), key=_order, reverse=True)
    struck = _over(Segments.of(segments), at)
    reach = [_reach(one, struck) for one in over]
    found = []
    for place, is_meant in enumerate(holding(wanted, struck).tolist()):
        segment = struck[place]
        if not is_meant:
            found.append(ProbedSegment(segment, "elsewhere", ()))
            continue
        met = tuple(
            Met(one, _effect(one, segment, bool(held[place]), wanted, primary_key))
            for one, held in zip(over, reach, strict=True)
        )
        effects = {one.effect for one in met}
        verdict: Verdict = "hidden" if "hides" in effects else "masked" if "masks" in effects else "visible"
        found.append(ProbedSegment(segment, verdict, met))
    return tuple(sorted(found, key=lambda one: _order(one.segment), reverse=True))


def _over(segments: Segments, at: datetime) -> Segments:
    starts, ends, _ = segments.bounds
    us = to_us(at)
    return segments.where((starts <= us) & (ends > us))


def _reach(tombstone: Tombstone, segments: Segments) -> Mask:
    """Which segments may hold a row that a tombstone is about, by bounds alone."""
    if tombstone.kind == "interval":
        return holding(tombstone.keys, segments)
    return next((mask for mask, _ in reached(segments, [tombstone])), np.zeros(len(segments), dtype=np.bool_))


def _order(entry: Segment | Tombstone) -> tuple[int, Any]:
    return entry.ordinal, entry.id


def _effect(
    tombstone: Tombstone, segment: Segment, reaches: bool, wanted: KeyScope | None, primary_key: Sequence[str]
) -> Effect:
    if tombstone.ordinal <= segment.ordinal:
        return "older"
    if tombstone.kind != "interval":
        if (
            tombstone.primary_keys is not None
            and wanted is not None
            and primary_key
            and wanted.keys() >= {*primary_key}
        ):
            return _by_primary_key(tombstone.primary_keys, list(product(*(wanted[column] for column in primary_key))))
        return "masks" if reaches else "other rows"
    if tombstone.keys is None:
        return "hides"
    if not reaches or not scopes_overlap(tombstone.keys, wanted):
        return "other keys"
    return "hides" if wanted is not None and _covers(tombstone.keys, wanted) else "masks"


def _by_primary_key(held: Collection[tuple[Any, ...]], asked: list[tuple[Any, ...]]) -> Effect:
    found = sum(one in held for one in asked)
    return "hides" if found == len(asked) else "masks" if found else "other keys"


def _covers(scope: KeyScope, wanted: KeyScope) -> bool:
    """Whether every row that is wanted lies in a scope."""
    return all(column in wanted and set(wanted[column]) <= set(values) for column, values in scope.items())
