"""The name of a catalog's lake, and the address of the warehouse that it first wrote to."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from lakehouse.catalog.store.models import lake, segment
from lakehouse.core.check import StoredFile
from lakehouse.core.identity import Identity


def read_identity(connection: Connection) -> Identity:
    """The identity of the catalog's lake. Cost: two rows."""
    held = connection.execute(select(lake.c.identity, lake.c.warehouse)).one()
    live = select(segment.c.path, segment.c.bytes, segment.c.checksum).where(
        segment.c.dropped_version.is_(None), segment.c.path != ""
    )
    newest = connection.execute(live.order_by(segment.c.id.desc()).limit(1)).first()
    file = None if newest is None else StoredFile(newest.path, newest.bytes, bytes(newest.checksum or b""))
    return Identity(held.identity, held.warehouse, file)


def record_warehouse(connection: Connection, address: str) -> None:
    """Note where the lake's files lie; the first address stays."""
    connection.execute(update(lake).where(lake.c.warehouse.is_(None)).values(warehouse=address))


def rename_lake(connection: Connection, name: str) -> None:
    """Take the name by which a warehouse knows its lake."""
    connection.execute(update(lake).values(identity=name))
