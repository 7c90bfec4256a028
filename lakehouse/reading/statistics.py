"""Statistics of a table's columns, from the catalog alone: counts, bounds, and sketches of distinct values."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.compute as pc

from lakehouse.catalog.state.summaries import Summaries
from lakehouse.core.distinct import DamagedSketch, Registers, decode_registers, estimate, no_registers
from lakehouse.core.segment_columns import HIGH, LOW, NULLS
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec
from lakehouse.core.summary import ColumnListing, ColumnStatistics, SummaryKind, field_id, sketched_columns

logger = logging.getLogger(__name__)

_SEGMENTS = 1_000
"""How many segments' sketches are in memory at once."""


@dataclass(slots=True)
class _Merged:
    """The merged sketches of one column."""

    registers: Registers = field(default_factory=no_registers)
    bytes: int = 0
    rows: int = 0


def read_statistics(summaries: Summaries, spec: TableSpec, segments: Segments) -> ColumnListing:
    """One value for each column, in the table's order; nested ones have only rows and nulls.

    Cost: a row of the catalog for each segment and column that has a sketch.
    """
    rows = segments.rows
    merged = _merged(summaries, spec, segments)
    found = ColumnListing()
    for column in spec.schema.names:
        nulls = _nulls(segments, column)
        least, greatest = (_bound(segments, column, prefix) for prefix in (LOW, HIGH))
        held = merged.get(column)
        distinct, size, share = None, None, 0.0
        if held is not None:
            distinct = min(round(estimate(held.registers)), held.rows)
            size, share = held.bytes, held.rows / rows
        found.append(ColumnStatistics(column, rows, nulls, least, greatest, distinct, size, share))
    return found


def _merged(summaries: Summaries, spec: TableSpec, segments: Segments) -> dict[str, _Merged]:
    names = {field_id(spec, name): name for name in sketched_columns(spec)}
    rows = dict(zip(segments.ids.tolist(), segments.numbers("rows").tolist(), strict=True)) if segments else {}
    ids: Sequence[int] = sorted(rows)
    merged: dict[str, _Merged] = {}
    for first in range(0, len(ids), _SEGMENTS):
        for one in summaries.read(SummaryKind.SKETCH, ids[first : first + _SEGMENTS]):
            if one.field_id not in names:
                continue
            try:
                registers, size = decode_registers(one.content)
            except DamagedSketch as error:
                logger.warning("a sketch of segment %d is skipped: %s", one.segment, error)
                continue
            into = merged.setdefault(names[one.field_id], _Merged())
            np.maximum(into.registers, registers, out=into.registers)
            into.bytes += size
            into.rows += rows[one.segment]
    return merged


def _nulls(segments: Segments, column: str) -> int | None:
    if not segments:
        return 0
    held = segments.statistics(NULLS + column)
    return None if held is None or held.null_count else int(pc.sum(held).as_py())


def _bound(segments: Segments, column: str, prefix: str) -> Any:
    """The least or greatest bound; None if a segment with values has none."""
    held = segments.statistics(prefix + column)
    if held is None:
        return None
    nulls = segments.statistics(NULLS + column)
    only_nulls = np.zeros(len(segments), np.bool_)
    if nulls is not None:
        only_nulls = nulls.fill_null(-1).to_numpy() == segments.numbers("rows")
    unknown = np.asarray(held.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_) & ~only_nulls
    if unknown.any():
        return None
    return (pc.min if prefix == LOW else pc.max)(held).as_py()
