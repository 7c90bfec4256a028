"""Versions: the commit log, tags, and resolving which version a reader means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, delete, func, select

from lakehouse.catalog.store.columns import inserting
from lakehouse.catalog.store.encoding import decode_map
from lakehouse.catalog.store.models import commit_log, commit_table, lake, lake_table, tag, txn
from lakehouse.catalog.store.prepared import Prepared
from lakehouse.catalog.versions.horizon import (
    check_not_dropped,
    forgotten,
    gone,
    is_readable,
    is_retained,
    read_horizon,
)
from lakehouse.core.commit import Commit
from lakehouse.core.interval import from_us, to_us, to_utc
from lakehouse.core.listing import Listing
from lakehouse.core.operation import DEFINITIONS, NAMINGS, Kind
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import AlreadyExists, InvalidInput, InvalidName, InvalidVersion, TableNotFound, VersionNotFound

_TAG = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,127}")
_MOST_DIGITS = 19
GAP = 1_000_000_000
"""Versions after a recovery begin at a multiple of this, and so do numbers of operations and locks."""
EXPORTED = "exported_version"
"""Property of a recovery's version: the newest known version before it."""
on_rows = commit_table.c.operation.not_in([kind.value for kind in DEFINITIONS])
"""Whether a version changed a table's rows, not only its definition."""
_on_table = commit_table.c.operation.not_in([kind.value for kind in NAMINGS])
"""Whether it changed its rows or columns."""


def _table(_: str) -> Any:
    """The head, the horizon; of a table whether it is known, when it was dropped, its newest version, its schema."""
    known = select(lake_table.c.id).where(lake_table.c.id == bindparam("table"))
    dropped = known.with_only_columns(lake_table.c.dropped_version)
    number = known.with_only_columns(lake_table.c.schema_number)
    newest = select(func.max(commit_table.c.version)).where(
        commit_table.c.table_id == bindparam("table"),
        *(commit_table.c.operation != kind.value for kind in NAMINGS),
    )
    of_table = (one.scalar_subquery() for one in (known, dropped, newest, number))
    return select(lake.c.head, lake.c.horizon, *of_table)


_TABLE = Prepared(_table)


def read_head(connection: Connection) -> int:
    """The newest version; 0 for a lake without any."""
    return int(connection.execute(select(lake.c.head)).scalar_one())


def read_commits(
    connection: Connection,
    *,
    table: TableId | None = None,
    limit: int | None = None,
    version: int | None = None,
    before: int | None = None,
    operation: str | None = None,
    touching: Select[Any] | None = None,
    after: int | None = None,
    definitions: bool = False,
) -> Listing[Commit]:
    """Commits that can be read, newest first: of the lake, or those that changed a table's rows.

    With ``definitions`` also those that changed its columns or properties. ``before`` keeps older versions, ``after``
    newer ones, ``operation`` one kind, ``touching`` those that it selects.
    """
    newest = select(commit_log).order_by(commit_log.c.version.desc()).limit(limit)
    if before is not None:
        newest = newest.where(commit_log.c.version < before)
    if after is not None:
        newest = newest.where(commit_log.c.version > after)
    if operation is not None:
        newest = newest.where(commit_log.c.operation == operation)
    if touching is not None:
        newest = newest.where(commit_log.c.version.in_(touching))
    if table is not None:
        newest = newest.join(commit_table, commit_table.c.version == commit_log.c.version).where(
            commit_table.c.table_id == table, _on_table if definitions else on_rows, is_readable(table)
        )
    elif version is None:
        horizon = select(lake.c.horizon).scalar_subquery()
        newest = newest.where((commit_log.c.version >= horizon) | commit_log.c.version.in_(select(tag.c.version)))
    if version is not None:
        newest = newest.where(commit_log.c.version == version)
    commits = connection.execute(newest).all()
    if not commits:
        return Listing()
    span = and_(commit_table.c.version >= commits[-1].version, commit_table.c.version <= commits[0].version)
    parts: dict[int, list[Any]] = {}
    changed = (
        select(commit_table, lake_table.c.name, txn.c.app, txn.c.sequence)
        .join(lake_table, lake_table.c.id == commit_table.c.table_id)
        .outerjoin(txn, and_(txn.c.version == commit_table.c.version, txn.c.table_id == commit_table.c.table_id))
        .where(span)
        .order_by(lake_table.c.name)
    )
    for row in connection.execute(changed):
        parts.setdefault(row.version, []).append(row)
    return Listing(_commit(row, parts.get(row.version, []), table) for row in commits)


def _commit(row: Any, parts: Sequence[Any], table: TableId | None) -> Commit:
    counted = {part.table_id: part for part in parts if table is None or part.table_id == table}.values()
    marks = [(part.app, part.sequence) for part in parts if part.app is not None]
    return Commit(
        version=row.version,
        operation=row.operation,
        committed_at=from_us(row.committed_us),
        tables=tuple(dict.fromkeys(part.name for part in parts)),
        added=sum(part.segments_added for part in counted),
        dropped=sum(part.segments_dropped for part in counted),
        rows_added=sum(part.rows_added for part in counted),
        rows_deleted=sum(part.rows_deleted for part in counted),
        tombstones_added=sum(part.tombstones_added for part in counted),
        tombstones_dropped=sum(part.tombstones_dropped for part in counted),
        bytes_added=sum(part.bytes_added for part in counted),
        is_exact=all(part.is_exact for part in counted),
        message=row.message,
        properties=decode_map(row.properties),
        txn=marks[0] if marks else None,
    )


def version_numbers(connection: Connection, table: TableId) -> list[int]:
    """Every version that changed a table's rows and is still in the log, oldest first."""
    numbers = select(commit_table.c.version).where(commit_table.c.table_id == table, on_rows, is_readable(table))
    return [int(one) for one in connection.execute(numbers.order_by(commit_table.c.version)).scalars()]


def newest_version(connection: Connection, table: TableId, created: int, at_most: int | None = None) -> int:
    """A table's newest version at or before ``at_most``, of rows or columns; its creation if there is none."""
    scope = and_(commit_table.c.table_id == table, _on_table)
    if at_most is not None:
        scope = and_(scope, commit_table.c.version <= at_most)
    found: int | None = connection.execute(select(func.max(commit_table.c.version)).where(scope)).scalar()
    return created if found is None else found


class Resolved(NamedTuple):
    """What ``as_of`` means for a table."""

    version: int
    """The table's newest version at or before it."""
    held_version: int
    """The newest at which its rows are still the same: what a reader has to pin."""
    point: int
    """The version of the lake."""
    schema_number: int
    """The table's at the head."""


def resolve_on_table(connection: Connection, spec: TableSpec, created: int, as_of: Any) -> Resolved:
    """What ``as_of`` means for a table. Raises `VersionNotFound`, `InvalidInput`, or `TableNotFound`."""
    head, horizon, known, dropped, newest, number = _TABLE.run(connection, {"table": spec.id}).fetchone()
    if known is None:
        raise gone(spec)
    if as_of is None:
        check_not_dropped(spec, dropped, head, horizon)
        if dropped is not None:
            raise TableNotFound(
                "the table was dropped; what it held can be read as of a version before, until that expires",
                table=spec.name,
                dropped=dropped,
            )
        return Resolved(created if newest is None else newest, head, head, number)
    resolved = resolve_version(connection, as_of, spec.id)
    if resolved < created:
        raise VersionNotFound(
            "the table did not exist at that version", table=spec.name, version=resolved, created=created
        )
    check_not_dropped(spec, dropped, resolved, horizon)
    version = newest_version(connection, spec.id, created, resolved)
    scope = and_(commit_table.c.table_id == spec.id, commit_table.c.version > version, _on_table)
    following: int | None = connection.execute(select(func.min(commit_table.c.version)).where(scope)).scalar()
    if following is None:
        return Resolved(version, head, resolved, number)
    return Resolved(version, following - 1 if following > horizon else version, resolved, number)


def resolve_version(connection: Connection, as_of: Any, table: TableId | None = None) -> int:
    """Resolve a version, tag, datetime or ISO text to a number, of a table or of the whole lake.

    Raises `VersionNotFound`, also for expired versions, or `InvalidInput`.
    """
    match as_of:
        case None:
            return read_head(connection)
        case bool():
            raise InvalidVersion("not a version; pass a number, a tag or a time", as_of=as_of)
        case int():
            return _numbered(connection, as_of, table)
        case str():
            named = select(tag.c.version).where(tag.c.name == as_of)
            tagged: int | None = connection.execute(named).scalar() if _TAG.fullmatch(as_of) else None
            if tagged is not None:
                return tagged
            if as_of.isdecimal() and len(as_of) <= _MOST_DIGITS:
                return _numbered(connection, int(as_of), table)
            try:
                instant = to_utc(as_of)
            except InvalidInput as error:
                raise VersionNotFound(
                    "no such tag, and not a version or an ISO 8601 time; see the log and the tags", as_of=as_of[:100]
                ) from error
            return _at(connection, instant)
        case datetime() | date():
            return _at(connection, to_utc(as_of))
        case _:
            if hasattr(as_of, "__index__"):
                return _numbered(connection, int(as_of), table)
            raise InvalidVersion("not a version; pass a number, a tag or a time", as_of=repr(as_of))


def _numbered(connection: Connection, version: int, table: TableId | None) -> int:
    row = connection.execute(select(lake.c.counter, lake.c.horizon)).one()
    if not -(2**63) <= version < 2**63:  # a number may have too many digits for a message
        raise VersionNotFound("no such version; see the log for those that exist", newest=row.counter)
    if not 0 < version <= row.counter:
        raise VersionNotFound("no such version; see the log for those that exist", version=version, newest=row.counter)
    if row.counter >= GAP:
        _require_not_lost(connection, version)
    if version < row.horizon and not is_retained(connection, version, table):
        raise forgotten(version, row.horizon)
    return version


def _require_not_lost(connection: Connection, version: int) -> None:
    """Refuse versions after the export from which the catalog was recovered, whose contents are unknown."""
    following = select(commit_log).where(commit_log.c.version >= version).order_by(commit_log.c.version).limit(1)
    found = connection.execute(following).first()
    if found is None or found.operation != Kind.RECOVER or found.version == version:
        return
    exported = int(decode_map(found.properties)[EXPORTED])
    if version > exported:
        raise VersionNotFound(
            "the version was lost with its catalog; see the log for those that exist",
            version=version,
            exported=exported,
            recovered=found.version,
        )


def _at(connection: Connection, instant: datetime) -> int:
    found = version_at(connection, to_us(instant))
    horizon = read_horizon(connection)
    if found is None or found < horizon:
        if horizon:
            raise forgotten(instant.isoformat(), horizon)
        raise VersionNotFound("no version is that old; see the log for the first one", as_of=instant.isoformat())
    return found


def version_at(connection: Connection, instant_us: int) -> int | None:
    """The newest version at a time, of those in the log."""
    condition: ColumnElement[bool] = commit_log.c.committed_us <= instant_us
    found: int | None = connection.execute(
        select(commit_log.c.version).where(condition).order_by(commit_log.c.committed_us.desc()).limit(1)
    ).scalar()
    return found


def add_tag(connection: Connection, name: Any, version: int, now_us: int) -> None:
    """Tag a version. Raises `AlreadyExists` if the tag names another one."""
    if not isinstance(name, str) or not _TAG.fullmatch(name):
        raise InvalidName(
            "not a tag; use a letter, then at most 127 letters, digits, dots, dashes and underscores", tag=repr(name)
        )
    insert: Any = inserting(tag, connection.dialect.name)
    # Another process may use the name at the same moment: the second one sees the first one's tag.
    given = insert.values(name=name, version=version, tagged_us=now_us).on_conflict_do_nothing()
    if connection.execute(given).rowcount == 1:
        return
    held: int = connection.execute(select(tag.c.version).where(tag.c.name == name)).scalar_one()
    if held != version:
        raise AlreadyExists("the tag names another version; untag it first", tag=name, version=held)


def remove_tag(connection: Connection, name: str) -> None:
    """Remove a tag. Raises `VersionNotFound`."""
    if connection.execute(delete(tag).where(tag.c.name == name)).rowcount == 0:
        raise VersionNotFound("no such tag", tag=name)


def read_tags(connection: Connection) -> dict[str, int]:
    """Versions by tag, sorted by name."""
    rows = connection.execute(select(tag).order_by(tag.c.name))
    return {row.name: row.version for row in rows}
