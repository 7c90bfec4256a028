"""Names and definitions of tables. Each change of them is a version of the lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace

from sqlalchemy import Connection, bindparam, exists, select, update

from lakehouse.arguments import nearest_table
from lakehouse.catalog.store.models import commit_log, commit_table, lake_table, operation
from lakehouse.catalog.store.prepared import Prepared
from lakehouse.catalog.store.rows import spec_definition, spec_from_row
from lakehouse.catalog.versions.definitions import write_properties
from lakehouse.catalog.versions.horizon import hold_history
from lakehouse.core.beside import beside, is_beside, is_replacement
from lakehouse.core.operation import Kind
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import AlreadyExists, TableNotFound

Change = Callable[[TableSpec], Mapping[str, str]]
"""A function from a table to its new properties. It may be called again."""
_live = lake_table.c.dropped_version.is_(None)
_FIND = Prepared(lambda _: select(lake_table).where(lake_table.c.name == bindparam("wanted"), _live))
_COLUMNS = [column.name for column in lake_table.columns]


def find_table(connection: Connection, name: str) -> tuple[TableSpec, int] | None:
    """A live table's definition and the version that created it."""
    if not str(name).isascii() or "\0" in str(name):
        return None  # no table can have such a name, and some databases refuse it in a query
    found = _FIND.run(connection, {"wanted": name}).fetchone()
    if found is None:
        return None
    row = SimpleNamespace(**dict(zip(_COLUMNS, found, strict=True)))
    return spec_from_row(row), row.created_version


def is_forgotten(connection: Connection, table: TableId) -> bool:
    """Whether a table is gone completely: dropped, and expired since."""
    return connection.execute(select(lake_table.c.id).where(lake_table.c.id == table)).first() is None


def table_names(connection: Connection) -> list[str]:
    """Names of live tables, sorted, of the lake's own too."""
    return sorted(connection.execute(select(lake_table.c.name).where(_live)).scalars())


def create_table(connection: Connection, spec: TableSpec) -> tuple[TableSpec, int]:
    """Create a table. Raises `AlreadyExists`, unless the existing one has its folder and so was made by this call."""
    from lakehouse.catalog.commit.commit import next_version  # noqa: PLC0415 - late
    from lakehouse.catalog.commit.views import require_no_view  # noqa: PLC0415 - late

    version, now_us = next_version(connection)
    held = find_table(connection, spec.name)
    if held is not None:
        if held[0].folder == spec.folder:
            return held
        raise AlreadyExists("a table of that name exists; choose another or pass if_not_exists=True", table=spec.name)
    require_no_view(connection, spec.name)
    table = connection.execute(
        lake_table.insert()
        .values(
            name=spec.name,
            folder=spec.folder,
            definition=spec_definition(spec),
            schema_number=spec.schema_number,
            created_version=version,
            next_row_id=0,
        )
        .returning(lake_table.c.id)
    ).scalar_one()
    _record(connection, version, now_us, Kind.CREATE, [table], f"create table {spec.name}")
    return replace(spec, id=TableId(table)), version


def rename_table(connection: Connection, old: str, new: str) -> None:
    """Rename a table; its files and history stay where they are."""
    from lakehouse.catalog.commit.commit import next_version  # noqa: PLC0415 - late
    from lakehouse.catalog.commit.views import require_no_view  # noqa: PLC0415 - late

    version, now_us = next_version(connection)
    held = find_table(connection, old)
    if held is None:
        raise _missing(connection, old)
    if find_table(connection, new) is not None:
        raise AlreadyExists("a table of that name exists; choose another", table=new)
    require_no_view(connection, new)
    connection.execute(update(lake_table).where(lake_table.c.id == held[0].id).values(name=new))
    _record(connection, version, now_us, Kind.RENAME, [held[0].id], f"rename table {old} to {new}")


def replace_table(connection: Connection, old: str, new: str) -> None:
    """Drop a table and give its name to another one, as one version."""
    from lakehouse.catalog.commit.commit import next_version  # noqa: PLC0415 - late

    version, now_us = next_version(connection)
    held, by = find_table(connection, old), find_table(connection, new)
    if held is None or by is None:
        raise _missing(connection, old if held is None else new)
    dropped = _drop(connection, held[0], version)
    connection.execute(update(lake_table).where(lake_table.c.id == by[0].id).values(name=old))
    _record(connection, version, now_us, Kind.RENAME, [by[0].id], f"replace table {old}", dropped)


def set_properties(connection: Connection, name: str, change: Change) -> tuple[TableSpec, int]:
    """Change a table's properties, computed from its current ones; its definition, and the version."""
    from lakehouse.catalog.commit.commit import next_version  # noqa: PLC0415 - late

    version, now_us = next_version(connection)
    held = find_table(connection, name)
    if held is None:
        raise _missing(connection, name)
    spec = replace(held[0], properties=change(held[0]))
    write_properties(connection, spec, now_us)
    _record(connection, version, now_us, Kind.ALTER, [spec.id], f"set properties of table {name}")
    return spec, version


def drop_table(connection: Connection, name: str) -> None:
    """Drop a table, and what remembers its changes; their rows stay in storage until they are collected."""
    from lakehouse.catalog.commit.commit import next_version  # noqa: PLC0415 - late

    version, now_us = next_version(connection)
    held = find_table(connection, name)
    if held is None:
        raise _missing(connection, name)
    dropped = _drop(connection, held[0], version)
    _record(connection, version, now_us, Kind.DROP_TABLE, [], f"drop table {name}", dropped)


def drop_forsaken(connection: Connection, before_us: int) -> None:
    """Drop replacements of tables that were made before a time and that nobody fills: their writers have died."""
    names = [one for one in table_names(connection) if is_replacement(one)]
    if not names:
        return
    hold_history(connection)  # else one could take the other's name between the look and the drop
    is_young = exists().where(
        commit_log.c.version == lake_table.c.created_version, commit_log.c.committed_us >= before_us
    )
    is_written = exists().where(operation.c.table_id == lake_table.c.id, operation.c.state == "running")
    old = select(lake_table.c.name).where(_live, lake_table.c.name.in_(names), ~is_young, ~is_written)
    for name in connection.execute(old).scalars().all():
        drop_table(connection, name)


def _drop(connection: Connection, spec: TableSpec, version: int) -> list[int]:
    """Mark a table as dropped, and what remembers its changes; their ids."""
    own = find_table(connection, beside(spec.folder))
    dropped = [spec.id] if own is None else [spec.id, own[0].id]
    connection.execute(update(lake_table).where(lake_table.c.id.in_(dropped)).values(dropped_version=version))
    return list(dropped)


def get_table(connection: Connection, name: str) -> tuple[TableSpec, int]:
    """A live table's definition and the version that created it. Raises `TableNotFound`."""
    held = find_table(connection, name)
    if held is None:
        raise _missing(connection, name)
    return held


def _missing(connection: Connection, name: str) -> TableNotFound:
    names = [one for one in table_names(connection) if not is_beside(one)]
    return TableNotFound("no such table; create it or check its name", table=name, **nearest_table(name, names))


def _record(
    connection: Connection,
    version: int,
    now_us: int,
    kind: Kind,
    tables: Sequence[int],
    message: str,
    dropped: Sequence[int] = (),
) -> None:
    from lakehouse.catalog.commit.commit import record_version  # noqa: PLC0415 - late

    record_version(connection, version, kind, now_us, message=message)
    nothing = dict.fromkeys(
        (
            "segments_added",
            "segments_dropped",
            "tombstones_added",
            "tombstones_dropped",
            "rows_added",
            "rows_deleted",
            "bytes_added",
        ),
        0,
    )
    named = {"version": version, "is_exact": True, **nothing}
    kinds = {**dict.fromkeys(tables, kind), **dict.fromkeys(dropped, Kind.DROP_TABLE)}
    rows = [{"table_id": one, "operation": kind.value, **named} for one, kind in kinds.items()]
    connection.execute(commit_table.insert(), rows)
