"""Why a read leaves segments out: what `lakehouse.core.plan` decides, segment by segment.

It asks the questions of `plan_read` in the same order and of the same functions, so that the two agree: of the segments
that are live, each is in the plan or has one reason here. What indexes leave out after that, only a look into them
tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from lakehouse.core.condition_text import span_text, text_of
from lakehouse.core.interval import Interval
from lakehouse.core.predicate import And, Compare, In, IsNull, Or, Predicate, Unknown
from lakehouse.core.prune import Mask, matching
from lakehouse.core.segment import Segment
from lakehouse.core.segment_columns import BUCKETS
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import Skyline, bounds
from lakehouse.core.tombstone import Tombstone


class Reason(StrEnum):
    """Why no row of a segment can be in the result."""

    TIME = "time"
    """Its interval misses the one that is read."""
    BOUNDS = "min and max"
    """No value between the column's least and greatest passes."""
    BUCKET = "hash bucket"
    """The value lies between them, but in a bucket that holds none of the segment's values."""
    NULLS = "nulls"
    """The column holds only nulls, or none."""
    NO_ALTERNATIVE = "no alternative"
    """Every condition of an OR is ruled out by itself."""
    OVERSHADOWED = "overshadowed"
    """Interval tombstones without keys hide all of it that is read."""
    INDEX = "index"
    """The Bloom filter of a column says that the value is not there."""


@dataclass(frozen=True, slots=True, eq=False)
class Pruned:
    """Segments that a read leaves out for one reason.

    ``condition`` is the one that rules them out, over ``columns``; of TIME the time that is read, else empty.
    """

    reason: Reason
    segments: Segments
    condition: str = ""
    columns: tuple[str, ...] = ()


def why_pruned(
    segments: Iterable[Segment],
    tombstones: Iterable[Tombstone],
    *,
    interval: Interval | None = None,
    predicate: Predicate | None = None,
) -> list[Pruned]:
    """What `plan_read` of the same leaves out, by reason, in the order in which it does.

    A segment is named once, with the first reason that there is. Cost: that of the plan, for each condition.

    >>> short = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1, min={"delay": 3}, max={"delay": 9})
    >>> late = Segment(id=2, start="2013-02-05", end="2013-02-06", ordinal=1, min={"delay": 3}, max={"delay": 9})
    >>> found = why_pruned([short, late], [], interval=Interval.of("2013-01"), predicate=Compare("delay", ">", 9))
    >>> for one in found:
    ...     print([segment.id for segment in one.segments], one.reason, one.condition)
    [2] time 2013-01-01/2013-02-01
    [1] min and max delay > 9
    """
    listed, found = Segments.of(segments), list[Pruned]()
    if interval is not None:
        near = listed.within(interval)
        if len(near) < len(listed):
            starts, ends, _ = listed.bounds
            outside = listed.where((starts >= interval.end_us) | (ends <= interval.start_us))
            found.append(Pruned(Reason.TIME, outside, span_text(interval)))
        listed = near
    if predicate is not None:
        found += _ruled_out(predicate, listed)
        listed = listed.where(matching(predicate, listed))
    hidden = _overshadowed(listed, tombstones, interval)
    if len(hidden):
        found.append(Pruned(Reason.OVERSHADOWED, hidden))
    return found


def _overshadowed(listed: Segments, tombstones: Iterable[Tombstone], interval: Interval | None) -> Segments:
    near = (one for one in tombstones if interval is None or interval.overlaps(one.interval))
    covers = [one for one in near if one.hides_interval]
    starts, ends, ordinals = listed.bounds
    if interval is not None:
        starts, ends = np.maximum(starts, interval.start_us), np.minimum(ends, interval.end_us)
    if not covers or not len(listed):
        return listed[:0]
    return listed.where(Skyline.of(*bounds(covers)).least(starts, ends) > ordinals)


def _ruled_out(predicate: Predicate, listed: Segments) -> Iterator[Pruned]:
    """Segments none of whose rows can pass a condition, by the part of it that says so."""
    match predicate:
        case And(parts):
            for part in parts:
                yield from _ruled_out(part, listed)
                listed = listed.where(matching(part, listed))
            return
        case Unknown():
            return
    out = listed.where(~matching(predicate, listed))
    if not len(out):
        return
    condition, columns = text_of(predicate), tuple(dict.fromkeys(_columns(predicate)))
    match predicate:
        case Or():
            yield Pruned(Reason.NO_ALTERNATIVE, out, condition, columns)
        case IsNull():
            yield Pruned(Reason.NULLS, out, condition, columns)
        case Compare(column) | In(column):
            holds_values = matching(IsNull(column, negated=True), out)
            bucket = holds_values & _has_buckets(out, column) & matching(_between(predicate), out)
            for reason, mask in (
                (Reason.NULLS, ~holds_values),
                (Reason.BOUNDS, holds_values & ~bucket),
                (Reason.BUCKET, bucket),
            ):
                if mask.any():
                    yield Pruned(reason, out.where(mask), condition, columns)


def _has_buckets(segments: Segments, column: str) -> Mask:
    """Which know the hash buckets of a column; of a rounded number bounds alone say less than of its equals."""
    held = segments.statistics(BUCKETS + column)
    if held is None:
        return np.zeros(len(segments), dtype=np.bool_)
    return ~np.asarray(held.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _between(predicate: Compare | In) -> Predicate:
    """The same condition as far as least and greatest values can tell, without hash buckets."""
    match predicate:
        case In(column, values):
            return Or(tuple(_between(Compare(column, "=", value)) for value in values if value is not None))
        case Compare(column, "=", value):
            return And((Compare(column, "<=", value), Compare(column, ">=", value)))
    return predicate


def _columns(predicate: Predicate) -> Iterator[str]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _columns(part)
        case Compare(column) | In(column) | IsNull(column):
            yield column
