"""Schemas as JSON for the catalog: readable, complete, and checked when read back."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from lakehouse.core.column import COMMENT, DEFAULT, STORED, is_uuid_column
from lakehouse.core.kinds import is_uuid
from lakehouse.core.spec import FIELD_ID
from lakehouse.errors import InvalidInput, InvalidSchema
from lakehouse.schema.types import MOST_FLOATS, TIME, table_column

_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp[us, UTC]": TIME,
    "timestamp[us]": pa.timestamp("us"),
}
_KEPT = frozenset({STORED, DEFAULT, COMMENT})
"""Metadata of a struct's field that is kept."""
_UUID = "uuid"
"""What the type of a column of UUIDs is called, which is text inside the library."""
_NAMES = {kind: name for name, kind in _TYPES.items()}
_DECIMAL = re.compile(r"decimal\((\d{1,2}), (\d{1,2})\)")


def schema_to_json(schema: pa.Schema) -> str:
    """Write a table's schema as JSON text; `schema_from_json` reads it back equal, field ids included."""
    return json.dumps({"fields": [_field_value(field) for field in schema]}, ensure_ascii=False)


def schema_from_json(text: str) -> pa.Schema:
    """Read a schema that `schema_to_json` wrote. Raises `InvalidInput` for anything else.

    >>> schema = pa.schema([pa.field("ts", TIME, False, {FIELD_ID: b"1"})])
    >>> schema_from_json(schema_to_json(schema)).equals(schema, check_metadata=True)
    True
    """
    try:
        match json.loads(text):
            case {"fields": list(fields), **rest} if fields and not rest:
                return pa.schema([_read_field(field) for field in fields])
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise _bad(text) from error
    raise _bad(text)


def _bad(value: Any) -> InvalidInput:
    return InvalidSchema("stored schema is malformed; restore the catalog from a copy", found=repr(value)[:200])


def _field_value(field: pa.Field) -> dict[str, Any]:
    number = int((field.metadata or {})[FIELD_ID])
    kind = type_value(pa.uuid() if is_uuid_column(field) else field.type)
    return {"id": number, "name": field.name, "type": kind, "nullable": field.nullable}


def _read_field(value: Any) -> pa.Field:
    match value:
        case {"id": int(number), "name": str(name), "type": kind, "nullable": bool(nullable), **rest} if not rest:
            if isinstance(number, bool) or number < 1:
                raise _bad(value)
            return table_column(name, type_from_value(kind), nullable, number)
    raise _bad(value)


def type_value(kind: pa.DataType) -> Any:
    """A type as a JSON value; `type_from_value` reads it back."""
    if is_uuid(kind):
        return _UUID
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_map(kind):
        return {"map": [type_value(kind.key_type), type_value(kind.item_type)]}
    if pa.types.is_struct(kind):
        return {"struct": [[part.name, type_value(part.type), *_part_metadata(part)] for part in kind]}
    if pa.types.is_fixed_size_list(kind):
        return {"list": type_value(kind.value_type), "size": kind.list_size}
    return {"list": type_value(kind.value_type)}


def type_from_value(value: Any) -> pa.DataType:
    """The type that `type_value` wrote. Raises `InvalidInput` for anything else."""
    match value:
        case str() if value == _UUID:
            return pa.uuid()
        case str() if value in _TYPES:
            return _TYPES[value]
        case str() if (found := _DECIMAL.fullmatch(value)) and 1 <= int(found[1]) <= 38:
            return pa.decimal128(int(found[1]), int(found[2]))
        case {"list": part, **rest} if not rest:
            return pa.list_(type_from_value(part))
        case {"list": ("float32" | "float64") as part, "size": int(size), **rest} if not rest and _is_size(size):
            return pa.list_(_TYPES[part], size)
        case {"map": [key, item], **rest} if not rest:
            return pa.map_(type_from_value(key), type_from_value(item))
        case {"struct": list(parts), **rest} if parts and not rest:
            return pa.struct([_read_part(part) for part in parts])
    raise _bad(value)


def _is_size(size: int) -> bool:
    return not isinstance(size, bool) and 1 <= size <= MOST_FLOATS


def _part_metadata(part: pa.Field) -> list[dict[str, str]]:
    """What is kept of a struct's field beside its name and type."""
    held = {key.decode(): value.decode() for key, value in (part.metadata or {}).items() if key in _KEPT}
    return [held] if held else []


def _read_part(value: Any) -> pa.Field:
    match value:
        case [str(name), kind]:
            return pa.field(name, type_from_value(kind))
        case [str(name), kind, dict(held)] if held and {key.encode() for key in held} <= _KEPT:
            return pa.field(name, type_from_value(kind), metadata={key: str(value) for key, value in held.items()})
    raise _bad(value)
