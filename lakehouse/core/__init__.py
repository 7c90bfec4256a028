"""The model itself, pure: plain values in, plain values out, no clock, no randomness and no files.

``timeline`` is the function here, not the module of that name that holds it.
"""

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.segment import Segment, SegmentId
from lakehouse.core.timeline import Slice, Timeline, overshadowed_mask, timeline
from lakehouse.core.tombstone import Tombstone, TombstoneId
from lakehouse.core.visibility import is_visible

__all__ = [
    "Grain",
    "Interval",
    "Segment",
    "SegmentId",
    "Slice",
    "Timeline",
    "Tombstone",
    "TombstoneId",
    "is_visible",
    "overshadowed_mask",
    "timeline",
]
