"""The newest batch of each stream on a table, from the marks (``txn``) of commits."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, exists, func, select, text

from lakehouse.catalog.store.encoding import decode_map
from lakehouse.catalog.store.models import commit_log, txn
from lakehouse.core.spec import TableId
from lakehouse.core.stream import OFFSETS, Batch

_APPS = text(
    """
    WITH RECURSIVE apps(app) AS (
        SELECT min(app) FROM txn WHERE table_id = :table
        UNION ALL
        SELECT (SELECT min(app) FROM txn WHERE table_id = :table AND app > apps.app)
        FROM apps WHERE apps.app IS NOT NULL
    )
    SELECT app FROM apps WHERE app IS NOT NULL
    """
)
"""Who has marks on a table: one look-up for each, however many marks there are."""


def newest_batch(connection: Connection, table: TableId, stream: str) -> Batch | None:
    """The newest batch of a stream; None if it has committed none on the table."""
    mine = (txn.c.table_id == table, txn.c.app == stream)
    row = connection.execute(
        select(txn.c.sequence, txn.c.version, commit_log.c.properties)
        .outerjoin(commit_log, commit_log.c.version == txn.c.version)
        .where(*mine)
        .order_by(txn.c.sequence.desc())
        .limit(1)
    ).first()
    return None if row is None else Batch(stream, row.sequence, row.version, decode_map(row.properties))


def newest_batches(connection: Connection, table: TableId) -> list[Batch]:
    """The newest batch of each stream, by stream. Cost: a look-up for each name that has marks on the table."""
    apps = connection.execute(_APPS, {"table": table}).scalars().all()
    found = (newest_batch(connection, table, one) for one in apps)
    return [one for one in found if one is not None and one.offsets is not None]


def is_newest_of_stream() -> ColumnElement[bool]:
    """Whether a mark says how far its stream has come: without it, rows could be read twice or never."""
    later = txn.alias("later")
    last = (
        select(func.max(later.c.sequence))
        .where(later.c.table_id == txn.c.table_id, later.c.app == txn.c.app)
        .scalar_subquery()
    )
    told = exists().where(commit_log.c.version == txn.c.version, commit_log.c.properties.contains(f'"{OFFSETS}"'))
    return and_(txn.c.sequence == last, told)
