"""Chunk locks: exclusive holds on runs of whole chunks, with leases and fencing tokens.

A lock is one row for a run of chunks, however many: taking a year of hours costs what taking an hour does. Its lease is
its operation's. An expired lock may be taken; that alone never makes a commit of its holder invalid: the commit checks
that the lock is still there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from lakehouse.catalog.encoding import decode_keys, encode_keys
from lakehouse.catalog.models import chunk_lock, lake, operation
from lakehouse.core.commit import ChunkLock
from lakehouse.core.conflict import Cell, locks_clash
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.keys import KeyScope
from lakehouse.core.listing import Listing
from lakehouse.core.operation import Priority
from lakehouse.core.spec import TableSpec

MOST_LISTED = 10_000
"""Chunks of one lock that are listed one by one."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock that is in the way."""

    operation: str
    kind: str
    interval: Interval
    keys: KeyScope | None
    expires_us: int


class ChunkHeld(Exception):
    """A lock of the same or a higher priority is in the way; its transaction changed nothing."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(holder)
        self.holder = holder


def make_way(
    connection: Connection,
    spec: TableSpec,
    span: Interval,
    keys: KeyScope | None,
    *,
    priority: Priority,
    now_us: int,
) -> None:
    """Remove locks that clash with ``span`` x ``keys`` where they have expired or give way.

    To be called under the head. Raises `ChunkHeld` if one stays.
    """
    query = (
        select(chunk_lock, operation.c.id, operation.c.kind, operation.c.lease_until_us)
        .join(operation, operation.c.number == chunk_lock.c.operation)
        .where(
            chunk_lock.c.table_id == spec.id,
            chunk_lock.c.start_us < span.end_us,
            chunk_lock.c.end_us > span.start_us,
        )
    )
    wanted = Cell(span, keys)
    clashing = [row for row in connection.execute(query) if locks_clash(wanted, _cell(row))]
    for row in clashing:
        if row.lease_until_us >= now_us and row.priority >= priority:
            raise ChunkHeld(_holder(row))
    for row in clashing:
        connection.execute(delete(chunk_lock).where(chunk_lock.c.operation == row.operation))


def take(
    connection: Connection,
    spec: TableSpec,
    span: Interval,
    keys: KeyScope | None,
    *,
    priority: Priority,
    number: int,
    now_us: int,
) -> int:
    """Lock whole chunks for an operation and return the fencing token, or raise `ChunkHeld`."""
    make_way(connection, spec, span, keys, priority=priority, now_us=now_us)
    token: int = connection.execute(
        update(lake).values(next_token=lake.c.next_token + 1).returning(lake.c.next_token)
    ).scalar_one()
    connection.execute(
        chunk_lock.insert().values(
            token=token,
            table_id=spec.id,
            operation=number,
            start_us=span.start_us,
            end_us=span.end_us,
            keys=encode_keys(keys),
            priority=int(priority),
        )
    )
    return token


def count_held(connection: Connection, number: int) -> int:
    """How many locks an operation still holds."""
    query = select(func.count()).select_from(chunk_lock).where(chunk_lock.c.operation == number)
    return int(connection.execute(query).scalar_one())


def release(connection: Connection, number: int) -> None:
    """Give back an operation's locks."""
    connection.execute(delete(chunk_lock).where(chunk_lock.c.operation == number))


def read_locks(connection: Connection, spec: TableSpec) -> Listing[ChunkLock]:
    """Every lock on a table, a value a chunk, by time; a run of more than `MOST_LISTED` chunks is one value."""
    query = (
        select(chunk_lock, operation.c.id, operation.c.kind, operation.c.lease_until_us)
        .join(operation, operation.c.number == chunk_lock.c.operation)
        .where(chunk_lock.c.table_id == spec.id)
        .order_by(chunk_lock.c.start_us, chunk_lock.c.token)
    )
    return Listing(
        ChunkLock(
            chunk=one,
            operation=row.id,
            priority=row.priority,
            token=row.token,
            expires_at=from_us(row.lease_until_us),
            keys=decode_keys(row.keys),
            kind=row.kind,
        )
        for row in connection.execute(query)
        for one in _listed(spec, Interval(from_us(row.start_us), from_us(row.end_us)))
    )


def _listed(spec: TableSpec, run: Interval) -> list[Interval]:
    chunks = list(islice(spec.grain.chunks(run), MOST_LISTED + 1))
    return chunks if len(chunks) <= MOST_LISTED else [run]


def _cell(row: Any) -> Cell:
    return Cell(Interval(from_us(row.start_us), from_us(row.end_us)), decode_keys(row.keys))


def _holder(row: Any) -> Holder:
    held = _cell(row)
    return Holder(row.id, row.kind, held.interval, held.keys, row.lease_until_us)
