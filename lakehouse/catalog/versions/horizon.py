"""Which versions can still be read.

Versions below the lake's horizon have expired, except tagged ones and, for each table, the newest at the horizon and at
each tag. What the log still holds does not matter: a running or interrupted expiry leaves rows of expired versions in
it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    bindparam,
    exists,
    func,
    literal,
    or_,
    select,
    union,
)

from lakehouse.catalog.store.database import stand_in_line
from lakehouse.catalog.store.models import commit_table, consumer, lake, lake_table, pin, tag
from lakehouse.catalog.store.prepared import Prepared
from lakehouse.core.operation import NAMINGS, Kind
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import TableNotFound, VersionNotFound

_HORIZON = Prepared(lambda _: select(lake.c.horizon))
_ERASED = Prepared(lambda _: select(lake_table.c.erased_version).where(lake_table.c.id == bindparam("table")))
STATES = (Kind.CREATE.value, *(kind.value for kind in Kind if kind not in NAMINGS))
"""Kinds of commits that change what is read of a table, or create it."""
_KEEP = Prepared(lambda _: select(lake.c.horizon).with_for_update(read=True, key_share=True))


def read_horizon(connection: Connection) -> int:
    """The oldest version at which every table can be read."""
    return int(_HORIZON.run(connection, {}).fetchone()[0])


def read_erased(connection: Connection, table: TableId) -> int:
    """The version of a table's newest erasure; 0 if there was none."""
    return int(_ERASED.run(connection, {"table": table}).fetchone()[0])


def keep_horizon(connection: Connection) -> int:
    """The horizon, which does not move until the transaction ends; commits continue meanwhile."""
    return int(_KEEP.run(connection, {}).fetchone()[0])


def hold_history(connection: Connection) -> tuple[int, int]:
    """Hold the head and the horizon until the transaction ends; return both."""
    stand_in_line(connection)
    row = connection.execute(select(lake.c.head, lake.c.horizon).with_for_update()).one()
    return row.head, row.horizon


def check_readable(connection: Connection, spec: TableSpec, version: int) -> None:
    """Raise `VersionNotFound` if a table can no longer be read at a version.

    A reader that holds a tag's version may continue after the tag is removed.
    """
    horizon = read_horizon(connection)
    if not _is_readable(connection, spec, version, horizon):
        raise forgotten(version, horizon)


def _is_readable(connection: Connection, spec: TableSpec, version: int, horizon: int) -> bool:
    return version >= horizon or is_retained(connection, version, spec.id) or _is_held(connection, version, spec)


def is_retained(connection: Connection, version: int, table: TableId | None = None) -> bool:
    """Whether a version below the horizon is retained, of one table or of all."""
    kept: list[ColumnElement[bool]] = [exists().where(tag.c.version == version)]
    if table is not None:
        kept.append(literal(version, BigInteger).in_(newest_at_points(table)))
    return bool(connection.execute(select(or_(*kept))).scalar())


def newest_at_points(table: TableId | ColumnElement[int]) -> Select[Any]:
    """A table's newest versions at the horizon and at each tag at which it existed.

    Cost: one look-up for each tag.
    """
    point = union(select(lake.c.horizon.label("version")), select(tag.c.version)).subquery()
    of, known = commit_table.alias(), lake_table.alias()
    moves = of.c.operation.in_(STATES)
    newest = select(func.max(of.c.version)).where(of.c.table_id == table, of.c.version <= point.c.version, moves)
    is_there = exists().where(
        known.c.id == table, or_(known.c.dropped_version.is_(None), known.c.dropped_version > point.c.version)
    )
    outer = (point, commit_table)
    found = select(newest.correlate(*outer).scalar_subquery()).select_from(point)
    return found.where(is_there.correlate(*outer))


def is_readable(table: TableId | ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a row of `models.commit_table` is of a version at which its table can be read."""
    horizon = select(lake.c.horizon).scalar_subquery()
    return or_(commit_table.c.version >= horizon, commit_table.c.version.in_(newest_at_points(table)))


def _is_held(connection: Connection, version: int, spec: TableSpec) -> bool:
    """Whether a pin or consumer holds a version below the horizon that was retained until its tag went.

    The log is reliable here: an expiry removes a version from it before anything else, and never one that is held.
    """
    held = exists().where(pin.c.version <= version) | exists().where(consumer.c.version <= version)
    known = exists().where(commit_table.c.table_id == spec.id, commit_table.c.version == version)
    return bool(connection.execute(select(held & known)).scalar())


def check_complete(connection: Connection, spec: TableSpec, since: int, until: int) -> None:
    """Raise `VersionNotFound` if a version of a table after ``since``, up to ``until``, may have expired."""
    horizon = read_horizon(connection)
    if since >= horizon:
        return
    if not _is_readable(connection, spec, until, horizon):
        raise forgotten(until, horizon)
    between = (commit_table.c.version > since, commit_table.c.version <= min(until, horizon))
    mine = (commit_table.c.table_id == spec.id, commit_table.c.operation.in_(STATES))
    following = select(commit_table.c.version).where(*mine, *between).order_by(commit_table.c.version)
    before = since
    for version in connection.execute(following).scalars():
        # Between two non-adjacent numbers there may have been another, which the log no longer has.
        if version != before + 1 or not _is_readable(connection, spec, version, horizon):
            raise forgotten(since, horizon)
        before = version


def check_not_dropped(spec: TableSpec, dropped: int | None, version: int, horizon: int) -> None:
    """Raise `TableNotFound` for a table that was dropped by a version and whose rows have expired since."""
    if dropped is not None and dropped <= min(version, horizon):
        raise gone(spec, dropped=dropped)


def gone(spec: TableSpec, **facts: object) -> TableNotFound:
    """The error for a table of which no version can be read."""
    return TableNotFound("the table was dropped and has expired", table=spec.name, **facts)


def forgotten(version: object, horizon: int) -> VersionNotFound:
    """The error for an expired version."""
    return VersionNotFound(
        "the version has expired; read the oldest that is kept, a newer one or a tag",
        version=version,
        oldest=horizon,
    )
