"""Chunk locks: exclusive locks on ranges of whole chunks, with leases and fencing tokens.

A lock is one row for a range of chunks, however many: locking a year of hours costs the same as locking an hour. Its
lease is that of its operation. An expired lock may be taken by others; expiry alone does not invalidate its holder's
commit, which checks whether the lock is still there. Waiters form a queue, so nobody waits for ever; a place in it has
a lease too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, select, update

from lakehouse.catalog.store.encoding import decode_keys, encode_keys
from lakehouse.catalog.store.models import chunk_lock, lake, lock_wait, operation, updated_rows
from lakehouse.core.conflict import Cell, locks_clash
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.keys import KeyScope
from lakehouse.core.listing import Listing
from lakehouse.core.lock import ChunkLock
from lakehouse.core.operation import Kind, Priority
from lakehouse.core.spec import TableSpec

MOST_LISTED = 10_000
"""The most chunks of a lock that are listed one by one."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of, or waiter for, a conflicting lock."""

    operation: str
    kind: str
    interval: Interval
    keys: KeyScope | None
    expires_us: int


class ChunkHeld(Exception):
    """A conflicting lock has the same or a higher priority; the transaction changed nothing."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(holder)
        self.holder = holder


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an operation wants to lock: whole chunks, for some keys or all."""

    table: TableSpec
    cell: Cell
    priority: Priority
    place: int | None = None
    """Its place in the queue; None for a new one."""


def make_way(connection: Connection, wanted: Wanted, now_us: int) -> None:
    """Remove conflicting locks that have expired or have lower priority.

    Call it under the head. Raises `ChunkHeld` if one remains, or if an earlier waiter wants the same.
    """
    for number in giving_way(connection, wanted, now_us):
        release(connection, number)


def giving_way(connection: Connection, wanted: Wanted, now_us: int) -> list[int]:
    """Operations whose conflicting locks have expired or have lower priority, by number.

    Raises `ChunkHeld` as `make_way` does.
    """
    clashing = _clashing_locks(connection, wanted)
    _refuse(connection, wanted, clashing, now_us)
    return [row.operation for row in clashing]


def check_free(connection: Connection, wanted: Wanted, now_us: int) -> None:
    """Raise `ChunkHeld` if `make_way` would, without taking the head."""
    _refuse(connection, wanted, _clashing_locks(connection, wanted), now_us)


def _clashing_locks(connection: Connection, wanted: Wanted) -> list[Any]:
    query = (
        select(chunk_lock, operation.c.id, operation.c.kind, operation.c.lease_until_us)
        .join(operation, operation.c.number == chunk_lock.c.operation)
        .where(_overlaps(chunk_lock, wanted))
    )
    current = wanted.table.current_names
    return [row for row in connection.execute(query) if locks_clash(wanted.cell, _cell(row, current))]


def _refuse(connection: Connection, wanted: Wanted, clashing: list[Any], now_us: int) -> None:
    current = wanted.table.current_names
    for row in clashing:
        if row.lease_until_us >= now_us and row.priority >= wanted.priority:
            raise ChunkHeld(_holder(row, row.id, current))
    earlier = select(lock_wait).where(
        _overlaps(lock_wait, wanted), lock_wait.c.lease_until_us >= now_us, lock_wait.c.priority >= wanted.priority
    )
    if wanted.place is not None:
        earlier = earlier.where(lock_wait.c.token < wanted.place)
    for row in connection.execute(earlier.order_by(lock_wait.c.token)):
        if locks_clash(wanted.cell, _cell(row, current)):
            raise ChunkHeld(_holder(row, row.operation, current))


def _overlaps(table: Any, wanted: Wanted) -> ColumnElement[bool]:
    span = wanted.cell.interval
    return and_(table.c.table_id == wanted.table.id, table.c.start_us < span.end_us, table.c.end_us > span.start_us)


def queue_up(connection: Connection, wanted: Wanted, operation_id: str, kind: Kind, lease_until_us: int) -> int:
    """Take a place in the queue, to be renewed by `stay` and given back by `leave`."""
    place = _next_token(connection)
    connection.execute(
        lock_wait.insert().values(
            operation=operation_id, kind=kind.value, lease_until_us=lease_until_us, **_columns(wanted, place)
        )
    )
    return place


def stay(connection: Connection, place: int, lease_until_us: int) -> None:
    """Renew a place in the queue."""
    connection.execute(update(lock_wait).where(lock_wait.c.token == place).values(lease_until_us=lease_until_us))


def leave(connection: Connection, place: int) -> None:
    """Give a place in the queue back."""
    connection.execute(delete(lock_wait).where(lock_wait.c.token == place))


def remove_dead(connection: Connection, now_us: int) -> None:
    """Remove queue places of processes that no longer wait, and notes for ended replaces."""
    connection.execute(delete(lock_wait).where(lock_wait.c.lease_until_us < now_us))
    running = select(operation.c.number).where(operation.c.state == "running")
    connection.execute(delete(updated_rows).where(updated_rows.c.operation.not_in(running)))


def take(connection: Connection, wanted: Wanted, *, number: int, now_us: int) -> int:
    """Lock whole chunks for an operation and return the fencing token, or raise `ChunkHeld`."""
    make_way(connection, wanted, now_us)
    token = _next_token(connection)
    connection.execute(chunk_lock.insert().values(operation=number, **_columns(wanted, token)))
    if wanted.place is not None:
        leave(connection, wanted.place)
    return token


def _columns(wanted: Wanted, token: int) -> dict[str, Any]:
    return {
        "token": token,
        "table_id": wanted.table.id,
        "start_us": wanted.cell.interval.start_us,
        "end_us": wanted.cell.interval.end_us,
        "keys": encode_keys(wanted.cell.keys, wanted.table.stored_names),
        "priority": int(wanted.priority),
    }


def _next_token(connection: Connection) -> int:
    following = update(lake).values(next_token=lake.c.next_token + 1).returning(lake.c.next_token)
    return int(connection.execute(following).scalar_one())


def count_held(connection: Connection, number: int) -> int:
    """How many locks an operation still holds."""
    query = select(func.count()).select_from(chunk_lock).where(chunk_lock.c.operation == number)
    return int(connection.execute(query).scalar_one())


def release(connection: Connection, number: int) -> None:
    """Release an operation's locks, and remove the notes for it."""
    connection.execute(delete(chunk_lock).where(chunk_lock.c.operation == number))
    connection.execute(delete(updated_rows).where(updated_rows.c.operation == number))


def read_locks(connection: Connection, spec: TableSpec) -> Listing[ChunkLock]:
    """Every lock on a table by time, one value for each chunk; one in all for more than `MOST_LISTED` chunks."""
    query = (
        select(chunk_lock, operation.c.id, operation.c.kind, operation.c.lease_until_us)
        .join(operation, operation.c.number == chunk_lock.c.operation)
        .where(chunk_lock.c.table_id == spec.id)
        .order_by(chunk_lock.c.start_us, chunk_lock.c.token)
    )
    current = spec.current_names
    return Listing(
        ChunkLock(
            chunk=one,
            operation=row.id,
            priority=row.priority,
            token=row.token,
            expires_at=from_us(row.lease_until_us),
            keys=decode_keys(row.keys, current),
            kind=row.kind,
        )
        for row in connection.execute(query)
        for one in _listed(spec, Interval(from_us(row.start_us), from_us(row.end_us)))
    )


def _listed(spec: TableSpec, run: Interval) -> list[Interval]:
    chunks = list(islice(spec.grain.chunks(run), MOST_LISTED + 1))
    return chunks if len(chunks) <= MOST_LISTED else [run]


def _cell(row: Any, current: Mapping[str, str]) -> Cell:
    return Cell(Interval(from_us(row.start_us), from_us(row.end_us)), decode_keys(row.keys, current))


def _holder(row: Any, operation_id: str, current: Mapping[str, str]) -> Holder:
    held = _cell(row, current)
    return Holder(operation_id, row.kind, held.interval, held.keys, row.lease_until_us)
