"""Rows of the change feed: what some pieces of a commit put and took, read in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from lakehouse.core.feed import CommitDelta, Piece, among, overlapping
from lakehouse.core.plan import plan_read
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.sets import row_id_array, row_ids_of
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import ROW_ID, TableSpec, Verify
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine import Query
from lakehouse.engine.hidden import Part, plan_parts
from lakehouse.reading.compared import differing
from lakehouse.reading.feed_columns import COMMIT_TIME, Constants, both_kinds, changes_schema, in_turn
from lakehouse.reading.scan import sets_of
from lakehouse.session.session import Session
from lakehouse.storage.holds import Holder
from lakehouse.storage.same import same_columns
from lakehouse.storage.verify import verified

GROUP_ROWS, GROUP_BYTES = 1 << 18, 64 << 20
"""Of how many rows and bytes of files small pieces of a commit are read together."""
PAIRED_BYTES = 128 << 20
"""Of how many bytes of updated rows both forms are in memory at once."""
_FEW_ROWS = 1 << 13
"""Of how many rows batches are as fast as larger ones."""
Mask = npt.NDArray[np.bool_]


class _Side(NamedTuple):
    """What a commit changed, as the state before it or the one after it has it."""

    whole: Segments
    """Segments that only this side has."""
    partly: Segments
    """Those that stayed, of which it may show rows that the other does not."""
    segments: Segments
    """Both."""
    tombstones: tuple[Tombstone, ...]


class CommitReader:
    """Reads what one commit did, some of its pieces at a time. Without ``changes``, only rows that it put."""

    def __init__(
        self,
        session: Session,
        spec: TableSpec,
        delta: CommitDelta,
        *,
        changes: bool,
        verify: Verify | None = None,
    ) -> None:
        self._session, self._spec, self._delta, self._changes = session, spec, delta, changes
        self._verify = spec.verify if verify is None else verify
        self._before = _Side(delta.dropped, delta.masked, delta.losses, delta.before)
        self._after = _Side(delta.added, delta.unmasked, delta.gains, delta.after)
        self._known: tuple[Any, BitMap64] | None = None
        """What `_only` last found, and of what."""
        self._constants = Constants()
        self.schema: pa.Schema = changes_schema(spec.schema) if changes else spec.schema

    def is_by_id(self, piece: Piece) -> bool:
        """Whether the rows of a piece can be read in the order of their ids: all are new ones.

        Those of a file that a restore brought back may be what a compaction has put elsewhere since.
        """
        added = among(self._delta.added, np.array([piece.position.file]))
        if not len(added):
            return False
        if self._delta.snapshot_at is not None:
            return True
        return not (added.flags("has_row_ids").any() or overlapping(added, self._delta.losses).any())

    def by_id(self, piece: Piece, after: int | None) -> Iterator[tuple[pa.RecordBatch, IntArray]]:
        """The rows of a piece that `is_by_id` after one of them, and their ids."""
        added = among(self._delta.added, np.array([piece.position.file]))
        names = self._spec.schema.names
        query = self._query(added, self._delta.after, names, row_ids=True)
        if not query.plan.groups:
            return
        engine = self._session.local_engine
        is_stored = bool(added.flags("has_row_ids").any())
        for batch in engine.by_row_id(query) if is_stored else engine.read(query).decoded():
            ids = batch.column(ROW_ID).to_numpy()
            if after is not None and len(ids) and ids[0] <= after:
                batch, ids = batch.filter(pa.array(ids > after)), ids[ids > after]  # noqa: PLW2901
            for rows in self._typed(batch.select(names), "insert"):
                yield rows, ids

    def read(self, pieces: Sequence[Piece], after: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of some pieces, those that were taken first; both forms of an update are next to each other.

        Of the first piece only rows after one, by id. Cost: the pieces' files, of segments that stayed those with
        changed rows, and row ids of what may hold the other form of a row.
        """
        if after is not None:
            yield from (rows for rows, _ in self.by_id(pieces[0], after))
            pieces = pieces[1:]
        files = [one.position.file for one in pieces]
        lost = np.array([-one for one in files if one < 0], dtype=np.int64)
        put = np.array([one for one in files if one > 0], dtype=np.int64)
        if len(lost):
            yield from self._taken(lost)
        if len(put):
            yield from self._put(put)

    def _taken(self, files: IntArray) -> Iterator[pa.RecordBatch]:
        """Rows that were deleted: taken from here and put nowhere."""
        delta = self._delta
        dropped, masked = among(delta.dropped, files), among(delta.masked, files)
        if len(dropped):
            appeared = row_id_array(self._appeared)
            for rows, ids in self._rows(dropped, delta.before, row_ids=len(appeared) > 0):
                yield from self._typed(rows if ids is None else _without(rows, ids, appeared), "delete")
        if len(masked):
            gone = row_id_array(self._only(masked, self._before, self._after) - self._appeared)
            for rows, _ in self._chosen(masked, delta.before, gone):
                yield from self._typed(rows, "delete")

    def _put(self, files: IntArray) -> Iterator[pa.RecordBatch]:
        """Rows that were inserted, and rows that were updated: taken from somewhere and put here."""
        delta = self._delta
        added, unmasked = among(delta.added, files), among(delta.unmasked, files)
        pairs = _Pairs(self, added if not len(unmasked) else added[:0])
        if len(added):
            for rows, ids in self._rows(added, delta.after, row_ids=bool(self._removed)):
                yield from pairs.sorted_out(rows, ids)
        if len(unmasked):
            shown = row_id_array(self._only(unmasked, self._after, self._before))
            for rows, ids in self._chosen(unmasked, delta.after, shown):
                yield from pairs.sorted_out(rows, ids)
        yield from pairs.rest()

    # Which rows

    @cached_property
    def _appeared(self) -> BitMap64:
        """Ids of rows that were put somewhere, as far as they may have been taken from anywhere."""
        return self._crossed(self._after, self._before)

    @cached_property
    def _removed(self) -> BitMap64:
        """Ids of rows that were taken from somewhere, as far as they may have been put anywhere."""
        return self._crossed(self._before, self._after)

    def _crossed(self, here: _Side, there: _Side) -> BitMap64:
        """Ids of rows that only one side shows of a segment, of segments whose ids may be among the other's."""
        near = overlapping(here.segments, there.segments)
        if not near.any():
            return BitMap64()
        ids = here.segments.where(near).ids
        return self._visible(among(here.whole, ids), here.tombstones) | self._only(among(here.partly, ids), here, there)

    def _only(self, stayed: Segments, here: _Side, there: _Side) -> BitMap64:
        """Ids of rows of segments that stayed which only one side shows."""
        key = here.tombstones, stayed.ids.tobytes()
        if self._known is None or self._known[0] != key:
            shown = self._visible(stayed, here.tombstones) if len(stayed) else BitMap64()
            self._known = key, shown - self._visible(stayed, there.tombstones) if shown else shown
        return self._known[1]

    def _visible(self, segments: Segments, tombstones: Iterable[Tombstone]) -> BitMap64:
        """Ids of visible rows. Files are read only where they store row ids, or where their values decide."""
        found = BitMap64()
        query = self._query(segments, tombstones, self._spec.schema.names[:1], row_ids=True)
        looked_at: list[Any] = []
        for part in plan_parts(query):
            if part.condition is None and not part.masks and all(_is_range(one) for one in part.segments):
                found |= _by_place(part)
            else:
                looked_at.extend(part.segments)
        if looked_at:
            for _, ids in self._rows(Segments.of(looked_at), tombstones, row_ids=True, columns=()):
                found |= row_ids_of(ids)
        return found

    # Rows

    def _rewritten(self, added: Segments, rows: int) -> tuple[Segments, frozenset[str]]:
        """Segments each of which one of these replaced row by row, if they have so many rows, and what stayed alike.

        Whether rows have the places that they had is for the caller to see; if so, they are the same in those columns.
        """
        losses, nothing = self._delta.losses, frozenset[str]()
        if self._spec.columns or self._session.warehouse.cache is not None or added.numbers("rows").sum() != rows:
            return losses, nothing
        near = losses.where(overlapping(losses, added))
        known = {one.row_ids: one for one in near if _is_range(one)}
        pairs = [(known.get(one.row_ids), one) for one in added if _is_range(one)]
        former = Segments.of([old for old, _ in pairs if old is not None])
        if not len(former) == len(added) == len(pairs):
            return losses, nothing
        holder = Holder()
        files = verified(self._session.warehouse, [*former, *added], self._verify, (), holder)
        alike = nothing.union(self._spec.schema.names)
        for old, new in zip(former, added, strict=True):
            alike &= same_columns(files[old.path], files[new.path])
        return (former, alike) if alike else (losses, nothing)

    def _chosen(
        self,
        segments: Segments,
        tombstones: Iterable[Tombstone],
        chosen: IntArray,
        columns: Sequence[str] | None = None,
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Visible rows of some segments with ids that are chosen, in order. Files that can have none are not read."""
        if not len(chosen):
            return
        least, greatest = segments.row_ids
        there = np.searchsorted(chosen, least, side="left") < np.searchsorted(chosen, greatest, side="right")
        segments = segments.where(there)
        if not len(segments):
            return
        for rows, ids in self._rows(segments, tombstones, row_ids=True, columns=columns):
            mask = is_among(ids.to_numpy(), chosen)
            if mask.all():
                yield rows, ids
            elif mask.any():
                yield rows.filter(pa.array(mask)), ids.filter(pa.array(mask))

    def _rows(
        self,
        segments: Segments,
        tombstones: Iterable[Tombstone],
        *,
        row_ids: bool,
        columns: Sequence[str] | None = None,
    ) -> Iterator[tuple[pa.RecordBatch, Any]]:
        """Visible rows of some segments, and their ids if they are asked for."""
        names = self._spec.schema.names if columns is None else list(columns) or [self._spec.lean_column]
        query = self._query(segments, tombstones, names, row_ids=row_ids)
        if not query.plan.groups:
            return
        for batch in self._session.local_engine.read(query).decoded():
            if len(batch):
                yield batch.select(names), batch.column(ROW_ID) if row_ids else None

    def _query(
        self, segments: Segments, tombstones: Iterable[Tombstone], columns: Sequence[str], *, row_ids: bool
    ) -> Query:
        plan = replace(plan_read(segments, tombstones, version=self._delta.version), erasure=self._delta.erasure)
        return Query(
            plan,
            self._spec,
            self._session.warehouse,
            tuple(columns),
            row_ids=row_ids,
            sets=sets_of(self._session, plan),
            verify=self._verify,
        )

    def _typed(self, rows: pa.RecordBatch, change: Any) -> Iterator[pa.RecordBatch]:
        """Rows as they are given out; ``change`` is their type, or one for each."""
        if not len(rows):
            return
        columns = list(rows.columns)
        if self._changes:
            constants, count = self._constants, len(rows)
            kinds = constants.of(change, pa.string(), count) if isinstance(change, str) else change
            version = constants.of(self._delta.version, pa.int64(), count)
            columns += [kinds, version, constants.of(self._delta.committed_us, COMMIT_TIME, count)]
        yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def read_appends(
    session: Session, spec: TableSpec, deltas: Sequence[CommitDelta], verify: Verify
) -> Iterator[pa.RecordBatch]:
    """Changes of commits that only appended, all their files in one read; by its id a row is known to be one commit's.

    For a table whose files are all alike.
    """
    segments = Segments.joined([delta.added for delta in deltas])
    counts = [len(delta.added) for delta in deltas]
    firsts = segments.numbers("first_row_id")
    order = np.argsort(firsts, kind="stable")
    firsts = firsts[order]
    versions = np.repeat(np.array([one.version for one in deltas], dtype=np.int64), counts)[order]
    times = np.repeat(np.array([one.committed_us or 0 for one in deltas], dtype=np.int64), counts)[order]
    plan = replace(plan_read(segments, (), version=deltas[-1].version), erasure=deltas[0].erasure)
    names = tuple(spec.schema.names)
    query = Query(plan, spec, session.warehouse, names, row_ids=True, verify=verify)
    schema, constants = changes_schema(spec.schema), Constants()
    for batch in session.local_engine.read(query).decoded():
        if not len(batch):
            continue
        ids, count = batch.column(ROW_ID).to_numpy(), len(batch)
        place, last = np.searchsorted(firsts, [ids.min(), ids.max()], side="right") - 1
        places = np.repeat(place, count) if place == last else np.searchsorted(firsts, ids, side="right") - 1
        of = pa.array(versions[places]), pa.array(times[places], COMMIT_TIME)
        columns = [*batch.columns[: len(names)], constants.of("insert", pa.string(), count), *of]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


class _Pairs:
    """Sorts rows that were put into inserted ones and updated ones, and joins these with what they were."""

    def __init__(self, reader: CommitReader, added: Segments) -> None:
        self._reader = reader
        self._added = added
        """Of which segments all rows are, if they are known."""
        self._rows: list[pa.RecordBatch] = []
        self._ids: list[IntArray] = []
        self._bytes = 0

    def sorted_out(self, rows: pa.RecordBatch, ids: Any) -> Iterator[pa.RecordBatch]:
        """Rows that can be given out now."""
        reader = self._reader
        if ids is None:
            yield from reader._typed(rows, "insert")
            return
        numbers = ids.to_numpy()
        mask = is_among(numbers, self._removed_ids)
        if not mask.all():
            yield from reader._typed(rows.filter(pa.array(~mask)) if mask.any() else rows, "insert")
            rows, numbers = rows.filter(pa.array(mask)), numbers[mask]
        if len(rows):
            self._rows.append(rows)
            self._ids.append(numbers)
            self._bytes += rows.nbytes
        if self._bytes >= PAIRED_BYTES:
            yield from self.rest()

    @cached_property
    def _removed_ids(self) -> IntArray:
        return row_id_array(self._reader._removed)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Both forms of the updated rows that are held, by row id."""
        if not self._rows:
            return
        reader, delta = self._reader, self._reader._delta
        new, ids = self._rows, np.concatenate(self._ids)
        self._rows, self._ids, self._bytes = [], [], 0
        former, alike = reader._rewritten(self._added, len(ids))
        names = [one for one in reader._spec.schema.names if one not in alike]
        old, old_ids = self._former(former, ids, names)
        if len(old_ids) != len(ids) or (old_ids != ids).any():
            if alike:
                names = reader._spec.schema.names
                old, old_ids = self._former(delta.losses, ids, names)
            old, new = _aligned(old, old_ids, new, ids)
        for before, after in _side_by_side(_in_fewer(old), _in_fewer(new)):
            yield from self._changed(before, after, names)

    def _former(self, segments: Segments, ids: IntArray, names: Sequence[str]) -> tuple[list[pa.RecordBatch], IntArray]:
        """Some columns of rows as they were, and their ids."""
        reader = self._reader
        parts = list(reader._chosen(segments, reader._delta.before, in_order(ids), names))
        found = [one.to_numpy() for _, one in parts] or [ids[:0]]
        return [rows for rows, _ in parts], np.concatenate(found)

    def _changed(self, old: pa.RecordBatch, new: pa.RecordBatch, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Of rows that are both forms of each other those that differ in some columns; other columns are alike."""
        reader = self._reader
        differs = differing(old, new, names)
        count = int(differs.sum())
        if not count:
            return
        if count < len(new):
            mask = pa.array(differs)
            old, new = old.filter(mask), new.filter(mask)
        if not reader._changes:
            yield from reader._typed(new, "update_after")
            return
        both = [
            in_turn(old.column(name) if name in names else values, values)
            for name, values in zip(new.schema.names, new.columns, strict=True)
        ]
        yield from reader._typed(pa.RecordBatch.from_arrays(both, schema=new.schema), both_kinds(count))


def _in_fewer(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same rows; joined, if they are in batches of a few rows each."""
    if sum(map(len, batches)) >= _FEW_ROWS * len(batches):
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _side_by_side(
    one: Iterable[pa.RecordBatch], other: Iterable[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """The rows of two lists, which have as many, in pairs of batches that are as long as each other."""
    rest, others = iter(one), iter(other)
    first, second = next(rest, None), next(others, None)
    while first is not None and second is not None:
        rows = min(len(first), len(second))
        yield first.slice(0, rows), second.slice(0, rows)
        first = first.slice(rows) if len(first) > rows else next(rest, None)
        second = second.slice(rows) if len(second) > rows else next(others, None)


def is_among(ids: IntArray, wanted: IntArray) -> Mask:
    """Which ids are among wanted ones, which are in ascending order.

    >>> is_among(np.array([7, 3, 9]), np.array([3, 4, 9])).tolist()
    [False, True, True]
    """
    if not len(wanted):
        return np.zeros(len(ids), dtype=np.bool_)
    if wanted[-1] - wanted[0] == len(wanted) - 1:
        dense: Mask = (ids >= wanted[0]) & (ids <= wanted[-1])
        return dense
    places = np.searchsorted(wanted, ids)
    found: Mask = wanted[np.minimum(places, len(wanted) - 1)] == ids
    return found


def in_order(ids: IntArray) -> IntArray:
    """Distinct ids in ascending order."""
    return ids if (ids[1:] > ids[:-1]).all() else np.sort(ids)


def _aligned(
    old: list[pa.RecordBatch], old_ids: IntArray, new: list[pa.RecordBatch], new_ids: IntArray
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """The rows that are in both, by id."""
    _, place, other = np.intersect1d(old_ids, new_ids, assume_unique=True, return_indices=True)
    return tuple(
        pa.Table.from_batches(rows).take(pa.array(places)).combine_chunks().to_batches()
        for rows, places in ((old, place), (new, other))
    )


def _without(rows: pa.RecordBatch, ids: Any, gone: IntArray) -> pa.RecordBatch:
    mask = is_among(ids.to_numpy(), gone)
    return rows.filter(pa.array(~mask)) if mask.any() else rows


def _is_range(segment: Segment) -> bool:
    """Whether the catalog knows the ids of a segment's rows: they follow each other, as where every row was updated."""
    bounds = segment.row_ids
    return bounds is not None and bounds[1] - bounds[0] + 1 == segment.rows


def _by_place(part: Part) -> BitMap64:
    """Ids of the visible rows of segments whose ids follow each other, of which only places hide some."""
    found = BitMap64()
    for number, one in enumerate(part.segments):
        hidden = part.places[number] if part.places else ()
        if len(hidden) == one.rows or one.row_ids is None:
            continue
        first, last = one.row_ids
        found.add_range(first, last + 1)
        if len(hidden):  # only of segments that store no ids
            found -= BitMap64((part.places[number] + first).astype(np.uint64))
    return found
