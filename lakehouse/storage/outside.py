"""Finds rows that a replace must not contain: outside its interval, or with keys that it does not name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.segment import NewSegment
from lakehouse.core.spec import TableSpec
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.footer import DAMAGE
from lakehouse.storage.warehouse import Warehouse, fetched


@dataclass(frozen=True, slots=True)
class Outside:
    """How many rows lie outside, and an example: the column concerned and its value."""

    rows: int
    column: str
    example: Any


def values_outside(
    warehouse: Warehouse,
    files: Sequence[NewSegment],
    spec: TableSpec,
    interval: Interval | None,
    keys: KeyScope | None = None,
) -> Outside | None:
    """Count the rows of just-written files that lie outside an interval or a key scope; None if every row is inside.

    Footers decide if they can; otherwise only the columns concerned are read, a batch at a time. Keys compare
    null-safe.
    """
    found: Outside | None = None
    for one in files:
        late = interval is not None and not interval.contains(one.interval)
        keyed = [column for column, values in (keys or {}).items() if not _all_listed(one, column, values)]
        if not late and not keyed:
            continue
        among = {name: (keys or {})[name] for name in keyed}
        with fetched(warehouse, [one]):
            counted = _count(warehouse.root / one.path, spec, interval if late else None, among)
        if counted is not None:
            found = counted if found is None else Outside(found.rows + counted.rows, found.column, found.example)
    return found


def _all_listed(file: NewSegment, column: str, values: tuple[Any, ...]) -> bool:
    """Whether the footer alone shows that every value is listed: one value (bounds meet) and no unlisted null."""
    nulls = file.nulls.get(column)
    if nulls is None or (nulls and None not in values):
        return False
    if nulls == file.rows:
        return True
    return column in file.min and column in file.max and file.min[column] == file.max[column] in values


def _count(path: Path, spec: TableSpec, interval: Interval | None, keys: KeyScope) -> Outside | None:
    stored = spec.stored_names
    names = [*keys, *([spec.time] if interval else [])]
    columns = [stored.get(name, name) for name in names]
    found: Outside | None = None
    try:
        with pq.ParquetFile(path) as file:
            for read in file.iter_batches(columns=columns):
                batch = read.select(columns).rename_columns(names)
                outside, column = _outside(batch, spec, interval, keys)
                rows = pc.sum(outside).as_py() or 0
                if not rows:
                    continue
                if found is None:
                    first = pc.index(outside, True).as_py()
                    found = Outside(0, column, batch.column(column)[first].as_py())
                found = Outside(found.rows + rows, found.column, found.example)
    except DAMAGE as error:
        raise SegmentUnreadable("data file cannot be read; restore it", path=str(path), cause=error) from error
    return found


def _outside(
    batch: pa.RecordBatch, spec: TableSpec, interval: Interval | None, keys: KeyScope
) -> tuple[pa.BooleanArray, str]:
    """Which rows of a batch lie outside, and a column in which the first of them does."""
    masks: dict[str, pa.BooleanArray] = {}
    if interval is not None:
        times = batch.column(spec.time).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        masks[spec.time] = pc.or_(pc.less(times, interval.start_us), pc.greater_equal(times, interval.end_us))
    for name, values in keys.items():
        column = batch.column(name)
        masks[name] = pc.invert(pc.is_in(column, value_set=pa.array(values, column.type)))
    together = None
    for mask in masks.values():
        together = mask if together is None else pc.or_(together, mask)
    assert together is not None
    first = pc.index(together, True).as_py()
    for name, mask in masks.items():
        if first >= 0 and mask[first].as_py():
            return together, name
    return together, spec.time
