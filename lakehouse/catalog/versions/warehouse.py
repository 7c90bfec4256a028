"""Where the files of a catalog's lake lie."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from lakehouse.catalog.store.models import lake, segment

_SOME = 8
"""Files that are looked for: one or the other may have been lost."""


def read_warehouse(connection: Connection) -> tuple[str | None, list[str]]:
    """The location of the warehouse that is the lake's, None before the first write, and paths of the newest segments.

    Cost: a few rows.
    """
    location: str | None = connection.execute(select(lake.c.warehouse)).scalar_one()
    newest = select(segment.c.path).where(segment.c.path != "").order_by(segment.c.id.desc()).limit(_SOME)
    return location, list(connection.execute(newest).scalars())


def record_warehouse(connection: Connection, location: str, before: str | None) -> None:
    """Note where the lake's files lie, if the location is still the one that it was before."""
    known = lake.c.warehouse.is_(None) if before is None else lake.c.warehouse == before
    connection.execute(update(lake).where(known).values(warehouse=location))
