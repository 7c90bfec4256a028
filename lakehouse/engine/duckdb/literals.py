"""Names, values and types as DuckDB's SQL writes them. The only place where a value becomes text."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse.core.interval import to_us
from lakehouse.errors import InternalError

_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
}


def name(text: str) -> str:
    """A column's name, quoted.

    >>> name('delay in %'), name('a"b')
    ('"delay in %"', '"a""b"')
    """
    return '"' + text.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string literal. DuckDB knows no escapes in it but the doubled quote.

    >>> text("it's")
    "'it''s'"
    """
    if "\x00" in value:
        return f"decode(unhex('{value.encode().hex()}'))"
    return "'" + value.replace("'", "''") + "'"


def file(path: str) -> str:
    """A string literal of one file's path, its wildcards made plain.

    >>> file("/data/[2013]*.parquet")
    "'/data/[[]2013][*].parquet'"
    """
    return text("".join(f"[{letter}]" if letter in "*?[" else letter for letter in path))


def instant(value: datetime) -> str:
    """A literal of an aware time, the same in every session's time zone."""
    return f"make_timestamptz({to_us(value)})"


def typed(value: Any, kind: pa.DataType) -> str:
    """A literal of a column's type.

    >>> typed(5, pa.int64()), typed(float("nan"), pa.float64()), typed(b"it's", pa.binary())
    ("CAST('5' AS BIGINT)", "CAST('nan' AS DOUBLE)", "unhex('69742773')")
    """
    match value:
        case None:
            return f"CAST(NULL AS {type_name(kind)})"
        case str():
            return text(value)
        case bytes():
            return f"unhex('{value.hex()}')"
        case datetime() if value.tzinfo is not None:
            return instant(value)
        case bool() | int() | float() | Decimal() | date():
            return f"CAST('{value}' AS {type_name(kind)})"
    raise InternalError("a value of this kind has no literal", kind=type(value).__name__)


def listed(values: Iterable[str]) -> str:
    """Literals or expressions with commas between them."""
    return ", ".join(values)


def type_name(kind: pa.DataType) -> str:
    """DuckDB's name of a column's type.

    >>> type_name(pa.struct([("x", pa.list_(pa.int32()))]))
    'STRUCT("x" INTEGER[])'
    """
    if kind in _TYPES:
        return _TYPES[kind]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_map(kind):
        return f"MAP({type_name(kind.key_type)}, {type_name(kind.item_type)})"
    if pa.types.is_struct(kind):
        return f"STRUCT({listed(f'{name(part.name)} {type_name(part.type)}' for part in kind)})"
    if pa.types.is_list(kind):
        return f"{type_name(kind.value_type)}[]"
    raise InternalError("a type that no table has", type=kind)
