"""Pins: what readers hold. One row a process, with the least version that it may still read and a lease."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from lakehouse.catalog.store.models import pin
from lakehouse.catalog.versions.horizon import check_readable
from lakehouse.core.spec import TableSpec


def place(
    connection: Connection, pin_id: str, spec: TableSpec, version: int, *, least: int, now_us: int, lease_us: int
) -> None:
    """Hold versions from ``least`` on, if the table can still be read at ``version``, with the horizon kept.

    Raises `VersionNotFound`.
    """
    check_readable(connection, spec, version)
    insert: Any = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(pin)
    values = {"version": least, "lease_until_us": now_us + lease_us}
    connection.execute(insert.values(id=pin_id, **values).on_conflict_do_update(index_elements=[pin.c.id], set_=values))


def renew(connection: Connection, pin_id: str, least: int, now_us: int, lease_us: int) -> bool:
    """Keep a pin whose lease has not run out, from ``least`` on, with the horizon kept; False if it is gone."""
    held = update(pin).where(pin.c.id == pin_id, pin.c.lease_until_us >= now_us)
    return connection.execute(held.values(version=least, lease_until_us=now_us + lease_us)).rowcount == 1


def remove(connection: Connection, pin_id: str) -> None:
    """Let go."""
    connection.execute(delete(pin).where(pin.c.id == pin_id))


def oldest(connection: Connection, now_us: int) -> int | None:
    """The least version that a living reader holds."""
    found: int | None = connection.execute(
        select(func.min(pin.c.version)).where(pin.c.lease_until_us >= now_us)
    ).scalar()
    return found


def remove_dead(connection: Connection, now_us: int) -> None:
    """Forget the pins of processes that stopped renewing them."""
    connection.execute(delete(pin).where(pin.c.lease_until_us < now_us))
