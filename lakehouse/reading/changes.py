"""Rows that changed between two versions, version by version."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from copy import copy
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from lakehouse.core.commit import Commit
from lakehouse.core.listing import Listing
from lakehouse.core.operation import DEFINITIONS, Kind
from lakehouse.core.plan import plan_read
from lakehouse.core.predicate import And, Predicate
from lakehouse.core.prune import matching
from lakehouse.core.row_masks import reached
from lakehouse.core.segments import Segments
from lakehouse.core.sets import row_id_array, row_ids_of
from lakehouse.core.spec import ROW_ID, TableSpec, Verify
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine import Query
from lakehouse.errors import SegmentUnreadable
from lakehouse.reading.scan import is_replaced, sets_of
from lakehouse.session.session import Session

CHANGE_TYPE, VERSION, TIME = "_change_type", "_commit_version", "_commit_timestamp"
FORMER_VERSION = "_version"
"""The former name of `VERSION`; it will be removed in the next version."""
_TIME = pa.timestamp("us", "UTC")
_LOOKS = 5
_CHANGE_NOTHING = {
    Kind.COMPACTION.value,
    Kind.CLEAN.value,
    Kind.RESOLVE.value,
    Kind.RECOVER.value,
    *(one.value for one in DEFINITIONS),
}


class Changes:
    """Rows inserted, deleted and updated by the commits after one version, up to another.

    Each row has the table's columns at the later version, ``_change_type`` (``insert``, ``delete``, ``update_before``
    or ``update_after``, the last two of one row next to each other), and of its commit ``_commit_version`` and
    ``_commit_timestamp``; in order of versions. ``_version`` is the version's former name, kept for one release. The
    ``_row_id`` identifies a row; a compaction changes none. A row counts as updated if a value differs: null and NaN
    are two values, 0.0 and -0.0 are one. Lazy: each method reads again.

    Examples
    --------
    >>> before = flights.version
    >>> changed = flights.update({"delay": "delay + 1"}, "id = 2")
    >>> flights.changes(since=before).to_arrow().select(["delay", "_change_type"]).to_pydict()
    {'delay': [30, 31], '_change_type': ['update_before', 'update_after']}
    """

    def __init__(self, session: Session, spec: TableSpec, since: int, until: int, verify: Verify | None = None) -> None:
        self._session = session
        self._spec = spec
        self._verify = spec.verify if verify is None else verify
        self._where: Predicate = And(())
        self._held: Changes | None = None
        self.since = since
        self.until = until
        added = [(CHANGE_TYPE, pa.string()), (VERSION, pa.int64()), (TIME, _TIME), (FORMER_VERSION, pa.int64())]
        self.schema = pa.schema([*spec.schema, *(pa.field(*one) for one in added)])

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream: one commit's changes are in memory at a time."""
        return pa.RecordBatchReader.from_batches(
            self.schema, (batch for table in self._tables() for batch in table.to_batches())
        )

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, read in process."""
        return self.to_reader().read_all()

    def to_pandas(self) -> Any:
        """The rows as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars frame."""
        import polars  # noqa: PLC0415 - costs a second of start-up that nobody else should pay

        return polars.from_arrow(self.to_arrow())

    def to_duckdb(self, connection: Any = None) -> Any:
        """The rows as a DuckDB relation, on ``connection`` or on one of its own."""
        import duckdb  # noqa: PLC0415 - only who asks for it needs it

        return (connection or duckdb.connect()).from_arrow(self.to_arrow())

    def to_spark(self) -> Any:
        """The rows as a Spark DataFrame; they are read in process and handed over."""
        return self._session.spark.createDataFrame(self.to_arrow())

    def count(self) -> int:
        """How many rows there are: an update has two."""
        return sum(len(table) for table in self._tables())

    def where(self, tree: Predicate) -> Changes:
        """The same, without files of which no row passes a filter, as far as that leaves every other row as it is.

        Rows that do not pass may be left in. Only what commits added that took nothing away is left out: what became of
        a row elsewhere differs from both of its forms.
        """
        found = copy(self)
        found._where = tree
        return found

    def with_columns(self, spec: TableSpec) -> Changes:
        """The same rows with the columns of another of the table's definitions."""
        found = Changes(self._session, spec, self.since, self.until, self._verify)
        found._held = self  # which keeps the versions from expiry
        return found

    def commits(self) -> Listing[Commit]:
        """The commits that may have changed rows, newest first. Raises `VersionNotFound`."""
        found = self._session.catalog.commits_between(self._spec, self.since, self.until)
        return Listing(one for one in found if one.operation not in _CHANGE_NOTHING)

    def of(self, version: int) -> int:
        """How many rows one commit changed, whatever it was: an update counts two."""
        return sum(len(table) for table in self._at(version))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<changes of {self._spec.name} after version {self.since} up to {self.until}>"

    def _tables(self) -> Iterator[pa.Table]:
        for commit in reversed(self.commits()):
            yield from self._at(commit.version, commit.committed_at)

    def _at(self, version: int, at: datetime | None = None) -> list[pa.Table]:
        """The changes of one commit. Cost: what it added and dropped, and row ids of what its tombstones may reach."""
        for _ in range(_LOOKS):
            before, after = _State(self, version - 1), _State(self, version)
            try:
                return list(self._between(before, after, _Made(version, at)))
            except SegmentUnreadable as error:
                if not is_replaced(self._session, error):
                    raise
        return list(self._between(_State(self, version - 1), _State(self, version), _Made(version, at)))

    def _between(self, before: _State, after: _State, made: _Made) -> Iterator[pa.Table]:
        added, dropped = _apart(after.segments, before.segments), _apart(before.segments, after.segments)
        kept = before.segments.where(np.isin(before.segments.ids, after.segments.ids))
        changed = [
            *_new(after.tombstones, before.tombstones),
            *_new(before.tombstones, after.tombstones),
        ]
        touched = np.zeros(len(kept), dtype=np.bool_)
        for mask in _touched(kept, changed):
            touched |= mask
        kept = kept.where(touched)
        if not len(kept) and not len(dropped):
            added = added.where(matching(self._where, added))
        seen, left = before.row_ids(kept), after.row_ids(kept)
        removed = seen - left | before.row_ids(dropped)
        appeared = left - seen | after.row_ids(added)
        both = removed & appeared
        old = before.rows(_joined(kept, dropped), removed)
        new = after.rows(_joined(kept, added), appeared)
        yield self._typed(_of(old, removed - both), "delete", made)
        yield self._updates(_of(old, both), _of(new, both), made)
        yield self._typed(_of(new, appeared - both), "insert", made)

    def _updates(self, old: pa.Table, new: pa.Table, made: _Made) -> pa.Table:
        """Both forms of each updated row, next to each other."""
        old, new = old.sort_by(ROW_ID), new.sort_by(ROW_ID)
        differs = np.zeros(len(old), dtype=np.bool_)
        for name in self._spec.schema.names:
            differs |= _differ(old.column(name), new.column(name))
        mask = pa.array(differs)
        before = self._typed(old.filter(mask), "update_before", made)
        after = self._typed(new.filter(mask), "update_after", made)
        places = np.arange(len(before) * 2).reshape(2, -1).T.ravel()
        return pa.concat_tables([before, after]).take(pa.array(places))

    def _typed(self, rows: pa.Table, change: str, made: _Made) -> pa.Table:
        columns = [rows.column(name) for name in self._spec.schema.names]
        version = pa.scalar(made.version, pa.int64())
        added = (pa.scalar(change), version, pa.scalar(made.at, _TIME), version)
        columns += [pa.repeat(one, len(rows)) for one in added]
        return pa.Table.from_arrays(columns, schema=self.schema)


class _Made(NamedTuple):
    """A commit: its version, and when it was made, if that is asked for."""

    version: int
    at: datetime | None


class _State:
    """What is live at one version, and which of it is visible."""

    def __init__(self, changes: Changes, version: int) -> None:
        self._session, self._spec, self._version = changes._session, changes._spec, version
        self._verify = changes._verify
        self.segments, self.tombstones = self._session.catalog.live(self._spec, version)

    def row_ids(self, segments: Segments) -> BitMap64:
        """Ids of visible rows of some segments. Other columns are read only if a mask needs them."""
        found = BitMap64()
        for batch in self._read(segments, self._spec.schema.names[:1]):
            found |= row_ids_of(batch.column(ROW_ID))
        return found

    def rows(self, segments: Segments, row_ids: BitMap64) -> pa.Table:
        """Visible rows of some segments with these ids, with ``_row_id``."""
        wanted = row_id_array(row_ids)
        parts = []
        if len(wanted):
            for batch in self._read(segments, self._spec.schema.names):
                mask = np.isin(batch.column(ROW_ID).to_numpy(), wanted)
                if mask.any():
                    parts.append(pa.Table.from_batches([batch]).filter(pa.array(mask)))
        if parts:
            return pa.concat_tables(parts)
        return pa.schema([*self._spec.schema, (ROW_ID, pa.int64())]).empty_table()

    def _read(self, segments: Segments, columns: list[str]) -> Iterator[pa.RecordBatch]:
        plan = plan_read(segments, self.tombstones, version=self._version)
        query = Query(
            plan,
            self._spec,
            self._session.warehouse,
            tuple(columns),
            row_ids=True,
            sets=sets_of(self._session, plan),
            verify=self._verify,
        )
        yield from self._session.local_engine.read(query).reader()


def _apart(segments: Segments, others: Segments) -> Segments:
    return segments.where(~np.isin(segments.ids, others.ids))


def _joined(*parts: Segments) -> Segments:
    return Segments.of([one for part in parts for one in part])


def _new(tombstones: Iterable[Tombstone], before: Iterable[Tombstone]) -> list[Tombstone]:
    known = {one.id for one in before}
    return [one for one in tombstones if one.id not in known]


def _touched(segments: Segments, tombstones: list[Tombstone]) -> Iterator[np.ndarray[Any, np.dtype[np.bool_]]]:
    """Segments of which tombstones may hide a row."""
    starts, ends, ordinals = segments.bounds
    for one in tombstones:
        if one.kind == "interval":
            yield (starts < one.interval.end_us) & (ends > one.interval.start_us) & (ordinals < one.ordinal)
    for mask, _ in reached(segments, tombstones):
        yield mask


def _of(rows: pa.Table, row_ids: BitMap64) -> pa.Table:
    return rows.filter(pa.array(np.isin(rows.column(ROW_ID).to_numpy(), row_id_array(row_ids))))


def _differ(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Any:
    """Where two columns differ. Null equals only null, NaN only NaN, and the two zeros each other."""
    if pa.types.is_nested(one.type):
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.array([not _is_same(a, b) for a, b in pairs], dtype=np.bool_)
    same = pc.or_(pc.equal(one, other).fill_null(False), pc.and_(pc.is_null(one), pc.is_null(other)))
    if pa.types.is_floating(one.type):
        same = pc.or_(same, pc.and_(pc.is_nan(one), pc.is_nan(other)).fill_null(False))
    return ~same.to_numpy()


def _is_same(one: Any, other: Any) -> bool:
    """The same for nested values."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(_is_same(held, other[name]) for name, held in one.items())
        case (list(), list()) | (tuple(), tuple()):
            return len(one) == len(other) and all(map(_is_same, one, other))
        case float(), float():
            return one == other or (math.isnan(one) and math.isnan(other))
        case _:
            return bool(one == other)
