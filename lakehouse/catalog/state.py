"""What is live in a table's chunks at a version: the nearest key frame at or before it and the deltas after."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, and_, bindparam, func, select, tuple_
from sqlalchemy.sql import ColumnElement

from lakehouse.catalog.models import chunk, delta, key_frame, segment, tombstone
from lakehouse.catalog.rows import Entry, decode_page, segment_from_row, tombstone_from_row
from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableId
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.version import ADD, replay

V = TypeVar("V")
BATCH = 400
"""Values bound in one statement; databases limit them."""


@dataclass(slots=True)
class ChunkState:
    """One chunk at one version: ``version`` is the newest that changed it; entries are by id."""

    start_us: int
    version: int
    entries: dict[int, Entry] = field(default_factory=dict)

    @property
    def segments(self) -> list[Segment]:
        """Live segments."""
        return [entry for entry in self.entries.values() if isinstance(entry, Segment)]

    @property
    def tombstones(self) -> list[Tombstone]:
        """Live tombstones."""
        return [entry for entry in self.entries.values() if isinstance(entry, Tombstone)]


class Cache(Generic[V]):
    """A bounded map that forgets what was not used longest; for values that never change."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, key: Hashable) -> V | None:
        """The value, or None."""
        with self._guard:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: V) -> None:
        """Remember a value."""
        with self._guard:
            self._values[key] = value
            while len(self._values) > self._size:
                self._values.popitem(last=False)


class StateReader:
    """Reads chunk states; remembers pages and entries, which are immutable, between reads."""

    def __init__(self, pages: int = 16_384, entries: int = 200_000) -> None:
        self._pages: Cache[tuple[Entry, ...]] = Cache(pages)
        self._entries: Cache[Entry] = Cache(entries)

    def remember(self, entries: Iterable[Entry]) -> None:
        """Keep entries that were just committed."""
        for entry in entries:
            self._entries.put(entry.id, entry)

    def read(
        self, connection: Connection, table: TableId, version: int, where: ColumnElement[bool] | None = None
    ) -> dict[int, ChunkState]:
        """States by chunk start of the chunks that ``where`` selects (a condition on `models.chunk`; None: all).

        Cost: one seek for each selected chunk, its page unless remembered, and the deltas behind the page.
        """
        scope = and_(chunk.c.table_id == table, where) if where is not None else chunk.c.table_id == table
        states = {
            row.start_us: ChunkState(row.start_us, row.framed)
            for row in connection.execute(_FRAMES.where(scope), {"as_of": version})
            if row.framed is not None
        }
        self._fill_from_pages(connection, table, states)
        changes = connection.execute(_DELTAS.where(scope), {"as_of": version}).all()
        found = self._find(connection, ((row.entry, row.is_tombstone) for row in changes if row.action == ADD))
        for start_us, group in groupby(changes, key=attrgetter("chunk_us")):
            chain = list(group)
            state = states.setdefault(start_us, ChunkState(start_us, chain[-1].version))
            live = replay(
                list(state.entries),
                [row.version for row in chain],
                [row.action for row in chain],
                [row.entry for row in chain],
            )
            held = {**found, **state.entries}
            state.version = chain[-1].version
            state.entries = {entry: held[entry] for entry in live.tolist()}
        return dict(sorted(states.items()))

    def _fill_from_pages(self, connection: Connection, table: TableId, states: dict[int, ChunkState]) -> None:
        missing: list[tuple[int, int]] = []
        for state in states.values():
            page = self._pages.get((table, state.start_us, state.version))
            if page is None:
                missing.append((state.start_us, state.version))
            else:
                state.entries = {entry.id: entry for entry in page}
        for batch in batches(missing):
            query = select(key_frame.c.chunk_us, key_frame.c.version, key_frame.c.page).where(
                key_frame.c.table_id == table, tuple_(key_frame.c.chunk_us, key_frame.c.version).in_(batch)
            )
            for row in connection.execute(query):
                page = tuple(decode_page(row.page))
                self._pages.put((table, row.chunk_us, row.version), page)
                states[row.chunk_us].entries = {entry.id: entry for entry in page}

    def _find(self, connection: Connection, wanted: Iterable[tuple[int, bool]]) -> dict[int, Entry]:
        found: dict[int, Entry] = {}
        missing: tuple[list[int], list[int]] = ([], [])
        for entry, is_tombstone in dict(wanted).items():
            held = self._entries.get(entry)
            if held is None:
                missing[bool(is_tombstone)].append(entry)
            else:
                found[entry] = held
        readers: Sequence[tuple[Any, Any]] = ((segment, segment_from_row), (tombstone, tombstone_from_row))
        for (source, from_row), ids in zip(readers, missing, strict=True):
            for batch in batches(ids):
                for row in connection.execute(select(source).where(source.c.id.in_(batch))):
                    found[row.id] = from_row(row)
        self.remember(found[entry] for ids in missing for entry in ids)
        return found


def batches(values: Iterable[V]) -> Iterator[list[V]]:
    """Values in lists short enough to be bound in one statement."""
    remaining = iter(values)
    while batch := list(islice(remaining, BATCH)):
        yield batch


def within(grain: Grain, interval: Interval) -> ColumnElement[bool]:
    """Condition on `models.chunk`: the chunk touches an interval."""
    aligned = grain.align(interval)
    return and_(chunk.c.start_us >= aligned.start_us, chunk.c.start_us < aligned.end_us)


def distinct_entries(states: Iterable[ChunkState]) -> dict[int, Entry]:
    """Every live entry once, whatever the number of chunks it touches."""
    return {entry: held for state in states for entry, held in state.entries.items()}


_framed = (
    select(func.max(key_frame.c.version))
    .where(
        key_frame.c.table_id == chunk.c.table_id,
        key_frame.c.chunk_us == chunk.c.start_us,
        key_frame.c.version <= bindparam("as_of"),
    )
    .correlate(chunk)
    .scalar_subquery()
)
_FRAMES = select(chunk.c.start_us, _framed.label("framed"))
_DELTAS = (
    select(delta.c.chunk_us, delta.c.version, delta.c.entry, delta.c.action, delta.c.is_tombstone)
    .join_from(chunk, delta, and_(delta.c.table_id == chunk.c.table_id, delta.c.chunk_us == chunk.c.start_us))
    .where(delta.c.version > func.coalesce(_framed, -1), delta.c.version <= bindparam("as_of"))
    .order_by(delta.c.chunk_us, delta.c.version)
)
