"""What remembers a table's applied changes (`lakehouse.core.beside`), opened with the keys that the table has now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lakehouse.core.beside import beside
from lakehouse.core.spec import TableSpec, field_id_of
from lakehouse.core.widening import is_wider
from lakehouse.errors import TableNotFound
from lakehouse.schema.changes import RenameColumn, SchemaChange, WidenColumn

KEYS = "keys_of_changes"
"""A property: field ids of the table's keys, in the order of the columns here, which come first."""


def keys_property(spec: TableSpec, keys: list[str]) -> dict[str, str]:
    """The property of what will remember changes by some keys."""
    return {KEYS: ",".join(str(field_id_of(spec.schema.field(one))) for one in keys)}


def open_remembered(open_table: Callable[[str], Any], spec: TableSpec) -> Any | None:
    """What remembers a table's changes, its keys renamed and widened as the table's were since; None without any.

    Cost: a look-up; a commit where a key was changed.
    """
    try:
        memory = open_table(beside(spec.folder))
    except TableNotFound:
        return None
    today = {field_id_of(column): column for column in spec.schema}
    numbers = [int(one) for one in memory.spec.properties.get(KEYS, "").split(",") if one]
    changes: list[SchemaChange] = []
    for held, number in zip(memory.spec.schema, numbers, strict=False):
        column = today.get(number)
        if column is None:
            continue
        if is_wider(column.type, held.type):
            changes.append(WidenColumn(held.name, column.type))
        if column.name != held.name:
            changes.append(RenameColumn(held.name, column.name))
    if changes:
        memory.alter(_apart(changes, memory.spec.schema))
    return memory


def _apart(changes: list[SchemaChange], schema: pa.Schema) -> list[SchemaChange]:
    """The changes, so that two keys may have exchanged their names."""
    renames = [one for one in changes if isinstance(one, RenameColumn)]
    others = [one for one in changes if not isinstance(one, RenameColumn)]
    if not {one.new for one in renames} & set(schema.names):
        return [*others, *renames]
    away = [RenameColumn(one.name, f"lake_{place}") for place, one in enumerate(renames)]
    return [*others, *away, *(RenameColumn(one.new, two.new) for one, two in zip(away, renames, strict=True))]
