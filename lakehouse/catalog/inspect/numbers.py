"""What became of numbers that operations drew."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select

from lakehouse.catalog.store.models import lake_table, operation
from lakehouse.core.drawn import DrawnNumber


def read_drawn(connection: Connection, numbers: Collection[int]) -> list[DrawnNumber]:
    """Operations that drew these numbers, as long as their traces are kept. Cost: the traces."""
    wanted = (
        select(operation.c.ordinal, operation.c.kind, lake_table.c.name, operation.c.state, operation.c.version)
        .join(lake_table, lake_table.c.id == operation.c.table_id)
        .where(operation.c.ordinal.in_(numbers))
        .order_by(operation.c.ordinal)
    )
    return [DrawnNumber(*row) for row in connection.execute(wanted)]
