"""A table's definition as stored in footers, so that a table can be recovered from its files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakehouse.core.spec import TableSpec
from lakehouse.errors import InvalidSchema
from lakehouse.remembered import Remembered
from lakehouse.schema.define import define_table
from lakehouse.schema.encoding import schema_from_json, schema_to_json
from lakehouse.schema.history import history_fields, history_value
from lakehouse.schema.types import TIME


def definition_to_json(spec: TableSpec) -> str:
    """A table's definition without its schema, as JSON text, with its current name.

    >>> spec = define_table("flights", "ts TIMESTAMP, client BIGINT", time="ts", cluster_by=["client"])
    >>> definition_to_json(spec)[:58]
    '{"name": "flights", "time": "ts", "grain": "day", "primary'
    """
    return json.dumps(
        {
            "name": spec.name,
            "time": spec.time,
            "grain": spec.grain.value,
            "primary_key": list(spec.primary_key),
            "cluster_by": dict(spec.cluster_by),
            "write_order": spec.write_order,
            "properties": dict(spec.properties),
            **history_value(spec),
        },
        ensure_ascii=False,
    )


_of_footers: Remembered[int, tuple[TableSpec, dict[str, str]]] = Remembered(64)
"""By the place in memory of a definition, which is kept beside its texts, so that no other can come to lie there."""


def footer_texts(spec: TableSpec) -> dict[str, str]:
    """What the footer of each file says of its table; made once for all files that are written by one definition.

    >>> spec = define_table("flights", "ts TIMESTAMP, client BIGINT", time="ts")
    >>> sorted(footer_texts(spec))
    ['lakehouse.definition', 'lakehouse.schema', 'lakehouse.table']
    """
    found = _of_footers.get(id(spec))
    if found is None:
        found = (
            spec,
            {
                "lakehouse.table": spec.folder,
                "lakehouse.schema": schema_to_json(spec.schema),
                "lakehouse.definition": definition_to_json(spec),
            },
        )
        _of_footers.put(id(spec), found)
    return found[1]


def definition_from_json(definition: str | None, schema: str, *, folder: str) -> TableSpec:
    """A table's definition from a footer.

    An empty time is that of a timeless table. Without a definition (older files) the table is called ``recovered_``
    and the first digits of its folder, its time is its first column of UTC times that takes no nulls, and its grain a
    day. Raises `InvalidInput` for anything that is not a definition.
    """
    columns = schema_from_json(schema)
    held: dict[str, Any] = _read(definition) if definition is not None else {}
    history = history_fields(held)
    name = held.pop("name", f"recovered_{folder[:8]}")
    time = held.pop("time", None)
    if time == "":
        held.pop("grain", None)
    elif not time:
        time = _time_column(columns)
    try:
        spec = define_table(name, columns, time=time or None, folder=folder, **held)
    except TypeError as error:
        raise InvalidSchema("a footer's definition has fields that are not known", cause=error) from error
    return replace(spec, schema=columns, **history)


def _read(definition: str) -> dict[str, Any]:
    try:
        held = json.loads(definition)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("a footer's definition is malformed", found=definition[:200]) from error
    if not isinstance(held, dict):
        raise InvalidSchema("a footer's definition is malformed", found=definition[:200])
    return held


def _time_column(columns: pa.Schema) -> str:
    for column in columns:
        if column.type == TIME and not column.nullable:
            return str(column.name)
    raise InvalidSchema("no column of a footer's schema can be the time", columns=",".join(columns.names))
