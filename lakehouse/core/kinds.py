"""What values compare with: the kinds of values, and of the columns that hold them."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

NUMBERS = {"int", "float", "decimal"}
"""Kinds that compare with each other."""
UUID_TEXT = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
"""The one spelling of UUIDs in tables, as Python's and Arrow's regular expressions have it."""


def kind_of(value: Any) -> str | None:
    """What a value compares with; None for what has no order that both engines share.

    >>> from datetime import UTC
    >>> kind_of(True), kind_of(datetime(2013, 1, 5, tzinfo=UTC)), kind_of(Decimal("NaN"))
    ('bool', 'instant', None)
    """
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case Decimal():
            return "decimal" if value.is_finite() else None
        case str():
            return "text"
        case bytes():
            return "bytes"
        case datetime():
            return "local time" if value.tzinfo is None else "instant"
        case date():
            return "date"
        case _:
            return None


def column_kind(kind: pa.DataType) -> str | None:
    """What `kind_of` says of a column's values.

    >>> column_kind(pa.int8()), column_kind(pa.timestamp("us", "UTC")), column_kind(pa.list_(pa.int8()))
    ('int', 'instant', None)
    """
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind):
        return "int"
    if pa.types.is_floating(kind):
        return "float"
    if pa.types.is_decimal(kind):
        return "decimal"
    if pa.types.is_string(kind):
        return "text"
    if pa.types.is_binary(kind):
        return "bytes"
    if pa.types.is_timestamp(kind):
        return "local time" if kind.tz is None else "instant"
    return "date" if pa.types.is_date(kind) else None


def single(value: float) -> float:
    """The value in single precision."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def is_uuid(kind: pa.DataType) -> bool:
    """Whether a type is Arrow's of UUIDs, which tables hold as text."""
    return isinstance(kind, pa.UuidType)


def is_uuid_text(value: str) -> bool:
    """Whether a text is a UUID in the one spelling that tables hold.

    >>> is_uuid_text("0f8fad5b-d9cb-469f-a165-70867728950e"), is_uuid_text("0F8FAD5B-D9CB-469F-A165-70867728950E")
    (True, False)
    """
    return re.fullmatch(UUID_TEXT, value) is not None
