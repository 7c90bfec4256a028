"""Types of columns in Spark's words."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from math import isfinite

import pyarrow as pa

from lakehouse.core.column import COMMENT, is_uuid_column
from lakehouse.core.spec import TableSpec
from lakehouse.predicate.literals import SPARK_TYPES, quoted_text

_TYPE_NAMES: Mapping[pa.DataType, str] = {
    **SPARK_TYPES,
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
}


def column_type_name(column: pa.Field, *, has_comments: bool = False) -> str:
    """Spark's name of a column's type, and UUID for text that holds nothing else; with comments of fields of structs.

    >>> column_type_name(pa.field("id", pa.string(), metadata={b"lakehouse:uuid": b"text"}))
    'UUID'
    """
    return "UUID" if is_uuid_column(column) else type_name(column.type, has_comments=has_comments)


def type_name(kind: pa.DataType, *, has_comments: bool = False) -> str:
    """Spark's name of a column's type.

    >>> type_name(pa.struct([("x", pa.list_(pa.int32()))]))
    'STRUCT<`x`: ARRAY<INT>>'
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    named = partial(type_name, has_comments=has_comments)
    if pa.types.is_map(kind):
        return f"MAP<{named(kind.key_type)}, {named(kind.item_type)}>"
    if pa.types.is_struct(kind):
        told = [_comment(part) if has_comments else "" for part in kind]
        parts = (f"`{part.name}`: {named(part.type)}{comment}" for part, comment in zip(kind, told, strict=True))
        return f"STRUCT<{', '.join(parts)}>"
    if pa.types.is_fixed_size_list(kind):
        return f"VECTOR({type_name(kind.value_type)}, {kind.list_size})"
    if pa.types.is_list(kind):
        return f"ARRAY<{named(kind.value_type)}>"
    return _TYPE_NAMES[kind]


def _comment(part: pa.Field) -> str:
    comment = (part.metadata or {}).get(COMMENT)
    return f" COMMENT {quoted_text(comment.decode())}" if comment else ""


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
