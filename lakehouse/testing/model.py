"""The reference model: the lakehouse's specification over plain Python lists, one row at a time.

Slow and obvious on purpose. A table is a list of rows with ordinals under a list of covers (interval tombstones); a
version is a remembered copy of both. Nothing is pruned, split, merged or shared: what the library does to be fast, the
model does not do, so that the two agreeing means something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope, key_scope, scope_matches, scopes_overlap
from lakehouse.errors import AlreadyExists, InvalidInput, LockLost, LockTimeout, TableNotFound, VersionNotFound

Row = tuple[Any, ...]
Kind = Literal["append", "replace", "compact"]


@dataclass(frozen=True, slots=True)
class Stored:
    """One row and its place in the write order."""

    row: Row
    ordinal: int


@dataclass(frozen=True, slots=True)
class Cover:
    """An interval tombstone: hides what is older than it, in its interval and keys."""

    interval: Interval
    keys: KeyScope | None
    ordinal: int


@dataclass(frozen=True, slots=True)
class State:
    """What is live at one version."""

    stored: tuple[Stored, ...] = ()
    covers: tuple[Cover, ...] = ()


@dataclass(slots=True)
class ModelTable:
    """A table: its columns, the state at every version, and who holds which cells."""

    columns: tuple[str, ...]
    time: str
    grain: Grain
    versions: dict[int, State]
    holders: list[ModelOperation] = field(default_factory=list)

    def named(self, row: Row) -> dict[str, Any]:
        """A row's values by column."""
        return dict(zip(self.columns, row, strict=True))

    def time_of(self, row: Row) -> datetime:
        """A row's time."""
        found: datetime = row[self.columns.index(self.time)]
        return found

    def covered(self, row: Row, interval: Interval | None, keys: KeyScope | None) -> bool:
        """Whether a row lies in an interval (None: always) and key scope."""
        inside = interval is None or interval.contains(self.time_of(row))
        return inside and scope_matches(keys, self.named(row))

    def sees(self, state: State, stored: Stored) -> bool:
        """The visibility rule: no live cover with a greater ordinal matches the row."""
        return not any(
            cover.ordinal > stored.ordinal and self.covered(stored.row, cover.interval, cover.keys)
            for cover in state.covers
        )

    def visible(self, state: State) -> list[Stored]:
        """Every row that can be seen in a state."""
        return [stored for stored in state.stored if self.sees(state, stored)]

    def at(self, version: int) -> State:
        """The state at the newest version that is not after ``version``."""
        known = [number for number in self.versions if number <= version]
        if not known:
            raise VersionNotFound("the table is younger than this version", version=version)
        return self.versions[max(known)]

    @property
    def head(self) -> State:
        """The newest state."""
        return self.versions[max(self.versions)]


@dataclass(slots=True)
class ModelOperation:
    """An operation between begin and commit. ``number`` is what it drew or read at its beginning."""

    lake: ModelLake
    table: str
    kind: Kind
    number: int
    interval: Interval | None = None
    keys: KeyScope | None = None
    rows: list[Row] = field(default_factory=list)
    inputs: list[Stored] = field(default_factory=list)
    outputs: list[Row] = field(default_factory=list)
    fenced: bool = False
    ended: bool = False

    def write(self, rows: Iterable[Row]) -> None:
        """Stage rows. A replace refuses those outside what it covers."""
        table = self.lake.tables[self.table]
        listed = [tuple(row) for row in rows]
        if self.kind == "replace" and not all(table.covered(row, self.interval, self.keys) for row in listed):
            raise InvalidInput("rows lie outside the interval or keys", table=self.table)
        self.rows.extend(listed)

    def commit(self) -> int:
        """Make it visible, alone, under the lake's next number."""
        return self.lake.commit([self])

    def abort(self) -> None:
        """Give up; nothing of it is visible."""
        self.ended = True
        table = self.lake.tables.get(self.table)
        if table is not None:
            table.holders = [holder for holder in table.holders if holder is not self]

    def clashes(self, interval: Interval | None, keys: KeyScope | None, grain: Grain) -> bool:
        """Whether this operation's cells meet those of an interval and key scope."""
        mine = _whole_chunks(self.interval, grain)
        return mine.overlaps(_whole_chunks(interval, grain)) and scopes_overlap(self.keys, keys)

    def applied(self, table: ModelTable, version: int) -> State:
        """The state after this operation, committed as ``version``, on the table's head."""
        head = table.head
        match self.kind:
            case "append":
                added = tuple(Stored(row, version) for row in self.rows)
                return State(head.stored + added, head.covers)
            case "replace":
                assert self.interval is not None
                added = tuple(Stored(row, self.number) for row in self.rows)
                return State(head.stored + added, (*head.covers, Cover(self.interval, self.keys, self.number)))
            case "compact":
                kept = list(head.stored)
                for stored in self.inputs:
                    kept.remove(stored)
                return State((*kept, *(Stored(row, self.number) for row in self.outputs)), head.covers)


def _whole_chunks(interval: Interval | None, grain: Grain) -> Interval:
    return Interval(None, None) if interval is None else grain.align(interval)


@dataclass(slots=True)
class ModelLake:
    """A lake: one number sequence, tables, tags, and the commits that an application has numbered itself.

    Its numbers are its own: a test that drives it beside the library remembers which version of the one is which of
    the other.

    >>> lake = ModelLake()
    >>> lake.create_table("flights", ("time", "value"), time="time", grain="day")
    1
    >>> day = Interval.of("2013-01-05")
    >>> lake.append("flights", [(day.start, 1)]), lake.replace("flights", [(day.start, 2)], day)
    (2, 4)
    >>> [value for _, value in lake.rows("flights")], [value for _, value in lake.rows("flights", as_of=2)]
    ([2], [1])
    """

    number: int = 0
    tables: dict[str, ModelTable] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    transactions: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def draw(self) -> int:
        """Take the next number of the sequence."""
        self.number += 1
        return self.number

    @property
    def newest(self) -> int:
        """The newest version that any table has."""
        return max((max(table.versions) for table in self.tables.values()), default=0)

    def table(self, name: str) -> ModelTable:
        """A table by name."""
        if name not in self.tables:
            raise TableNotFound("no such table", name=name)
        return self.tables[name]

    def create_table(self, name: str, columns: tuple[str, ...], *, time: str, grain: str = "day") -> int:
        """Add an empty table; that takes a version."""
        if name in self.tables:
            raise AlreadyExists("the table exists", name=name)
        created = self.draw()
        self.tables[name] = ModelTable(columns, time, Grain.of(grain), {created: State()})
        return created

    def drop_table(self, name: str) -> None:
        """Forget a table."""
        del self.tables[name]

    def rename_table(self, old: str, new: str) -> None:
        """Give a table another name."""
        if new in self.tables:
            raise AlreadyExists("the table exists", name=new)
        self.tables[new] = self.tables.pop(old)

    def begin_append(self, table: str) -> ModelOperation:
        """Begin an append. It takes no lock."""
        self.table(table)
        return ModelOperation(self, table, "append", self.number)

    def begin_replace(self, table: str, interval: Any, keys: Mapping[str, Any] | None = None) -> ModelOperation:
        """Begin a replace: fence maintenance off its cells, take them, draw its number.

        Raises `LockTimeout` if another replace holds one of them.
        """
        span, scope = Interval.of(interval), key_scope(keys)
        found = self.table(table)
        clashing = [holder for holder in found.holders if holder.clashes(span, scope, found.grain)]
        if any(holder.kind == "replace" for holder in clashing):
            raise LockTimeout("another replace holds the cell", table=table)
        self._fence(found, clashing)
        operation = ModelOperation(self, table, "replace", self.draw(), span, scope)
        found.holders.append(operation)
        return operation

    def begin_compaction(self, table: str, interval: Any = None) -> ModelOperation:
        """Begin a rewrite of every live row of whole chunks. Raises `LockTimeout` if anybody holds one of them."""
        found = self.table(table)
        span = None if interval is None else found.grain.align(Interval.of(interval))
        if any(holder.clashes(span, None, found.grain) for holder in found.holders):
            raise LockTimeout("the chunk is held", table=table)
        operation = ModelOperation(self, table, "compact", self.number, span)
        state = found.head
        operation.inputs = [stored for stored in state.stored if found.covered(stored.row, span, None)]
        operation.outputs = [stored.row for stored in operation.inputs if found.sees(state, stored)]
        found.holders.append(operation)
        return operation

    @staticmethod
    def _fence(table: ModelTable, holders: Iterable[ModelOperation]) -> None:
        for holder in holders:
            holder.fenced = True
            table.holders = [other for other in table.holders if other is not holder]

    def commit(self, operations: Iterable[ModelOperation]) -> int:
        """Commit operations together: one number, all or none. Raises `LockLost` if one was fenced."""
        listed = list(operations)
        for operation in listed:
            assert not operation.ended, "an operation ends once"
            if operation.fenced:
                operation.abort()
                raise LockLost("the chunk was taken", table=operation.table)
        number = self.draw()
        for operation in listed:
            table = self.tables[operation.table]
            table.versions[number] = operation.applied(table, number)
            operation.abort()
        return number

    def append(self, table: str, rows: Iterable[Row], *, txn: tuple[str, int] | None = None) -> int:
        """Append in one call; the same ``txn`` again changes nothing and returns the first commit."""
        return self._once(table, txn, lambda: self._written(self.begin_append(table), rows).commit())

    def replace(
        self,
        table: str,
        rows: Iterable[Row],
        interval: Any,
        *,
        keys: Mapping[str, Any] | None = None,
        txn: tuple[str, int] | None = None,
    ) -> int:
        """Replace in one call."""
        return self._once(table, txn, lambda: self._written(self.begin_replace(table, interval, keys), rows).commit())

    @staticmethod
    def _written(operation: ModelOperation, rows: Iterable[Row]) -> ModelOperation:
        try:
            operation.write(rows)
        except InvalidInput:
            operation.abort()
            raise
        return operation

    def _once(self, table: str, txn: tuple[str, int] | None, run: Callable[[], int]) -> int:
        if txn is None:
            return run()
        key = (table, *txn)
        if key not in self.transactions:
            self.transactions[key] = run()
        return self.transactions[key]

    def restore(self, table: str, version: int) -> int:
        """A new version equal to an old one; maintenance on what changes is fenced, a user's replace is waited for."""
        found = self.table(table)
        old, now = found.at(version), found.head
        changed = _changed_rows(old, now, found)
        clashing = [holder for holder in found.holders if _touches(holder, changed, found)]
        if any(holder.kind == "replace" for holder in clashing):
            raise LockTimeout("another replace holds the cell", table=table)
        self._fence(found, clashing)
        number = self.draw()
        found.versions[number] = old
        return number

    def tag(self, name: str, version: int | None = None) -> None:
        """Name a version."""
        if name in self.tags:
            raise AlreadyExists("the tag exists", name=name)
        self.tags[name] = self.newest if version is None else version

    def untag(self, name: str) -> None:
        """Forget a tag."""
        if name not in self.tags:
            raise VersionNotFound("no such tag", name=name)
        del self.tags[name]

    def rows(self, table: str, as_of: int | str | None = None, interval: Any = None) -> list[Row]:
        """The rows that a reader sees, in the order of their times and values."""
        found = self.table(table)
        version = self.tags[as_of] if isinstance(as_of, str) else as_of
        state = found.head if version is None else found.at(version)
        span = None if interval is None else Interval.of(interval)
        seen = [stored.row for stored in found.visible(state) if found.covered(stored.row, span, None)]
        return sorted(seen, key=_order)


def _changed_rows(old: State, now: State, table: ModelTable) -> list[Row]:
    """Rows that one state shows and the other does not."""
    before, after = table.visible(old), table.visible(now)
    return [stored.row for stored in before if stored not in after] + [
        stored.row for stored in after if stored not in before
    ]


def _touches(holder: ModelOperation, rows: Iterable[Row], table: ModelTable) -> bool:
    span = _whole_chunks(holder.interval, table.grain)
    return any(table.covered(row, span, holder.keys) for row in rows)


def _order(row: Row) -> tuple[tuple[bool, Any], ...]:
    """Sort key under which null comes first in every column."""
    return tuple((value is not None, value) for value in row)
