"""How many rows of each segment tombstones hide, and how many they are compared with: estimates by bounds alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse.core.interval import to_us
from lakehouse.core.keys import KeyScope
from lakehouse.core.predicate import In
from lakehouse.core.prune import matching
from lakehouse.core.row_masks import reached
from lakehouse.core.segment_columns import HIGH, LOW
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import BARE, Skyline, bounds
from lakehouse.core.spec import ROW_ID
from lakehouse.core.tombstone import Tombstone

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_CLASSES = 64
"""Numbers of newer tombstones that are distinguished: above, an estimate leaves out some of the oldest."""
_MOST_KEYED = 2_000
"""Interval tombstones with keys that are looked at, the newest first."""
_MOST_PARTS = 20_000_000
"""Parts of segments between the ends of interval tombstones that are looked at: wide segments have many."""
_VALUES = 8
"""Distinct values that a column is taken to have where its bounds do not tell."""
_MOST_ID = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """For each segment: rows hidden, and whether tombstones of places (``placed``) or of keys (``keyed``) reach it.

    ``newest`` is the greatest ordinal of those (`lakehouse.core.skyline.BARE` for none).
    """

    rows: FloatArray
    placed: Mask
    keyed: Mask
    newest: IntArray
    keys: list[Tombstone] = field(default_factory=list)
    """Key tombstones that reach a segment."""

    @classmethod
    def of(cls, segments: Segments, tombstones: Sequence[Tombstone]) -> Hidden:
        """Look at all of them. What covers a segment wholly is not counted: such segments are dropped, not rewritten.

        Cost: some sorts of the tombstones, a few passes over the segments for each kind of tombstone, and for those of
        keys one for each of at most about fifty bundles.
        """
        length = len(segments)
        found = cls(
            np.zeros(length), np.zeros(length, np.bool_), np.zeros(length, np.bool_), np.full(length, BARE, np.int64)
        )
        if not length or not tombstones:
            return found
        _add_intervals(found, segments, [one for one in tombstones if one.hides_interval])
        _add_scopes(found, segments, [one for one in tombstones if one.kind == "interval" and one.keys])
        _add_row_ids(found, segments, [one for one in tombstones if one.kind == "row"])
        _add_keys(found, segments, [one for one in tombstones if one.kind == "key"])
        np.minimum(found.rows, segments.numbers("rows"), out=found.rows)
        return found


def _add_intervals(found: Hidden, segments: Segments, covers: list[Tombstone]) -> None:
    """Rows in the covered part of a segment's interval, taken to be spread evenly."""
    if not covers:
        return
    starts, ends, ordinals = segments.bounds
    skyline = Skyline.of(*bounds(covers))
    places = np.flatnonzero(skyline.greatest(starts, ends) > ordinals)
    if not len(places):
        return
    first, last = starts[places], ends[places]
    begin = np.searchsorted(skyline.edges, first, side="right")
    count = np.searchsorted(skyline.edges, last, side="left") - begin + 1
    few = np.cumsum(count) <= _MOST_PARTS
    places, first, last, begin, count = places[few], first[few], last[few], begin[few], count[few]
    owner = np.repeat(np.arange(len(places)), count)
    step = begin[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    edges = np.concatenate([[np.iinfo(np.int64).min], skyline.edges, [np.iinfo(np.int64).max]])
    length = np.minimum(edges[step + 1], last[owner]) - np.maximum(edges[step], first[owner])
    is_hidden = skyline.heights[step] > ordinals[places][owner]
    covered = np.bincount(owner, weights=np.where(is_hidden, length, 0), minlength=len(places)) / (last - first)
    partly = covered < 1.0
    places, covered = places[partly], covered[partly]
    found.rows[places] += covered * segments.numbers("rows")[places]
    found.placed[places] = True
    np.maximum.at(found.newest, places, skyline.greatest(starts[places], ends[places]))


def _add_scopes(found: Hidden, segments: Segments, keyed: list[Tombstone]) -> None:
    """Rows of some keys in an interval, for each of many tombstones. Cost: for each the segments near it."""
    if not keyed:
        return
    starts, ends, _ = segments.bounds
    order = np.argsort(starts, kind="stable")
    ordered, widest = starts[order], int((ends - starts).max())
    for one in sorted(keyed, key=lambda one: -one.ordinal)[:_MOST_KEYED]:
        near = np.searchsorted(ordered, [to_us(one.start) - widest, to_us(one.end)])
        _add_scope(found, segments, one, order[near[0] : near[1]])


def _add_scope(found: Hidden, segments: Segments, tombstone: Tombstone, near: IntArray) -> None:
    starts, ends, ordinals = segments.bounds
    start, end = to_us(tombstone.start), to_us(tombstone.end)
    places = near[(ends[near] > start) & (ordinals[near] < tombstone.ordinal)]
    assert tombstone.keys is not None
    for column, values in tombstone.keys.items():
        if len(places):
            places = places[matching(In(column, values), segments.take(places))]
    if not len(places):
        return
    part = segments.take(places)
    covered = (np.minimum(ends[places], end) - np.maximum(starts[places], start)) / (ends[places] - starts[places])
    found.rows[places] += covered * _scope_share(part, tombstone.keys) * part.numbers("rows")
    found.placed[places] = True
    found.newest[places] = np.maximum(found.newest[places], tombstone.ordinal)


def _scope_share(segments: Segments, keys: KeyScope) -> FloatArray:
    """Share of rows that have the keys, values being equally frequent."""
    share = np.ones(len(segments))
    for column, values in keys.items():
        distinct = np.full(len(segments), float(_VALUES))
        low, high = segments.statistics(LOW + column), segments.statistics(HIGH + column)
        if low is not None and high is not None and pa.types.is_integer(low.type):
            spread = np.asarray(high.cast(pa.float64()).to_numpy(zero_copy_only=False))
            spread = spread - np.asarray(low.cast(pa.float64()).to_numpy(zero_copy_only=False)) + 1
            distinct = np.where(np.isnan(spread), distinct, np.minimum(spread, segments.numbers("rows")))
        share *= np.minimum(len(values) / np.maximum(distinct, 1), 1.0)
    return share


def _add_row_ids(found: Hidden, segments: Segments, gone: list[Tombstone]) -> None:
    """A tombstone's rows, spread evenly from its least to its greatest row id, over the segments that are older."""
    if not gone:
        return
    gone = sorted(gone, key=lambda one: -one.ordinal)
    least = np.array([one.min.get(ROW_ID, 0) for one in gone], dtype=np.float64)
    greatest = np.array([one.max.get(ROW_ID, _MOST_ID) for one in gone], dtype=np.float64) + 1
    rows = np.array([one.rows for one in gone], dtype=np.float64)
    newer = np.searchsorted(-np.array([one.ordinal for one in gone]), -segments.ordinals, side="left")
    low, high = (np.asarray(one, dtype=np.float64) for one in segments.row_ids)
    high = high + 1
    places = np.flatnonzero((newer > 0) & (low < greatest.max()) & (high > least.min()))
    classes = np.unique(newer[places])
    if len(classes) > _CLASSES:
        classes = classes[:: -(-len(classes) // _CLASSES)]
    of_class = np.searchsorted(classes, newer[places], side="right") - 1
    for number, count in enumerate(classes.tolist()):
        part = places[of_class == number]
        edges, below = _running(least[:count], greatest[:count], rows[:count])
        ids = high[part] - low[part]
        inside = np.interp(high[part], edges, below) - np.interp(low[part], edges, below)
        held = segments.numbers("rows")[part]
        found.rows[part] += inside * np.minimum(held / np.maximum(ids, 1), 1.0)
    height = Skyline.of(*_as_ids(gone))
    low_id, high_id = segments.row_ids
    newest = height.greatest(low_id, np.maximum(np.minimum(high_id, _MOST_ID - 1), low_id) + 1)
    hit = newest > segments.ordinals
    found.placed[hit] = True
    found.newest[hit] = np.maximum(found.newest[hit], newest[hit])


def _as_ids(gone: list[Tombstone]) -> tuple[IntArray, IntArray, IntArray]:
    least = np.array([one.min.get(ROW_ID, 0) for one in gone], dtype=np.int64)
    greatest = np.array([min(one.max.get(ROW_ID, _MOST_ID), _MOST_ID - 1) for one in gone], dtype=np.int64)
    return least, greatest + 1, np.array([one.ordinal for one in gone], dtype=np.int64)


def _running(least: FloatArray, greatest: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How many rows lie below a row id, as a line through points."""
    edges = np.concatenate([least, greatest])
    slope = rows / np.maximum(greatest - least, 1)
    order = np.argsort(edges, kind="stable")
    edges = edges[order]
    rising = np.cumsum(np.concatenate([slope, -slope])[order])
    below = np.concatenate([[0.0], np.cumsum(rising[:-1] * np.diff(edges))])
    return edges, below


def _add_keys(found: Hidden, segments: Segments, gone: list[Tombstone]) -> None:
    """A bundle's keys, each taken to be in one row of the segments that it reaches."""
    rows = segments.numbers("rows")
    for mask, bundle in reached(segments, gone):
        places = np.flatnonzero(mask)
        held = rows[places]
        found.rows[places] += min(1.0, sum(one.rows for one in bundle) / max(int(held.sum()), 1)) * held
        found.keyed[places] = True
        found.newest[places] = np.maximum(found.newest[places], max(one.ordinal for one in bundle))
        found.keys.extend(bundle)
