"""Views. Making, replacing and dropping one is a version of the lake; it touches no table."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, literal, select, union_all, update

from lakehouse.arguments import nearest
from lakehouse.catalog.store.models import lake_table, lake_view
from lakehouse.core.operation import Kind
from lakehouse.core.view import View
from lakehouse.errors import AlreadyExists, ViewNotFound
from lakehouse.faults import reach

_live = lake_view.c.dropped_version.is_(None)
_NAMES = union_all(
    select(lake_table.c.name, literal(False)).where(lake_table.c.dropped_version.is_(None)),
    select(lake_view.c.name, literal(True)).distinct(),
)


def read_names(connection: Connection) -> tuple[list[str], frozenset[str]]:
    """Names of live tables, sorted, and folded names of every view of a version that is kept."""
    rows = connection.execute(_NAMES).all()
    tables = sorted(name for name, is_view in rows if not is_view)
    return tables, frozenset(name.casefold() for name, is_view in rows if is_view)


def read_views(connection: Connection) -> list[View]:
    """Every form of every view in a version that is kept, by name and version."""
    rows = connection.execute(select(lake_view).order_by(lake_view.c.name, lake_view.c.created_version))
    return [_view(row) for row in rows]


def has_view(connection: Connection, view: View) -> bool:
    """Whether a view was stored in this form."""
    return connection.execute(select(lake_view.c.id).where(lake_view.c.id == view.id)).first() is not None


def find_view(connection: Connection, name: str) -> View | None:
    """A view of the head; case does not count."""
    row = connection.execute(select(lake_view).where(_live, _is_named(lake_view.c.name, name))).first()
    return None if row is None else _view(row)


def require_no_view(connection: Connection, name: str) -> None:
    """Raise `AlreadyExists` for a table's name that a view has."""
    held = find_view(connection, name)
    if held is not None:
        raise AlreadyExists("a view of that name exists; choose another, or drop the view first", view=held.name)


def create_view(connection: Connection, view: View, *, replaces: bool) -> int:
    """Store a view as a new version, which is returned; with ``replaces`` in the place of one of its name.

    Raises `AlreadyExists` for a name that a table or another view has.
    """
    from lakehouse.catalog.commit.commit import next_version, record_version  # noqa: PLC0415 - late

    version, now_us = next_version(connection)
    reach("commit.head")
    tables = select(lake_table.c.name).where(lake_table.c.dropped_version.is_(None))
    table = connection.execute(tables.where(_is_named(lake_table.c.name, view.name))).scalar()
    if table is not None:
        raise AlreadyExists("a table of that name exists; choose another", table=table)
    held = find_view(connection, view.name)
    if held is not None and not replaces:
        raise AlreadyExists(
            "a view of that name exists; choose another, or write CREATE OR REPLACE VIEW", view=held.name
        )
    if held is not None:
        connection.execute(update(lake_view).where(lake_view.c.id == held.id).values(dropped_version=version))
    connection.execute(
        lake_view.insert().values(
            id=view.id,
            name=view.name,
            query=view.text,
            columns=json.dumps(view.columns),
            comment=view.comment,
            created_version=version,
        )
    )
    said = "create" if held is None else "replace"
    record_version(connection, version, Kind.CREATE_VIEW, now_us, message=f"{said} view {view.name}")
    reach("commit.recorded")
    return version


def drop_view(connection: Connection, name: str) -> None:
    """Drop a view; older versions still have it. Raises `ViewNotFound`."""
    from lakehouse.catalog.commit.commit import next_version, record_version  # noqa: PLC0415 - late

    version, now_us = next_version(connection)
    reach("commit.head")
    held = find_view(connection, name)
    if held is None:
        views = connection.scalars(select(lake_view.c.name).where(_live))
        raise ViewNotFound("no such view; SHOW VIEWS lists those there are", view=name, **nearest(name, views))
    connection.execute(update(lake_view).where(lake_view.c.id == held.id).values(dropped_version=version))
    record_version(connection, version, Kind.DROP_VIEW, now_us, message=f"drop view {held.name}")
    reach("commit.recorded")


def _is_named(column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    return func.lower(column) == name.lower()


def _view(row: Any) -> View:
    columns = tuple((name, of) for name, of in json.loads(row.columns))
    return View(row.id, row.name, row.query, columns, row.comment, row.created_version, row.dropped_version)
