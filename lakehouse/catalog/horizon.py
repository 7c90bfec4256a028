"""Which versions can still be read.

Versions below the lake's horizon are forgotten, but for those that a tag names and, of each table, those that its log
still holds: the newest at the horizon and at each tag.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, bindparam, exists, or_, select

from lakehouse.catalog.database import stand_in_line
from lakehouse.catalog.models import commit_table, lake, lake_table, tag
from lakehouse.catalog.prepared import Prepared
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import TableNotFound, VersionNotFound

_HORIZON = Prepared(lambda _: select(lake.c.horizon))
_ERASED = Prepared(lambda _: select(lake_table.c.erased_version).where(lake_table.c.id == bindparam("table")))
_KEEP = Prepared(lambda _: select(lake.c.horizon).with_for_update(read=True, key_share=True))


def read_horizon(connection: Connection) -> int:
    """The oldest version that every table can be read at."""
    return int(_HORIZON.run(connection, {}).fetchone()[0])


def read_erased(connection: Connection, table: TableId) -> int:
    """The version of a table's newest erasure; 0 if there was none."""
    return int(_ERASED.run(connection, {"table": table}).fetchone()[0])


def keep_horizon(connection: Connection) -> int:
    """The horizon, which stays where it is until the transaction ends; commits go on meanwhile."""
    return int(_KEEP.run(connection, {}).fetchone()[0])


def hold_history(connection: Connection) -> tuple[int, int]:
    """Hold the head and the horizon until the transaction ends; return both."""
    stand_in_line(connection)
    row = connection.execute(select(lake.c.head, lake.c.horizon).with_for_update()).one()
    return row.head, row.horizon


def check_readable(connection: Connection, spec: TableSpec, version: int) -> None:
    """Raise `VersionNotFound` if a table can no longer be read at a version."""
    horizon = read_horizon(connection)
    if version < horizon and not is_retained(connection, version, spec.id):
        raise forgotten(version, horizon)


def is_retained(connection: Connection, version: int, table: TableId | None = None) -> bool:
    """Whether a version below the horizon is retained, of one table or of all."""
    kept: list[ColumnElement[bool]] = [exists().where(tag.c.version == version)]
    if table is not None:
        kept.append(exists().where(commit_table.c.table_id == table, commit_table.c.version == version))
    return bool(connection.execute(select(or_(*kept))).scalar())


def check_not_dropped(spec: TableSpec, dropped: int | None, version: int, horizon: int) -> None:
    """Raise `TableNotFound` for a table that was dropped by a version and whose rows are forgotten since."""
    if dropped is not None and dropped <= min(version, horizon):
        raise TableNotFound("the table was dropped and has been forgotten", table=spec.name, dropped=dropped)


def forgotten(version: object, horizon: int) -> VersionNotFound:
    """The error for a version that an expiry forgot."""
    return VersionNotFound(
        "the version has been forgotten; read the oldest that is kept, a newer one or a tag",
        version=version,
        oldest=horizon,
    )
