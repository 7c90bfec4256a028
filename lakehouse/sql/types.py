"""Types of columns in Spark's words."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lakehouse.core.column import is_uuid_column
from lakehouse.predicate.literals import SPARK_TYPES

_TYPE_NAMES: Mapping[pa.DataType, str] = {
    **SPARK_TYPES,
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
}


def column_type_name(column: pa.Field) -> str:
    """Spark's name of a column's type, and UUID for text that holds nothing else.

    >>> column_type_name(pa.field("id", pa.string(), metadata={b"lakehouse:uuid": b"text"}))
    'UUID'
    """
    return "UUID" if is_uuid_column(column) else type_name(column.type)


def type_name(kind: pa.DataType) -> str:
    """Spark's name of a column's type.

    >>> type_name(pa.struct([("x", pa.list_(pa.int32()))]))
    'STRUCT<`x`: ARRAY<INT>>'
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_map(kind):
        return f"MAP<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'`{part.name}`: {type_name(part.type)}' for part in kind)}>"
    if pa.types.is_fixed_size_list(kind):
        return f"VECTOR({type_name(kind.value_type)}, {kind.list_size})"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    return _TYPE_NAMES[kind]
