"""One stretch of a drawn timeline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lakehouse.core.segment import Segment
from lakehouse.core.tombstone import Tombstone

BarKind = Literal["visible", "overshadowed", "tombstone", "mask"]
"""A mask is a tombstone that hides some rows of its interval: those of its keys or row ids."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One stretch of one segment or tombstone, at the height of its ordinal.

    ``of`` is the segment or tombstone that it is part of.
    """

    kind: BarKind
    start: datetime
    end: datetime
    ordinal: int
    of: Segment | Tombstone
