"""What became of a table's columns, as JSON for the catalog and for footers; and how older versions are read with it.

The JSON is empty for a table that was never altered and whose columns have neither comments nor defaults.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakehouse.core.chunk import Grain
from lakehouse.core.column import ColumnHistory
from lakehouse.core.spec import TableSpec, field_id_of
from lakehouse.errors import InvalidInput, InvalidSchema
from lakehouse.schema.encoding import type_from_value, type_value
from lakehouse.schema.json_values import decode_value, encode_value

_KEYS = ("schema_number", "columns", "next_field_id", "retired", "declustered", "catalog_grain")


def history_value(spec: TableSpec) -> dict[str, Any]:
    """The fields of a definition that only such tables have; `history_fields` reads them back."""
    if not spec.schema_number and not spec.columns:
        return {}
    found: dict[str, Any] = {
        "schema_number": spec.schema_number,
        "next_field_id": spec.next_field_id,
        "retired": list(spec.retired),
        "columns": {str(number): _column_value(one) for number, one in sorted(spec.columns.items())},
    }
    if spec.declustered:
        found["declustered"] = list(spec.declustered)
    if spec.catalog_grain is not None:
        found["catalog_grain"] = spec.catalog_grain.value
    return found


def history_fields(held: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `TableSpec` from a definition, which loses these fields. Raises `InvalidInput` for others."""
    found = {name: held.pop(name) for name in _KEYS if name in held}
    try:
        match found:
            case {
                "schema_number": int(number),
                "next_field_id": int(following),
                "retired": list(retired),
                "columns": dict(columns),
                **rest,
            } if number >= 0:
                grain = rest.get("catalog_grain")
                return {
                    "schema_number": number,
                    "next_field_id": following,
                    "retired": tuple(map(str, retired)),
                    "columns": {int(one): _read_column(value) for one, value in columns.items()},
                    "declustered": tuple(map(str, rest.get("declustered", ()))),
                    "catalog_grain": None if grain is None else Grain(grain),
                }
            case _ if not found:
                return {}
    except (TypeError, ValueError, KeyError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise _bad(found) from error
    raise _bad(found)


def _column_value(column: ColumnHistory) -> dict[str, Any]:
    return {
        "stored": column.stored,
        "steps": [[number, None if kind is None else type_value(kind)] for number, kind in column.steps],
        "default": encode_value(column.default),
        "default_for_new": encode_value(column.default_for_new),
        "comment": column.comment,
    }


def _read_column(value: Any) -> ColumnHistory:
    match value:
        case {
            "stored": str(stored),
            "steps": list(steps),
            "default": default,
            "default_for_new": for_new,
            "comment": str(comment),
            **rest,
        } if not rest:
            read = tuple((int(number), None if kind is None else type_from_value(kind)) for number, kind in steps)
            return ColumnHistory(stored, read, decode_value(default), decode_value(for_new), comment)
    raise _bad(value)


def _bad(value: Any) -> InvalidInput:
    return InvalidSchema(
        "a stored history of columns is malformed; restore the catalog from a copy", found=repr(value)[:200]
    )


def seen_at(current: TableSpec, then: TableSpec) -> TableSpec:
    """A definition with which to read a version at which the table had another one.

    A column that took nulls then takes them. A column that it had not is its default in every row, whatever files hold
    of it: what a compaction made of them, while the column was not there, must show in no version.
    """
    known = {field_id_of(column) for column in then.schema}
    lacking = [column for column in current.schema if field_id_of(column) not in known]
    absent = {field_id_of(one): replace(current.history(one), steps=((0, None),)) for one in lacking}
    had_nulls = {field_id_of(column) for column in then.schema if column.nullable}
    schema = pa.schema([one.with_nullable(one.nullable or field_id_of(one) in had_nulls) for one in current.schema])
    return replace(current, schema=schema, columns={**current.columns, **absent})
