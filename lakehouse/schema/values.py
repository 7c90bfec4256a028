"""Single values as values of a table's columns: keys of a replace, literals of a filter."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

import pyarrow as pa

from lakehouse.core.column import is_uuid_column
from lakehouse.core.interval import to_utc
from lakehouse.core.kinds import is_uuid_text
from lakehouse.errors import InvalidInput, InvalidRows


def typed_value(value: Any, field: pa.Field) -> Any:
    """A value as the Python value of a column; None stays None.

    Times and dates may be ISO 8601 text, decimals text or integers, a UUID is its text; nothing else changes its kind.
    Raises `InvalidInput`, naming the column, if it cannot hold exactly that value.

    >>> typed_value("2013-01-05", pa.field("day", pa.date32()))
    datetime.date(2013, 1, 5)
    >>> typed_value(0.1, pa.field("single", pa.float32()))
    Traceback (most recent call last):
    lakehouse.errors.InvalidRows: the column cannot hold this value (column=single type=float value=0.1)
    """
    if value is None:
        return None
    try:
        held = _uuid(value) if is_uuid_column(field) else _held(value, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, InvalidOperation) as error:
        raise _no_value(value, field) from error
    if held is None:
        raise _no_value(value, field)
    return held


def _held(value: Any, kind: pa.DataType) -> Any:
    """The value in the type; None or an error if it cannot hold it."""
    if pa.types.is_timestamp(kind):
        return _timestamp(value, kind)
    if pa.types.is_date(kind):
        return _date(value)
    if pa.types.is_decimal(kind):
        accepted = isinstance(value, Decimal | int | str) and not isinstance(value, bool)
        return pa.scalar(Decimal(value)).cast(kind).as_py() if accepted else None
    scalar = pa.scalar(value)
    same = (
        pa.types.is_boolean(scalar.type) == pa.types.is_boolean(kind)
        and pa.types.is_string(scalar.type) == pa.types.is_string(kind)
        and pa.types.is_binary(scalar.type) == pa.types.is_binary(kind)
        and not pa.types.is_temporal(scalar.type)
    )
    held = scalar.cast(kind).as_py() if same else None
    if pa.types.is_float32(kind) and held != value and value == value:
        return None  # between two numbers of single precision
    return held


def _timestamp(value: Any, kind: pa.TimestampType) -> datetime | None:
    if not isinstance(value, str | date):
        return None
    aware = isinstance(value, datetime) and value.tzinfo is not None
    if kind.tz is None and aware:
        return None
    instant = to_utc(value)
    return instant if kind.tz is not None else instant.replace(tzinfo=None)


def _date(value: Any) -> date | None:
    if isinstance(value, str):
        return date.fromisoformat(value)
    if isinstance(value, datetime):
        return value.date() if value.tzinfo is None and value == datetime.combine(value, datetime.min.time()) else None
    return value if isinstance(value, date) else None


def _uuid(value: Any) -> str | None:
    """A UUID as its text, or that text."""
    if isinstance(value, UUID):
        return str(value)
    return value if isinstance(value, str) and is_uuid_text(value) else None


def _no_value(value: Any, field: pa.Field) -> InvalidInput:
    return InvalidRows("the column cannot hold this value", column=field.name, type=field.type, value=repr(value)[:200])
