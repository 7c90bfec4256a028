"""Types of columns in Spark's words."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import isfinite

import pyarrow as pa

from lakehouse.core.column import is_uuid_column
from lakehouse.core.spec import TableSpec
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


def default_text(spec: TableSpec, column: pa.Field) -> str | None:
    """What rows that are written without a column have in it, as a statement says it; None for a null.

    A time is its text: ``ALTER COLUMN a SET DEFAULT`` takes it again.
    """
    value = spec.history(column).default_for_new
    match value:
        case None:
            return None
        case bool():
            return str(value).upper()
        case int() | Decimal():
            return str(value)
        case float() if isfinite(value):
            return repr(value)
        case bytes():
            return f"X'{value.hex().upper()}'"
    return quoted_text(str(value))


def quoted_text(value: str) -> str:
    r"""A text in quotes.

    >>> print(quoted_text("it's"))
    'it\'s'
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
