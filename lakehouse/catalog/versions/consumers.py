"""Consumers: named readers with a position in a table's change feed, and a lease that keeps what they have yet to read.

A reader attaches with a token of its own, and every move names it: of two readers of one name the one that attached
last goes on, from where the other was, and the other's next move fails.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from lakehouse.catalog.store.models import commit_table, consumer, lake_table
from lakehouse.catalog.versions.horizon import check_complete, read_horizon
from lakehouse.core.consumer import Consumer, Given
from lakehouse.core.feed import Position
from lakehouse.core.interval import from_us
from lakehouse.core.listing import Listing
from lakehouse.core.operation import CHANGE_NO_ROW
from lakehouse.core.spec import TableSpec
from lakehouse.errors import ConsumerExpired, ConsumerLost, ConsumerNotFound, InvalidArgument, VersionNotFound

changes_rows = and_(*(commit_table.c.operation != kind.value for kind in CHANGE_NO_ROW))  # as `Prepared` takes it
"""Whether a version may have changed rows of a table."""
EXPIRED = (
    "versions that the consumer has yet to read have expired, after its lease had; begin again where they are kept, by "
    "since=, or drop the consumer, and begin with all that there is"
)


def attach(
    connection: Connection,
    name: str,
    spec: TableSpec,
    start: Position,
    *,
    given: Position | None,
    token: str,
    head: int,
    now_us: int,
    lease_us: int,
) -> tuple[Position, Given]:
    """Take over a consumer, or make one at ``start``; return where it goes on, and what was given there last.

    A known one goes on where it was, or where ``given`` says if that has expired. Holds the horizon meanwhile. Raises
    `ConsumerExpired`, `InvalidArgument` if it reads another table.
    """
    held = connection.execute(select(consumer).where(consumer.c.name == name).with_for_update()).first()
    values = {"token": token, "lease_us": lease_us, "lease_until_us": now_us + lease_us}
    if held is None:
        _check(connection, spec, start, head)
        last = Given(token[:16])
        placed = {"table_id": spec.id, **_place(start, last), **values}
        connection.execute(insert(consumer).values(name=name, **placed))
        return start, last
    if held.table_id != spec.id:
        raise InvalidArgument(
            "the consumer reads another table; choose another name, or drop it", consumer=name, table=spec.name
        )
    position, last = _position(held), Given(token[:16])
    if held.given is not None:
        last, position = Given.of_text(held.given, position)
    try:
        _check(connection, spec, position, head)
    except VersionNotFound as error:
        if given is None:
            raise ConsumerExpired(
                EXPIRED,
                consumer=name,
                table=spec.name,
                version=position.version,
                oldest=read_horizon(connection),
            ) from error
        _check(connection, spec, given, head)
        position, last = given, replace(last, end=None)
    mine = update(consumer).where(consumer.c.name == name)
    connection.execute(mine.values(**_place(position, last), **values))
    return position, last


def _check(connection: Connection, spec: TableSpec, position: Position, head: int) -> None:
    """Raise `VersionNotFound` if something after a position has expired, or what a snapshot shows."""
    check_complete(connection, spec, position.version, max(position.version, head))


def _place(position: Position, last: Given) -> dict[str, Any]:
    found = {"version": position.version, "file": position.file, "is_snapshot": position.is_snapshot}
    return {**found, "given": last.to_text(position)}


def _position(held: Any) -> Position:
    return Position(held.version, held.file, bool(held.is_snapshot))


def move(connection: Connection, name: str, token: str, position: Position, last: Given, now_us: int) -> None:
    """Record how far a reader has come and what it is given, and renew its lease.

    Raises `ConsumerLost` if it is its reader no more.
    """
    mine = update(consumer).where(consumer.c.name == name, consumer.c.token == token)
    values = {**_place(position, last), "lease_until_us": now_us + consumer.c.lease_us}
    if connection.execute(mine.values(**values)).rowcount != 1:
        raise lost(name)


def lost(name: str) -> ConsumerLost:
    """The error of a reader that another one has taken over from."""
    return ConsumerLost(
        "another reader has taken over the consumer, or it was dropped; stop, or read by another name", consumer=name
    )


def owner(connection: Connection, name: str) -> str | None:
    """The token of a consumer's reader; None without such a consumer."""
    found: str | None = connection.execute(select(consumer.c.token).where(consumer.c.name == name)).scalar()
    return found


def find(connection: Connection, name: str, spec: TableSpec) -> Position | None:
    """Where a consumer of a table is; None without such a consumer."""
    mine = select(consumer).where(consumer.c.name == name, consumer.c.table_id == spec.id)
    held = connection.execute(mine).first()
    return None if held is None else _position(held)


def remove(connection: Connection, name: str) -> None:
    """Remove a consumer. Raises `ConsumerNotFound`."""
    if connection.execute(delete(consumer).where(consumer.c.name == name)).rowcount == 0:
        raise ConsumerNotFound("no such consumer; lake.consumers() lists them", consumer=name)


def read_consumers(connection: Connection) -> Listing[Consumer]:
    """Every consumer, by name. Cost: the versions that they have yet to read, by an index."""
    later = select(func.count()).where(
        commit_table.c.table_id == consumer.c.table_id, commit_table.c.version > consumer.c.version, changes_rows
    )
    query = (
        select(consumer, lake_table.c.name.label("table_name"), later.scalar_subquery().label("lag"))
        .join(lake_table, lake_table.c.id == consumer.c.table_id)
        .order_by(consumer.c.name)
    )
    return Listing(
        Consumer(
            name=row.name,
            table=row.table_name,
            version=row.version,
            lag=row.lag + bool(row.is_snapshot),
            expires_at=from_us(row.lease_until_us),
        )
        for row in connection.execute(query)
    )


def oldest(connection: Connection, now_us: int) -> int | None:
    """The least version that a consumer whose lease lasts has come to."""
    found: int | None = connection.execute(
        select(func.min(consumer.c.version)).where(consumer.c.lease_until_us >= now_us)
    ).scalar()
    return found
