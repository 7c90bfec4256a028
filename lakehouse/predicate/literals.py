"""Literals: from how they were written to a value of a column's type, and to the text of both engines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse.errors import InvalidInput, InvalidPredicate
from lakehouse.predicate.moments import FarDate, FarTime, is_aware, moment, read_day, read_moment, us_of
from lakehouse.predicate.term import Term

_PLAIN = re.compile(r"[^'\\$\x00-\x1f\x7f-\x9f]*")
_DAY = re.compile(r"[+-]?[0-9]{4,5}-[0-9]{2}-[0-9]{2}|[0-9]{8}|[0-9]{4}-?W[0-9]{2}(?:-?[0-9])?")
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
SPARK_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
}
"""Types that both engines know by one name, but for INT, which DuckDB knows too."""


def mismatch(value: Any, kind: pa.DataType, remedy: str) -> InvalidInput:
    """The error for a literal that cannot be compared with a column of some type."""
    return InvalidPredicate(f"the filter compares different types; {remedy}", value=repr(value)[:100], type=kind)


def text_term(value: str) -> Term:
    """A string literal. What one of the parsers could read differently is written in hexadecimal."""
    try:
        encoded = value.encode("utf-8", "strict").hex()
    except UnicodeEncodeError as error:
        raise InvalidPredicate(
            "the filter has text that is not Unicode: a half of a pair", value=repr(value)[:100]
        ) from error
    plain = _PLAIN.fullmatch(value) is not None
    spark = f"'{value}'" if plain else f"CAST(X'{encoded}' AS STRING)"
    quoted = value.replace("'", "''")
    return Term(pa.string(), spark, f"decode(unhex('{encoded}'))" if "\x00" in value else f"'{quoted}'")


def literal_term(value: Any, kind: pa.DataType) -> Term:
    """A value of exactly a type, as both engines write it whatever the session's settings."""
    match value:
        case str():
            return text_term(value)
        case bytes():
            return Term(kind, f"X'{value.hex()}'", f"unhex('{value.hex()}')")
        case bool():
            return Term(kind, str(value).upper(), str(value).upper())
        case datetime() | FarTime() if is_aware(value):
            return Term(kind, f"timestamp_micros({us_of(value)})", f"make_timestamptz({us_of(value)})")
        case datetime():
            written = value.isoformat(" ", "microseconds")
            return Term(kind, f"TIMESTAMP_NTZ '{written}'", f"make_timestamp({us_of(value)})")
        case FarTime():
            spark = f"timestampadd(MICROSECOND, {value.us}L, TIMESTAMP_NTZ '1970-01-01 00:00:00')"
            return Term(kind, spark, f"make_timestamp({value.us})")
        case FarDate():
            epoch = "DATE '1970-01-01'"
            return Term(kind, f"date_add({epoch}, {value.days})", f"({epoch} + {value.days})")
        case date():
            return _both(kind, f"DATE '{value.isoformat()}'")
        case Decimal():
            digits, scale = decimal_size(value)
            return _both(pa.decimal128(digits, scale), f"CAST('{value:f}' AS DECIMAL({digits}, {scale}))")
        case float() if pa.types.is_float32(kind):
            return _both(kind, f"CAST('{value!r}' AS FLOAT)")
        case float():
            return _both(pa.float64(), f"CAST('{value!r}' AS DOUBLE)")
    return _both(kind, f"CAST({value} AS {SPARK_TYPES[kind]})")


def is_one_of(column: str, values: Iterable[int | str]) -> str:
    """A filter as people write it: a column has one of some integers or texts, whatever characters these hold.

    >>> is_one_of("name", ["a", "b"]), is_one_of("n", [7]), is_one_of("n", [])
    ("`name` IN ('a', 'b')", '`n` IN (7)', 'FALSE')
    """
    listed = ", ".join(str(one) if isinstance(one, int) else quoted_text(one) for one in values)
    return f"`{column}` IN ({listed})" if listed else "FALSE"


def quoted_text(value: str) -> str:
    r"""A text in quotes, as Spark's SQL has it.

    >>> print(quoted_text("it's"))
    'it\'s'
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _both(kind: pa.DataType, written: str) -> Term:
    return Term(kind, written, written)


def decimal_size(value: Decimal) -> tuple[int, int]:
    """Digits and scale that hold a decimal exactly.

    >>> decimal_size(Decimal("0.05")), decimal_size(Decimal("1200"))
    ((2, 2), (4, 0))
    """
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    return max(1, scale, len(digits) + max(0, exponent)), scale


def as_type(value: Any, kind: pa.DataType) -> Any:
    """A written value as the Python value that a column of this type is compared with.

    Numbers for an integer column stay exact (`Decimal` or int): the comparison decides what they mean.
    Raises `InvalidInput` for a value of another family.
    """
    if pa.types.is_boolean(kind):
        return _of(value, bool, kind, "write TRUE or FALSE")
    if pa.types.is_string(kind):
        return _of(value, str, kind, "put quotes around the value")
    if pa.types.is_binary(kind):
        return _of(value, bytes, kind, "write bytes as X'00FF'")
    if pa.types.is_date(kind):
        return _date(value, kind)
    if pa.types.is_timestamp(kind):
        return _timestamp(value, kind)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise mismatch(value, kind, "write a number without quotes")
    return _number(value, kind)


def _of(value: Any, wanted: type, kind: pa.DataType, remedy: str) -> Any:
    if not isinstance(value, wanted):
        raise mismatch(value, kind, remedy)
    return value


def _number(value: int | float | Decimal, kind: pa.DataType) -> int | float | Decimal:
    if pa.types.is_floating(kind):
        try:
            return float(value)
        except OverflowError as error:
            raise mismatch(value, kind, "write a number that a double holds") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise mismatch(value, kind, "only float and double columns hold NaN and infinities")
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if pa.types.is_integer(kind):
        return int(exact) if exact == exact.to_integral_value() else exact
    digits, scale = decimal_size(exact)
    if max(digits - scale, kind.precision - kind.scale) + max(scale, kind.scale) > 38:
        raise mismatch(value, kind, "write a number with fewer digits")
    return exact


def _date(value: Any, kind: pa.DataType) -> date | FarDate:
    if isinstance(value, FarDate) or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    text = _of(value, str, kind, "write a date as '2013-01-05'").strip()
    try:
        if not _DAY.fullmatch(text):
            raise ValueError(text)
        return read_day(text)
    except ValueError as error:
        raise mismatch(value, kind, "write a date as '2013-01-05'") from error


def _timestamp(value: Any, kind: pa.TimestampType) -> datetime | FarTime:
    """A time for a column: UTC where none is said. A column without time zone takes no offset."""
    remedy = "write a time as '2013-01-05 07:00:00'"
    if not isinstance(value, str | date | FarDate | FarTime):
        raise mismatch(value, kind, remedy)
    try:
        found = read_moment(value) if isinstance(value, str) else value
    except ValueError as error:
        raise mismatch(value, kind, remedy) from error
    if kind.tz is None and is_aware(found):
        raise mismatch(value, kind, "this column has no time zone: write the time without an offset")
    return moment(us_of(found), kind.tz is not None)
