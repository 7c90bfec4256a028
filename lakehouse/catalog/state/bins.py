"""What is live in a table's bins at a version: the newest key frame at or before it, and the deltas since.

What was read is cached, because it never changes: from a bin at one version, the next is reached by reading one delta.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, Table, select, text

from lakehouse.catalog.store.models import (
    bin,  # noqa: A004 - the word of the scheme
    segment,
    tombstone,
)
from lakehouse.catalog.store.prepared import Prepared
from lakehouse.catalog.store.rows import (
    DamagedPage,
    SegmentsForm,
    decode_page,
    segments_from_rows,
    tombstone_from_row,
)
from lakehouse.core.bins import bin_interval, bin_ranges
from lakehouse.core.interval import Interval, hull
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.version import ADD
from lakehouse.errors import InternalError
from lakehouse.remembered import Remembered

V = TypeVar("V")
BATCH = 400
"""How many values are bound in one statement; databases limit them."""
logger = logging.getLogger(__name__)

Ranges = Sequence[tuple[int, int]]
"""Closed ranges of bins."""
_REMEMBERED = 4_000_000
"""About how many segments and tombstones a process caches."""


@dataclass(frozen=True, eq=False)
class BinState:
    """One bin at one version: ``version`` is the newest that changed it, ``body`` has the live segments in columns.

    ``erased`` is the table's newest erasure when it was read, because an erasure changes earlier versions.
    """

    bin: int
    version: int
    body: pa.Table
    tombstones: Mapping[int, Tombstone]
    erased: int = 0

    @cached_property
    def segments(self) -> Segments:
        """The live segments."""
        return Segments.in_columns(self.body)

    @property
    def ids(self) -> IntArray:
        """Ids of everything live."""
        return np.concatenate([self.segments.ids, np.fromiter(self.tombstones, dtype=np.int64)])


_Key = tuple[int, int]
"""A table, and a number for each of its definitions: states have the names and types that columns have under it."""


class _Memory:
    """States by table and bin, a few versions of each."""

    _VERSIONS = 3

    def __init__(self, size: int) -> None:
        self._bins: Remembered[tuple[_Key, int], tuple[BinState, ...]] = Remembered(size)

    def best(self, table: _Key, bin: int, version: int, erased: int) -> BinState | None:
        """The newest cached state at or before ``version`` that was read after an erasure."""
        held = self._bins.get((table, bin)) or ()
        known = (one for one in held if one.version <= version and one.erased == erased)
        return max(known, key=lambda one: one.version, default=None)

    def put(self, table: _Key, state: BinState) -> None:
        """Cache a state. Of two threads at once, one may replace the other's, which is then read again."""
        key = table, state.bin
        states = (*(self._bins.get(key) or ()), state)[-self._VERSIONS :]
        self._bins.put(key, states, cost=sum(map(_cost, states)))

    def forget(self) -> None:
        """Evict every state."""
        self._bins.clear()


def _cost(state: BinState) -> int:
    return 16 + len(state.body) + 4 * len(state.tombstones)


def _from_page(
    spec: TableSpec, form: SegmentsForm, erased: int, bin: int, version: int, page: bytes
) -> BinState | None:
    """The state in a key frame; None if it is damaged, since all deltas exist and can be replayed from the first."""
    try:
        body, tombstones = decode_page(form, page)
    except DamagedPage as error:
        place = f"table {spec.name}, {bin_interval(spec.bin_grain, bin)}, version {version}"
        logger.warning("a damaged key frame was not used; run `lakehouse check`: %s: %s", place, error)
        return None
    return BinState(bin, version, body, {one.id: one for one in tombstones}, erased)


class StateReader:
    """Reads and caches bin states."""

    def __init__(self, size: int = _REMEMBERED) -> None:
        self._memory = _Memory(size)
        self._forms: dict[tuple[TableId, int], tuple[TableSpec, SegmentsForm, _Key]] = {}
        self._keys = count()

    def forget(self) -> None:
        """Drop the cache."""
        self._memory.forget()

    def read(
        self, connection: Connection, spec: TableSpec, version: int, ranges: Ranges | None = None, *, since: int = -1
    ) -> dict[int, BinState]:
        """States of the bins in closed ranges (None: all) that changed after version ``since``, by bin.

        Bins that are empty at that version are left out. Cost: one look-up for each selected bin; the page of each that
        is not cached, and the deltas after it.
        """
        form, key = self._form(spec)
        states: dict[int, BinState] = {}
        changed: dict[int, int] = {}
        frames: list[tuple[int, int]] = []
        parameters = {"table": spec.id, "as_of": version, "since": since}
        rows = rows_of_pairs(connection, _BINS, ranges or bin_ranges(spec.bin_grain, None), parameters)
        erased = 0
        for number, newest, framed, head, horizon, erased in rows:
            if newest is None:
                continue
            held = self._memory.best(key, number, newest, erased)
            if held is not None and held.version < min(head, horizon):
                held = None  # some of its entries may have expired, along with the deltas that drop them
            if held is not None and held.version == newest:
                states[number] = held
                continue
            changed[number] = newest
            if held is not None and held.version >= (framed or 0):
                states[number] = held
                continue
            states[number] = BinState(number, -1, segments_from_rows(form, []), {}, erased)
            if framed is not None:
                frames.append((number, framed))
        for row in rows_of_pairs(connection, _FRAMES, frames, {"table": spec.id}):
            state = _from_page(spec, form, erased, *row)
            if state is not None:
                states[state.bin] = state
        after = [(one, states[one].version) for one in changed if states[one].version < changed[one]]
        changes = self._changes(connection, spec, after, version) if after else None
        for number, newest in changed.items():
            if changes is not None:
                states[number] = changes.applied_to(states[number], newest)
            self._memory.put(key, states[number])
        return dict(sorted(states.items()))

    def _form(self, spec: TableSpec) -> tuple[SegmentsForm, _Key]:
        """The form of a table's states, and what they are kept under.

        A schema number alone is not enough: a commit that is refused had read the table with columns that were never
        made, and another change gets their number.
        """
        place = spec.id, spec.schema_number
        known = self._forms.get(place)
        if known is not None and known[0] == spec:
            return known[1:]
        form = SegmentsForm.of(spec)
        is_alike = known is not None and known[1].is_like(form)
        key = known[2] if known is not None and is_alike else (spec.id, next(self._keys))
        self._forms[place] = spec, form, key
        return form, key

    def _changes(
        self, connection: Connection, spec: TableSpec, after: Sequence[tuple[int, int]], version: int
    ) -> _Changes:
        """Changes of bins by their deltas, each ``after`` its own version."""
        actions: defaultdict[int, dict[int, tuple[int, bool]]] = defaultdict(dict)
        for number, entry, action, is_tombstone in rows_of_pairs(
            connection, _DELTAS, after, {"table": spec.id, "as_of": version}
        ):
            actions[number][entry] = (action, bool(is_tombstone))
        added: tuple[dict[int, int], dict[int, int]] = ({}, {})
        for of_bin in actions.values():
            for entry, (action, is_tombstone) in of_bin.items():
                if action == ADD:
                    added[is_tombstone].setdefault(entry, len(added[is_tombstone]))
        rows = rows_by_id(connection, "segment", added[False])
        rows.sort(key=lambda row: added[False][row["id"]])
        form, _ = self._form(spec)
        listed = rows_by_id(connection, "tombstone", added[True])
        tombstones = {row["id"]: tombstone_from_row(row, form.current) for row in listed}
        if len(rows) < len(added[False]) or len(tombstones) < len(added[True]):
            raise InternalError("the catalog's deltas name entries that it does not hold", table=spec.name)
        return _Changes(actions, segments_from_rows(form, rows), added[False], tombstones)


@dataclass(frozen=True, slots=True)
class _Changes:
    """The last change of each entry of some bins, and the added entries, with segments of a bin adjacent."""

    actions: Mapping[int, Mapping[int, tuple[int, bool]]]
    body: pa.Table
    places: Mapping[int, int]
    tombstones: Mapping[int, Tombstone]

    def applied_to(self, state: BinState, version: int) -> BinState:
        """A state of a bin at a later version."""
        actions = self.actions.get(state.bin)
        if actions is None:
            return state
        held = state.body
        ids = state.segments.ids
        dropped = [entry for entry, (action, _) in actions.items() if action != ADD]
        if dropped:
            kept = ~np.isin(ids, dropped)
            if not kept.all():
                held, ids = held.filter(pa.array(kept)), ids[kept]
        added = [entry for entry, (action, is_tombstone) in actions.items() if action == ADD and not is_tombstone]
        if added and len(ids) and min(added) <= ids.max():  # a restore adds earlier entries again
            added = list(set(added).difference(ids.tolist()))
        joined = pa.concat_tables([held, self._segments(added)]) if added else held
        if joined.num_columns and joined.column(0).num_chunks > 8:
            joined = joined.combine_chunks()
        living = dict(state.tombstones)
        for entry, (action, is_tombstone) in actions.items():
            if is_tombstone and action != ADD:
                living.pop(entry, None)
            elif is_tombstone and entry not in living:
                living[entry] = self.tombstones[entry]
        return BinState(state.bin, version, joined, living, state.erased)

    def _segments(self, entries: Sequence[int]) -> pa.Table:
        places = sorted(self.places[entry] for entry in entries)
        if places[-1] - places[0] == len(places) - 1:
            return self.body.slice(places[0], len(places))
        return self.body.take(pa.array(places))


def batches(values: Iterable[V]) -> Iterator[list[V]]:
    """Values in lists short enough to be bound in one statement."""
    remaining = iter(values)
    while batch := list(islice(remaining, BATCH)):
        yield batch


def touching(spec: TableSpec, interval: Interval | None) -> Ranges:
    """The bins whose entries may touch the chunks of an interval (None: all)."""
    return bin_ranges(spec.bin_grain, None if interval is None else spec.grain.align(interval))


def extent_of(connection: Connection, spec: TableSpec) -> Interval | None:
    """An interval from the first to the last bin that ever held something; None if none did."""
    bins = connection.execute(select(bin.c.bin).where(bin.c.table_id == spec.id)).scalars().all()
    return hull(bin_interval(spec.bin_grain, one) for one in bins)


def live_in(states: Iterable[BinState]) -> tuple[Segments, dict[int, Tombstone]]:
    """Everything live in some bins, each entry once; segments by id."""
    parts = list(states)
    tombstones = {entry: held for state in parts for entry, held in state.tombstones.items()}
    bodies = [state.body for state in parts if len(state.body)]
    if not bodies:
        return Segments.of([]), tombstones
    joined = Segments.in_columns(pa.concat_tables(bodies) if len(bodies) > 1 else bodies[0])
    order = np.argsort(joined.ids, kind="stable")
    if len(bodies) > 1:
        ordered = joined.ids[order]
        order = order[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return joined.take(order), tombstones


def rows_of_pairs(
    connection: Connection, statement: Prepared, pairs: Sequence[tuple[int, int]], values: dict[str, Any]
) -> Iterator[Any]:
    """Rows of a statement that takes pairs of numbers as one parameter of its database's own kind."""
    if not pairs:
        return
    bound: dict[str, Any]
    if connection.dialect.name == "sqlite":
        bound = {"pairs": json.dumps(pairs)}
    else:
        bound = {"first": [first for first, _ in pairs], "second": [second for _, second in pairs]}
    yield from statement.run(connection, {**values, **bound})


def rows_by_id(connection: Connection, table: str, ids: Iterable[int]) -> list[dict[str, Any]]:
    """Rows of ``segment`` or ``tombstone``, by column. Cost: one look-up each."""
    names, statement = _ENTRIES[table]
    return [dict(zip(names, row, strict=True)) for row in rows_of_ids(connection, statement, ids)]


def rows_of_ids(
    connection: Connection, statement: Prepared, ids: Iterable[int], values: Mapping[str, Any] | None = None
) -> Iterator[Any]:
    """Rows of a statement that takes `IDS` as one parameter of its database's own kind."""
    wanted = sorted(ids)
    if wanted:
        bound = json.dumps(wanted) if connection.dialect.name == "sqlite" else wanted
        yield from statement.run(connection, {**(values or {}), "ids": bound})


PAIRS = {
    "sqlite": "(SELECT value ->> 0 AS first, value ->> 1 AS second FROM json_each(:pairs)) AS pair CROSS JOIN",
    "postgresql": "unnest(CAST(:first AS bigint[]), CAST(:second AS bigint[])) AS pair (first, second) CROSS JOIN",
}
IDS = {
    "sqlite": "json_each(:ids) AS wanted CROSS JOIN",
    "postgresql": "unnest(CAST(:ids AS bigint[])) AS wanted (value) CROSS JOIN",
}


def prepared_over(source: Mapping[str, str], statement: str) -> Prepared:
    """A statement over a list passed as one parameter, which is read first; each value is then looked up in a table."""
    return Prepared(lambda dialect: text(statement.replace("{wanted}", source[dialect])))


def _entries(table: Table) -> tuple[list[str], Prepared]:
    names = table.columns.keys()
    columns = ", ".join(f"{table.name}.{name}" for name in names)
    statement = f"SELECT {columns} FROM {{wanted}} {table.name} WHERE {table.name}.id = wanted.value"  # noqa: S608
    return names, prepared_over(IDS, statement)


_BINS = prepared_over(
    PAIRS,
    """
    SELECT bin.bin,
      CASE WHEN bin.version <= :as_of THEN bin.version ELSE (
        SELECT max(delta.version) FROM delta
        WHERE delta.table_id = bin.table_id AND delta.bin = bin.bin AND delta.version <= :as_of) END,
      CASE WHEN bin.frame_version <= :as_of THEN bin.frame_version ELSE (
        SELECT max(key_frame.version) FROM key_frame
        WHERE key_frame.table_id = bin.table_id AND key_frame.bin = bin.bin AND key_frame.version <= :as_of) END,
      bin.version,
      (SELECT horizon FROM lake),
      (SELECT erased_version FROM lake_table WHERE lake_table.id = :table)
    FROM {wanted} bin
    WHERE bin.table_id = :table AND bin.bin BETWEEN pair.first AND pair.second AND bin.version > :since
    """,
)
_FRAMES = prepared_over(
    PAIRS,
    """
    SELECT key_frame.bin, key_frame.version, key_frame.page FROM {wanted} key_frame
    WHERE key_frame.table_id = :table AND key_frame.bin = pair.first AND key_frame.version = pair.second
    """,
)
_DELTAS = prepared_over(
    PAIRS,
    """
    SELECT delta.bin, delta.entry, delta.action, delta.is_tombstone FROM {wanted} delta
    WHERE delta.table_id = :table AND delta.bin = pair.first
      AND delta.version > pair.second AND delta.version <= :as_of
    ORDER BY delta.bin, delta.version
    """,
)
_ENTRIES = {table.name: _entries(table) for table in (segment, tombstone)}


def unchanged_since(connection: Connection, segments: Iterable[int], version: int) -> set[int]:
    """Those of some segments whose file has not been rewritten since a version."""
    return {row[0] for row in rows_of_ids(connection, _UNCHANGED, segments, {"as_of": version})}


_UNCHANGED = prepared_over(
    IDS,
    """
    SELECT segment.id FROM {wanted} segment CROSS JOIN operation
    WHERE segment.id = wanted.value AND operation.number = segment.operation AND operation.version <= :as_of
    """,
)
