"""Pins protect versions for readers: one row for each process, with a lease and the least version it may read."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from lakehouse.catalog.store.columns import inserting
from lakehouse.catalog.store.models import pin
from lakehouse.catalog.versions.horizon import check_readable
from lakehouse.core.spec import TableSpec


def place(
    connection: Connection, pin_id: str, spec: TableSpec, version: int, *, least: int, now_us: int, lease_us: int
) -> None:
    """Protect versions from ``least`` on, if the table can still be read at ``version``; holds the horizon meanwhile.

    Raises `VersionNotFound`.
    """
    check_readable(connection, spec, version)
    insert: Any = inserting(pin, connection.dialect.name)
    values = {"version": least, "lease_until_us": now_us + lease_us}
    connection.execute(insert.values(id=pin_id, **values).on_conflict_do_update(index_elements=[pin.c.id], set_=values))


def renew(connection: Connection, pin_id: str, least: int, now_us: int, lease_us: int) -> bool:
    """Renew a pin that has not expired, from ``least`` on; holds the horizon meanwhile. False if it is gone."""
    held = update(pin).where(pin.c.id == pin_id, pin.c.lease_until_us >= now_us)
    return connection.execute(held.values(version=least, lease_until_us=now_us + lease_us)).rowcount == 1


def remove(connection: Connection, pin_id: str) -> None:
    """Remove a pin."""
    connection.execute(delete(pin).where(pin.c.id == pin_id))


def oldest(connection: Connection, now_us: int) -> int | None:
    """The least version that a live reader protects."""
    found: int | None = connection.execute(
        select(func.min(pin.c.version)).where(pin.c.lease_until_us >= now_us)
    ).scalar()
    return found


def remove_dead(connection: Connection, now_us: int) -> None:
    """Remove the pins of processes that stopped renewing them."""
    connection.execute(delete(pin).where(pin.c.lease_until_us < now_us))
