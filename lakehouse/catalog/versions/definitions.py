"""Definitions that a table had: which one a version has, and which one files of a schema number were written with."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from sqlalchemy import Connection, select, update

from lakehouse.catalog.store.models import lake_table, table_schema, upkeep
from lakehouse.catalog.store.rows import spec_definition, spec_from_row
from lakehouse.core.spec import TableId, TableSpec


def read_definition(connection: Connection, table: TableId) -> tuple[TableSpec, int] | None:
    """A live table's current definition, and the version that created it."""
    live = select(lake_table).where(lake_table.c.id == table, lake_table.c.dropped_version.is_(None))
    row = connection.execute(live).first()
    return None if row is None else (spec_from_row(row), row.created_version)


def write_definition(connection: Connection, spec: TableSpec, version: int) -> None:
    """Give a table a new definition from a version on; the one before stays readable."""
    before, created = read_definition(connection, spec.id) or (spec, version)
    if not is_recorded(connection, before):
        record_definition(connection, before, created)
    record_definition(connection, spec, version)
    of_table = update(lake_table).where(lake_table.c.id == spec.id)
    connection.execute(of_table.values(definition=spec_definition(spec), schema_number=spec.schema_number))


def write_properties(connection: Connection, spec: TableSpec, now_us: int) -> None:
    """Give a table the properties of a definition whose columns it has.

    Another policy may call for other maintenance, so a plan of it becomes due.
    """
    connection.execute(update(lake_table).where(lake_table.c.id == spec.id).values(definition=spec_definition(spec)))
    connection.execute(update(upkeep).where(upkeep.c.table_id == spec.id).values(due_us=now_us, not_before_us=now_us))


def is_recorded(connection: Connection, spec: TableSpec) -> bool:
    """Whether a table's definition is among those that it had; only what was never altered is not."""
    of = table_schema.c.table_id == spec.id, table_schema.c.number == spec.schema_number
    return connection.execute(select(table_schema.c.number).where(*of)).first() is not None


def record_definition(connection: Connection, spec: TableSpec, version: int) -> None:
    """Record that a table has a definition from a version on."""
    row = {"table_id": spec.id, "number": spec.schema_number, "version": version, "definition": spec_definition(spec)}
    connection.execute(table_schema.insert().values(row))


def read_definitions(connection: Connection, current: TableSpec) -> list[tuple[int, TableSpec]]:
    """Every definition of an altered table with the version from which on it holds, oldest first.

    Their names, and everything else that an alteration leaves alone, are those of now.
    """
    rows = select(table_schema).where(table_schema.c.table_id == current.id).order_by(table_schema.c.number)
    found = []
    for row in connection.execute(rows):
        held = SimpleNamespace(id=row.table_id, name=current.name, folder=current.folder, definition=row.definition)
        found.append((int(row.version), replace(spec_from_row(held), properties=current.properties)))
    return found
