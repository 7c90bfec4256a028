"""Looks up indexes of segments, so that a read leaves out segments without any of its values."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakehouse.catalog.state.summaries import Summaries
from lakehouse.core.bloom import Blocks, DamagedFilter, Owner, Probe, decode_blocks, may_hold_any, may_hold_stored
from lakehouse.core.group import ReadGroup
from lakehouse.core.hashing import Hashes
from lakehouse.core.lookup import asks, matching_indexed
from lakehouse.core.plan import ReadPlan
from lakehouse.core.predicate import Predicate
from lakehouse.core.prune import Mask
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec
from lakehouse.core.summary import Summary, SummaryKind, field_id, indexed_columns
from lakehouse.errors import SegmentUnreadable, coded
from lakehouse.remembered import Remembered
from lakehouse.storage.holds import Holder
from lakehouse.storage.paths import Locator
from lakehouse.storage.summaries import read_part
from lakehouse.storage.warehouse import Warehouse

logger = logging.getLogger(__name__)

_REMEMBERED_BYTES = 64 << 20
TOGETHER = 2_000
"""How many segments' indexes are in memory at once, apart from the cache."""
_COST_BYTES = 400
"""Memory of a cached index beside its blocks."""
_Held: TypeAlias = "Blocks | Summary"
"""An index's blocks, or where its file is."""


class IndexCache:
    """Indexes by segment and column: the least recently used leave when a size is exceeded. Thread-safe.

    An index in a file is read a page at a time; only its location is cached. One that is missing or damaged is skipped
    with a warning, and its segment is read.
    """

    def __init__(self, summaries: Summaries, warehouse: Warehouse, size: int = _REMEMBERED_BYTES) -> None:
        self._summaries = summaries
        self._warehouse = warehouse
        self._held: Remembered[tuple[int, int], _Held] = Remembered(size)

    def narrowed(self, plan: ReadPlan, spec: TableSpec, predicate: Predicate | None) -> ReadPlan:
        """The plan without the segments whose indexes rule out every row.

        Free for tables without the property ``index`` and for predicates that indexes cannot serve. Otherwise it costs
        a catalog query for each condition, and a page for each value and each segment that nothing else left out.
        """
        names = indexed_columns(spec)
        if predicate is None or not names or not plan.groups:
            return plan
        indexed = pa.schema([spec.schema.field(name) for name in names])
        if not asks(predicate, indexed):
            return plan
        kept = matching_indexed(predicate, plan.segments, indexed, partial(self._look, spec))
        if kept.all():
            return plan
        groups, first = [], 0
        for group in plan.groups:
            end = first + len(group.segments)
            segments = Segments.of(group.segments).where(kept[first:end])
            groups += [ReadGroup(segments, group.tombstones)] if len(segments) else []
            first = end
        return replace(plan, groups=tuple(groups))

    def _look(self, spec: TableSpec, column: str, segments: Segments, hashes: Hashes) -> Mask:
        """For each segment whether it may hold a value; called by `lakehouse.core.lookup`."""
        field, probe = field_id(spec, column), Probe.of(hashes)
        ids = segments.ids.tolist()
        parts = [self._look_at(ids[first : first + TOGETHER], field, probe) for first in range(0, len(ids), TOGETHER)]
        return np.concatenate(parts) | _has_other_values(spec, column, segments)

    def _look_at(self, ids: list[int], field: int, probe: Probe) -> Mask:
        held = self._indexes(ids, field)
        found = np.ones(len(ids), np.bool_)
        there = [(place, held[one]) for place, one in enumerate(ids) if one in held]
        inline = [(place, one) for place, one in there if not isinstance(one, Summary)]
        found[[place for place, _ in inline]] = may_hold_any([one for _, one in inline], probe)
        stored = [(place, one) for place, one in there if isinstance(one, Summary)]
        found[[place for place, _ in stored]] = self._stored_may_hold([one for _, one in stored], probe)
        return found

    def _stored_may_hold(self, stored: list[Summary], probe: Probe) -> list[bool]:
        """Whether indexes in files may hold one of some values; one that cannot be read may hold anything."""
        holder = Holder()
        failures = self._warehouse.fetch(stored, holder=holder) if stored else {}
        locator = Locator(self._warehouse.root)
        return [_holds_any(one, probe, locator, failures.get(one.path)) for one in stored]

    def _indexes(self, segments: list[int], field: int) -> dict[int, _Held]:
        """The existing indexes of one column, by segment."""
        known = self._held.known((segment, field) for segment in segments)
        found = {segment: held for (segment, _), held in known.items()}
        missing = [segment for segment in segments if segment not in found]
        for one in self._summaries.read(SummaryKind.INDEX, missing, field) if missing else ():
            held = self._decoded(one)
            if held is not None:
                found[one.segment] = held
                self._remember((one.segment, field), held)
        return found

    def _decoded(self, stored: Summary) -> _Held | None:
        if stored.path:
            return stored
        try:
            return decode_blocks(stored.content, Owner(stored.segment, stored.field_id))
        except DamagedFilter as error:
            logger.warning("the index of segment %d is skipped, the segment is read: %s", stored.segment, error)
            return None

    def _remember(self, key: tuple[int, int], held: _Held) -> None:
        cost = _COST_BYTES + (0 if isinstance(held, Summary) else held.nbytes)
        self._held.put(key, held, cost)


def _has_other_values(spec: TableSpec, column: str, segments: Segments) -> Mask:
    """For each segment whether its file lacks a column, or has it with another type: an index does not tell of it."""
    if not spec.columns:
        return np.zeros(len(segments), np.bool_)
    numbers = segments.numbers("schema_number")
    place = spec.schema.get_field_index(column)
    held = {one: spec.layout(one)[place] for one in np.unique(numbers).tolist()}
    return np.isin(numbers, [number for number, one in held.items() if one.type != one.wanted])


def _holds_any(held: Summary, probe: Probe, locator: Locator, failure: SegmentUnreadable | None) -> bool:
    try:
        if failure is not None:
            raise failure
        read = partial(read_part, locator.file(held.path))
        return bool(may_hold_stored(held.bytes, read, probe, Owner(held.segment, held.field_id)).any())
    except (DamagedFilter, OSError, SegmentUnreadable) as error:
        logger.warning("the index in %s is skipped, its segment is read: %s", held.path, coded(error))
        return True
