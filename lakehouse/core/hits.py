"""Rows that an operation found and removes or rewrites, and what others did to them meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from lakehouse.core.interval import ALL_TIME, Interval, from_us
from lakehouse.core.keys import KeyScope
from lakehouse.core.sets import row_ids_of
from lakehouse.core.spec import ORDINAL, ROW_ID

Mask = npt.NDArray[np.bool_]
EVERYTHING = int(np.iinfo(np.int64).max)
"""An ordinal above all others: of what hides rows however new they are."""


class Removal(NamedTuple):
    """What took an interval (of some keys) over: every row there with a smaller ordinal is gone."""

    interval: Interval
    keys: KeyScope | None
    ordinal: int


@dataclass(frozen=True)
class Hits:
    """Rows found at one version: their ids, times, ordinals, and the columns that tombstones' keys are about.

    ``rows`` has `ROW_ID`, `ORDINAL`, the time column and the columns of cluster and primary key. ``after`` has the new
    values of those rows that are rewritten: `ROW_ID`, the time column and the cluster columns; None if none are.
    ``inserted`` has the time and cluster columns of rows that are added beside. Without a time column (``time`` is
    empty) every row lies in all of time.
    """

    time: str
    rows: pa.Table
    after: pa.Table | None = None
    inserted: pa.Table | None = None

    @cached_property
    def row_ids(self) -> BitMap64:
        """Ids of all rows."""
        return row_ids_of(self.rows.column(ROW_ID))

    @cached_property
    def interval(self) -> Interval:
        """From the first to the last time before the change. There is at least one row."""
        return _span(self.rows, self.time)

    @cached_property
    def interval_after(self) -> Interval | None:
        """From the first to the last time after the change; None if nothing is rewritten."""
        return None if self.after is None or not len(self.after) else _span(self.after, self.time)

    def removed_by(self, removal: Removal) -> BitMap64:
        """Ids of the rows that something took over."""
        found = _inside(self.rows, self.time, removal.interval, removal.keys)
        found &= self.rows.column(ORDINAL).to_numpy() < removal.ordinal
        return self._ids(found)

    def with_keys(self, keys: pa.Table) -> BitMap64:
        """Ids of the rows whose primary key is in a table of them."""
        names = keys.column_names
        listed = self.rows.select([*names, ROW_ID])
        kept = listed.join(keys, names, join_type="left semi") if len(names) else listed
        return row_ids_of(kept.column(ROW_ID))

    def moved_out(self, interval: Interval, keys: KeyScope | None) -> BitMap64:
        """Ids of rewritten rows that lie in an interval and key scope before, and not after."""
        if self.after is None:
            return BitMap64()
        before = self._ids(_inside(self.rows, self.time, interval, keys)) & row_ids_of(self.after.column(ROW_ID))
        return before - self.covered_after(interval, keys)

    def covered_after(self, interval: Interval, keys: KeyScope | None) -> BitMap64:
        """Ids of rewritten rows that lie in an interval and key scope after."""
        if self.after is None:
            return BitMap64()
        found = _inside(self.after, self.time, interval, keys)
        return row_ids_of(self.after.column(ROW_ID).filter(pa.array(found)))

    def inserts_into(self, interval: Interval, keys: KeyScope | None) -> bool:
        """Whether a row that is added lies in an interval and key scope."""
        return self.inserted is not None and bool(_inside(self.inserted, self.time, interval, keys).any())

    def _ids(self, mask: Mask) -> BitMap64:
        return row_ids_of(self.rows.column(ROW_ID).filter(pa.array(mask)))


def lost(hits: Hits, removals: Iterable[Removal], rewritten: Iterable[BitMap64], keys: Iterable[pa.Table]) -> BitMap64:
    """Ids of hits that others removed or rewrote: took over, matched by row id, or by primary key."""
    found = BitMap64()
    for removal in removals:
        found |= hits.removed_by(removal)
    for row_ids in rewritten:
        found |= row_ids & hits.row_ids
    for table in keys:
        found |= hits.with_keys(table)
    return found


def _span(rows: pa.Table, time: str) -> Interval:
    if not time:
        return ALL_TIME
    bounds = pc.min_max(_instants(rows, time))
    return Interval(from_us(bounds["min"].as_py()), from_us(bounds["max"].as_py() + 1))


def _instants(rows: pa.Table, time: str) -> pa.ChunkedArray:
    return rows.column(time).cast(pa.timestamp("us")).cast(pa.int64())


def _inside(rows: pa.Table, time: str, interval: Interval, keys: KeyScope | None) -> Mask:
    found: Mask = np.ones(len(rows), dtype=np.bool_)
    if time:
        instants = _instants(rows, time).to_numpy()
        found = (instants >= interval.start_us) & (instants < interval.end_us)
    for name, values in (keys or {}).items():
        column = rows.column(name)
        listed = pc.is_in(column, pa.array(list(values), column.type), skip_nulls=False)
        found &= listed.to_numpy(zero_copy_only=False) if isinstance(listed, pa.Array) else listed.to_numpy()
    return found
