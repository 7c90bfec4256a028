"""The rows of system tables: what the catalog holds of a table or of the lake, in memory."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakehouse.core.view import View
from lakehouse.session.session import Session
from lakehouse.sql.system import CATALOG, SCHEMA, WITH_VERSIONS, schema_of
from lakehouse.sql.types import column_type_name, default_text
from lakehouse.table.table import Table
from lakehouse.table.tables import open_table, table_names


def rows_of(session: Session, system: str, table: Table | None, as_of: Any) -> pa.Table:
    """The rows of a system table: of live segments and such at ``as_of``, of all that the catalog keeps of others.

    Cost: a step a row. Raises `VersionNotFound`.
    """
    schema = schema_of(system)
    name = system.rpartition(".")[2]
    if table is None and name == "versions":
        return _fitted(_versions(session), schema)
    if table is None:
        return pa.Table.from_pylist(_of_lake(session, name), schema=schema)
    match system:
        case "history":
            found = table.log(definitions=True).to_arrow()
        case "key_frames":
            found = table.key_frames().to_arrow()
        case name:
            assert name in WITH_VERSIONS
            found = getattr(table, name)(as_of).to_arrow()
    return _fitted(found, schema)


def _fitted(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the columns of a system table: those that they lack are null."""
    empty = pa.nulls(found.num_rows)
    named = {name: found.column(name) if name in found.column_names else empty for name in schema.names}
    return pa.table(named).cast(schema)


def _versions(session: Session) -> pa.Table:
    """A row for each version that is kept, with its tags."""
    found = session.catalog.commits().to_arrow()
    tags: dict[int, list[str]] = {}
    for tag, version in sorted(session.catalog.tags().items()):
        tags.setdefault(version, []).append(tag)
    listed = [tags.get(version, []) for version in found.column("version").to_pylist()]
    return found.append_column("tags", pa.array(listed, pa.list_(pa.string())))


def _of_lake(session: Session, name: str) -> list[dict[str, Any]]:
    if name == "schemata":
        return [{"catalog_name": CATALOG, "schema_name": SCHEMA}]
    if name == "views":
        return [
            {**_named(one.name), "view_definition": one.text, "comment": one.comment, "version": one.created}
            for one in _views(session)
        ]
    tables = [open_table(session, one) for one in table_names(session)]
    rows = []
    for table in tables:
        named = _named(table.name)
        if name == "tables":
            rows.append({**named, "table_type": "BASE TABLE"})
            continue
        for place, field in enumerate(table.schema, 1):
            column = {"column_name": field.name, "ordinal_position": place, "data_type": column_type_name(field)}
            comment = table.spec.history(field).comment or None
            notes = {"column_default": default_text(table.spec, field), "comment": comment}
            rows.append({**named, **column, **notes, "is_nullable": "YES" if field.nullable else "NO"})
    if name == "tables":
        rows += [{**_named(one.name), "table_type": "VIEW"} for one in _views(session)]
    return rows


def _named(name: str) -> dict[str, Any]:
    return {"table_catalog": CATALOG, "table_schema": SCHEMA, "table_name": name}


def _views(session: Session) -> list[View]:
    return [one for one in session.catalog.views() if one.is_there(None)]
