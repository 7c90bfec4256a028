"""The reference model: the lakehouse's specification over plain Python lists, one row at a time.

Slow and obvious on purpose. A table is a list of rows with ordinals under a list of tombstones; a version is a copy of
both. Nothing is pruned, split, merged or shared: the model has none of the library's optimizations, so agreement of the
two means something. Versions never expire in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.keys import key_scope
from lakehouse.errors import (
    AlreadyExists,
    InvalidInput,
    LockLost,
    LockTimeout,
    TableNotFound,
    VersionNotFound,
    WriteConflict,
)
from lakehouse.testing.model_conflict import conflict
from lakehouse.testing.model_operation import Clauses, Kind, ModelOperation, ModelTable, whole_chunks
from lakehouse.testing.model_rows import Change, Key, Row, State, Stored, Where, order

__all__ = ["Change", "Clauses", "Key", "ModelLake", "ModelOperation", "ModelTable", "Row", "State", "Stored", "Where"]


@dataclass(slots=True)
class ModelLake:
    """A lake: one number sequence, tables, tags, and commits with a ``txn``.

    Its numbers are its own: a test that drives it together with the library maps versions of one to the other.

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

    def create_table(
        self,
        name: str,
        columns: tuple[str, ...],
        *,
        time: str,
        grain: str = "day",
        primary_key: tuple[str, ...] = (),
        write_order: Literal["commit", "start"] = "commit",
    ) -> int:
        """Add an empty table, which makes a version. Grain ``all``: ``time`` is a column that does not divide it."""
        if name in self.tables:
            raise AlreadyExists("the table exists", name=name)
        created = self.draw()
        self.tables[name] = ModelTable(
            columns, time, Grain(grain), primary_key, versions={created: State()}, write_order=write_order
        )
        return created

    def drop_table(self, name: str) -> None:
        """Drop a table."""
        del self.tables[name]

    def rename_table(self, old: str, new: str) -> None:
        """Rename a table."""
        if new in self.tables:
            raise AlreadyExists("the table exists", name=new)
        self.tables[new] = self.tables.pop(old)

    def _begin(self, table: str, kind: Kind, **more: Any) -> ModelOperation:
        found = self.table(table)
        base = self.number
        draws = kind == "replace" or (kind == "append" and found.write_order == "start")
        operation = ModelOperation(table, found, self.commit, kind, base, self.draw() if draws else base, **more)
        if kind in ("compact", "resolve"):
            operation.gather(found) if kind == "compact" else operation.trace(found)
        found.running.append(operation)
        return operation

    def begin_append(self, table: str) -> ModelOperation:
        """Begin an append. It takes no lock."""
        return self._begin(table, "append")

    def begin_upsert(self, table: str) -> ModelOperation:
        """Begin an upsert, which sees nothing: rows with its rows' primary keys will be hidden."""
        return self._begin(table, "upsert")

    def begin_delete_keys(self, table: str) -> ModelOperation:
        """Begin a delete by primary key, which sees nothing."""
        return self._begin(table, "delete_keys")

    def begin_delete(self, table: str, where: Where) -> ModelOperation:
        """Begin a delete of the matching visible rows."""
        return self._begin_change(table, "delete", where, None)

    def begin_take(self, table: str, interval: Any = None, keys: Mapping[str, Any] | None = None) -> ModelOperation:
        """Begin a delete of all of an interval (None: always) and key scope, which sees nothing."""
        span = Interval(None, None) if interval is None else Interval.of(interval)
        return self._begin(table, "take", interval=span, keys=key_scope(keys))

    def begin_update(self, table: str, change: Change, where: Where) -> ModelOperation:
        """Begin an update of the matching visible rows."""
        return self._begin_change(table, "update", where, change)

    def _begin_change(self, table: str, kind: Kind, where: Where, change: Change | None) -> ModelOperation:
        found = self.table(table)
        operation = self._begin(table, kind)
        operation.overtake(found)
        operation.read(found, lambda state: operation.find(found, state, where, change))
        return operation

    def begin_erase(self, table: str, where: Where) -> ModelOperation:
        """Begin an erasure of the matching rows from every version."""
        return self._begin(table, "erase", means=where)

    def begin_merge(self, table: str, source: Iterable[Row], on: tuple[str, ...], clauses: Clauses) -> ModelOperation:
        """Begin a merge of whole rows into the visible rows."""
        found = self.table(table)
        operation = self._begin(table, "merge")
        operation.overtake(found)
        listed = list(source)
        operation.read(found, lambda state: operation.join(found, state, listed, on, clauses))
        return operation

    def begin_replace(self, table: str, interval: Any, keys: Mapping[str, Any] | None = None) -> ModelOperation:
        """Begin a replace: take its cells, also from maintenance, and draw its number.

        Raises `LockTimeout` if another replace holds one of them.
        """
        span, scope = Interval.of(interval), key_scope(keys)
        found = self.table(table)
        clashing = [holder for holder in found.holders if holder.clashes(span, scope, found.grain)]
        if any(holder.kind == "replace" for holder in clashing):
            raise LockTimeout("another replace holds the cell", table=table)
        fence(clashing)
        return self._begin(table, "replace", interval=span, keys=scope)

    def begin_compaction(self, table: str, interval: Any = None) -> ModelOperation:
        """Begin a rewrite of every live row of whole chunks. Raises `LockTimeout` if anybody holds one of them."""
        return self._begin_maintenance(table, "compact", interval)

    def begin_resolve(self, table: str) -> ModelOperation:
        """Begin to turn key tombstones into row tombstones. Raises `LockTimeout` if anybody holds a chunk."""
        return self._begin_maintenance(table, "resolve", None)

    def _begin_maintenance(self, table: str, kind: Kind, interval: Any) -> ModelOperation:
        found = self.table(table)
        span = None if interval is None else found.grain.align(Interval.of(interval))
        if any(holder.clashes(span, None, found.grain) for holder in found.holders):
            raise LockTimeout("the chunk is held", table=table)
        return self._begin(table, kind, interval=span)

    def commit(self, operations: Iterable[ModelOperation]) -> int:
        """Commit operations together: one number, all or none. Raises `LockLost` if one was fenced, `WriteConflict`."""
        listed = list(operations)
        for operation in listed:
            assert not operation.ended, "an operation ends once"
            if operation.forced and operation.is_outdated:
                operation.read_again(operation.of)
            if operation.fenced:
                operation.abort()
                raise LockLost("the chunk was taken", table=operation.table)
            reason = conflict(operation, operation.of)
            if reason is not None:
                operation.abort()
                raise WriteConflict(reason, table=operation.table)
        number = self.draw()
        for operation in listed:
            table = operation.of
            if operation.kind == "erase":
                _erase(table, operation.means)
                table.erasures.append(number)
            table.versions[number] = operation.applied(table, number)
            if operation.kind in ("replace", "merge", "take"):
                table.done.append((number, operation))
            operation.end()
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
        """A new version equal to an old one; it fences maintenance of changed cells and waits for users' replaces."""
        found = self.table(table)
        old, now = found.at(version), found.head
        changed = _changed_rows(old, now, found)
        clashing = [holder for holder in found.holders if _touches(holder, changed, found)]
        if any(holder.kind == "replace" for holder in clashing):
            raise LockTimeout("another replace holds the cell", table=table)
        fence(clashing)
        number = self.draw()
        found.versions[number] = old
        found.restores.append(number)
        return number

    def tag(self, name: str, version: int | None = None) -> None:
        """Tag a version."""
        if name in self.tags:
            raise AlreadyExists("the tag exists", name=name)
        self.tags[name] = self.newest if version is None else version

    def untag(self, name: str) -> None:
        """Remove a tag."""
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
        return sorted(seen, key=order)


def _erase(table: ModelTable, where: Where) -> None:
    """Remove matching rows from every state; maintenance that read one is fenced."""
    fence(one for one in table.holders if any(where(table.named(stored.row)) for stored in one.inputs))
    for running in table.running:
        running.is_outdated = True
    for version, state in table.versions.items():
        kept = tuple(stored for stored in state.stored if not where(table.named(stored.row)))
        table.versions[version] = State(kept, state.tombstones)


def fence(holders: Iterable[ModelOperation]) -> None:
    """Take chunks from maintenance, whose commits will then fail."""
    for holder in holders:
        holder.fenced = True


def _changed_rows(old: State, now: State, table: ModelTable) -> list[Row]:
    """Rows that one state shows and the other does not."""
    before, after = table.visible(old), table.visible(now)
    return [stored.row for stored in before if stored not in after] + [
        stored.row for stored in after if stored not in before
    ]


def _touches(holder: ModelOperation, rows: Iterable[Row], table: ModelTable) -> bool:
    span = whole_chunks(holder.interval, holder.grain)
    return any(table.covered(row, span, holder.keys) for row in rows)
