"""Collection: which files may be deleted, by what the catalog knows alone.

There are two kinds: folders of operations that were aborted, or that are past their lease and a grace and are ended
here, so they can never commit; and files of expired segments. Each is checked again under the head before it is
deleted, and then removed from the list; a missing file is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, exists, false, func, or_, select, update

from lakehouse.catalog.locks.operations import end_operations
from lakehouse.catalog.locks.uploads import Upload, forget, left
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.models import garbage, lake_table, operation, segment, segment_summary, tombstone
from lakehouse.catalog.store.prepared import run_for_each
from lakehouse.catalog.versions.horizon import hold_history
from lakehouse.core.operation import ENTRY_BITS
from lakehouse.errors import InternalError

MOST = 400
"""How many files or folders one batch has."""


@dataclass(frozen=True, slots=True)
class Batch:
    """``paths`` of files or folders below the warehouse that may be deleted, and their ``numbers`` on the list."""

    numbers: list[int]
    paths: list[str]

    def __len__(self) -> int:
        return len(self.numbers)


def end_late(connection: Connection, now_us: int, grace_us: int) -> None:
    """End operations whose lease expired longer than a grace ago, so they never commit."""
    hold_history(connection)
    late = select(operation.c.number).where(_is_late(now_us, grace_us))
    end_operations(connection, list(connection.execute(late).scalars()))


def _is_late(now_us: int, grace_us: int) -> ColumnElement[bool]:
    return and_(operation.c.state == "running", operation.c.lease_until_us < now_us - grace_us)


def ended_folders(connection: Connection, after: int, *, late: tuple[int, int] | None = None) -> Batch:
    """Folders of operations, numbered above ``after``, that have ended and are not collected yet.

    With ``late``, a time and a grace in microseconds, also those that `end_late` would end.
    """
    ended: ColumnElement[bool] = operation.c.state == "aborted"
    if late is not None:
        ended = or_(ended, _is_late(*late))
    is_seen = or_(*(exists().where(of.c.operation == operation.c.number) for of in (segment, segment_summary)))
    rows = connection.execute(
        select(operation.c.number, operation.c.id, lake_table.c.folder)
        .join(lake_table, lake_table.c.id == operation.c.table_id)
        .where(ended, operation.c.number > after, ~is_seen)
        .order_by(operation.c.number)
        .limit(MOST)
    ).all()
    return Batch([row.number for row in rows], [f"{row.folder}/{row.id}" for row in rows])


def note_collected(connection: Connection, numbers: Iterable[int]) -> None:
    """Record that the folders of these operations are deleted."""
    ended = update(operation).where(operation.c.number == bindparam("ended"), operation.c.state == "aborted")
    run_for_each(connection, ended.values(state="collected"), [{"ended": number} for number in numbers])


def due_files(connection: Connection, after: int, before_us: int) -> Batch:
    """Files, listed above ``after``, that became garbage before a time.

    Raises `InternalError` if a segment still needs one of them: then nothing of the batch may be deleted.
    """
    rows = connection.execute(
        select(garbage.c.id, garbage.c.path)
        .where(garbage.c.id > after, garbage.c.marked_us < before_us)
        .order_by(garbage.c.id)
        .limit(MOST)
    ).all()
    paths = [row.path for row in rows]
    if paths:
        needed = _needed(connection, paths)
        if needed:
            raise InternalError("a file that is listed as garbage is still needed; nothing was deleted", path=needed)
    return Batch([row.id for row in rows], paths)


def _needed(connection: Connection, paths: list[str]) -> str | None:
    """A path that a segment, tombstone or summary still has.

    A path names its operation, so this costs one look-up each.
    """
    ids = {path.split("/")[1] for path in paths if path.count("/") >= 2}
    numbers = list(connection.execute(select(operation.c.number).where(operation.c.id.in_(ids))).scalars())
    mine = or_(false(), *(tombstone.c.id.between(one << ENTRY_BITS, (one + 1 << ENTRY_BITS) - 1) for one in numbers))
    of_operations = [(of, of.c.operation.in_(numbers)) for of in (segment, segment_summary)]
    for of, its in (*of_operations, (tombstone, mine)):
        found: str | None = connection.execute(select(of.c.path).where(its, of.c.path.in_(paths)).limit(1)).scalar()
        if found:
            return found
    return None


def count_due(connection: Connection, before_us: int) -> int:
    """How many files became garbage before a time."""
    due = select(func.count()).select_from(garbage).where(garbage.c.marked_us < before_us)
    return int(connection.execute(due).scalar_one())


def note_deleted(connection: Connection, numbers: Iterable[int]) -> None:
    """Record that these files are deleted."""
    gone = delete(garbage).where(garbage.c.id == bindparam("gone"))
    run_for_each(connection, gone, [{"gone": one} for one in numbers])


class Collection:
    """The catalog queries of one collection, each its own transaction. Nothing younger than the grace is returned.

    Its owner calls `end_late`; then, for each kind, it takes a batch, deletes it, and records the deletion.
    """

    def __init__(self, database: Database, grace_seconds: float) -> None:
        self._database = database
        self._grace_us = int(grace_seconds * 1_000_000)

    def end_late(self) -> None:
        """End operations whose lease expired longer than the grace ago."""
        database = self._database
        database.run(lambda connection: end_late(connection, database.now_us(connection), self._grace_us))

    def uploads(self) -> list[Upload]:
        """Uploads in parts of operations that have ended, which nobody will complete; empty once all are noted."""
        return self._database.run(left)

    def note_aborted(self, aborted: list[Upload]) -> None:
        """Record that these uploads are over."""
        self._database.run(lambda connection: forget(connection, aborted))

    def folders(self, after: int) -> Batch:
        """Folders of operations that will never commit, numbered above ``after``."""
        return self._database.run(lambda connection: _held(connection, lambda: ended_folders(connection, after)))

    def folders_to_come(self, after: int) -> Batch:
        """The same with those that `end_late` would end."""

        def question(connection: Connection) -> Batch:
            return ended_folders(connection, after, late=(self._database.now_us(connection), self._grace_us))

        return self._database.read(question)

    def note_collected(self, batch: Batch) -> None:
        """Record that the folders are deleted."""
        self._database.run(lambda connection: note_collected(connection, batch.numbers))

    def files(self, after: int) -> Batch:
        """Files that became garbage before the grace, listed above ``after``. Raises `InternalError`."""
        return self._database.run(lambda connection: _held(connection, lambda: self._due(connection, after)))

    def files_to_come(self, after: int) -> Batch:
        """The same, without holding the head."""
        return self._database.read(lambda connection: self._due(connection, after))

    def count_files(self) -> int:
        """How many files became garbage before the grace."""
        database = self._database
        return database.read(lambda connection: count_due(connection, database.now_us(connection) - self._grace_us))

    def _due(self, connection: Connection, after: int) -> Batch:
        return due_files(connection, after, self._database.now_us(connection) - self._grace_us)

    def note_deleted(self, batch: Batch) -> None:
        """Record that the files are deleted."""
        self._database.run(lambda connection: note_deleted(connection, batch.numbers))


def _held(connection: Connection, look: Callable[[], Batch]) -> Batch:
    """Query under the head: nothing else can commit, restore or expire meanwhile."""
    hold_history(connection)
    return look()
