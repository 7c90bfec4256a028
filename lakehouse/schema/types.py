"""The types of a table's columns, and what other types become."""

from __future__ import annotations

import pyarrow as pa

from lakehouse.core.column import COMMENT, UUID
from lakehouse.core.kinds import is_uuid
from lakehouse.core.spec import FIELD_ID
from lakehouse.errors import InvalidSchema
from lakehouse.schema.refused import refused

TIME = pa.timestamp("us", tz="UTC")
"""Type of every table's time column."""
MOST_FLOATS = 65_536
"""The longest list of floats of fixed size: an embedding has some thousand."""
_KEPT = frozenset(
    {
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
    }
)
_CHANGED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def normal_type(kind: pa.DataType, column: str) -> pa.DataType:
    """The type in which a table stores values of ``kind``: one that Spark, DuckDB and Parquet share.

    Arrow's UUIDs stay what they are, for `table_column` to make text of; those inside nested types become text here.

    Raises `InvalidInput`, naming the column, for a type without one.

    >>> str(normal_type(pa.dictionary(pa.int8(), pa.large_string()), "carrier"))
    'string'
    """
    if kind in _KEPT:
        return kind
    if kind in _CHANGED:
        return _CHANGED[kind]
    if is_uuid(kind):
        return pa.uuid()
    if pa.types.is_dictionary(kind):
        return normal_type(kind.value_type, column)
    if pa.types.is_timestamp(kind):
        return TIME if kind.tz is not None else pa.timestamp("us")
    if pa.types.is_decimal(kind):
        if kind.precision > 38 or not 0 <= kind.scale <= kind.precision:
            raise InvalidSchema("a decimal holds at most 38 digits, its scale within them", column=column, type=kind)
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_nested(kind):
        return _nested(kind, column)
    raise refused(kind, column)


def table_column(name: str, kind: pa.DataType, nullable: bool, number: int, *, is_uuid_text: bool = False) -> pa.Field:
    """A table's column of a type that `normal_type` gave: UUIDs are text that says what it holds.

    >>> table_column("id", pa.uuid(), True, 7)
    pyarrow.Field<id: string>
    """
    metadata = {FIELD_ID: str(number).encode()}
    if is_uuid(kind) or (is_uuid_text and kind == pa.string()):
        kind, metadata[UUID] = pa.string(), b"text"
    return pa.field(name, kind, nullable, metadata)


def _part(kind: pa.DataType, column: str) -> pa.DataType:
    found = normal_type(kind, column)
    return pa.string() if is_uuid(found) else found


def _field(part: pa.Field, path: str) -> pa.Field:
    """A field of a struct, which keeps its comment."""
    comment = (part.metadata or {}).get(COMMENT)
    return pa.field(part.name, _part(part.type, path), metadata={COMMENT: comment} if comment else None)


def _nested(kind: pa.DataType, column: str) -> pa.DataType:
    """Nested types with nullable parts and Parquet's names for them, as both engines give them back."""
    if pa.types.is_map(kind):
        return pa.map_(_part(kind.key_type, column), _part(kind.item_type, column))
    if pa.types.is_struct(kind):
        parts = [kind.field(index) for index in range(kind.num_fields)]
        if not parts or len({part.name.casefold() for part in parts}) < len(parts):
            raise InvalidSchema("a struct needs fields with distinct names", column=column, type=kind)
        if not all(part.name.isprintable() for part in parts):
            raise InvalidSchema("a struct's field has a control character in its name", column=column, type=repr(kind))
        return pa.struct([_field(part, f"{column}.{part.name}") for part in parts])
    if pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type):
        if not 1 <= kind.list_size <= MOST_FLOATS:
            raise InvalidSchema(f"a list of fixed size holds 1 to {MOST_FLOATS} floats", column=column, type=kind)
        return pa.list_(normal_type(kind.value_type, column), kind.list_size)
    if pa.types.is_union(kind) or pa.types.is_run_end_encoded(kind) or not hasattr(kind, "value_type"):
        raise refused(kind, column)
    return pa.list_(_part(kind.value_type, column))
