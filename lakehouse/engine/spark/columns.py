"""A Spark frame's columns brought to a table's, with the same rules as `lakehouse.engine.conform`.

Nothing here depends on the session's time zone or on ANSI mode.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.core.column import Held, holds_plainly, listed_type, stored_name
from lakehouse.engine import require_held
from lakehouse.engine.conform import Fills, cannot_store, stores
from lakehouse.engine.fields import fitted_type, has_other_fields
from lakehouse.engine.spark.types import column_type
from lakehouse.predicate.literals import literal_term
from lakehouse.schema import default_of, from_spark_type

REFUSED = "lakehouse refuses a value"
"""Begins the message of an error that a row raises inside Spark."""
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_DAY_US = 86_400_000_000


def quoted(name: str) -> str:
    """A column's name as SQL has it."""
    return "`" + name.replace("`", "``") + "`"


def value(expression: str, field: pa.Field) -> Column:
    """An expression as a column of a table; a bare NULL gets its type."""
    found = F.lit(None).cast(column_type(field.type)) if expression == "NULL" else F.expr(expression)
    return found.alias(field.name)


def held_column(held: Held) -> Column:
    """A column of the table, made of what files have that hold it in another way; to be given its name."""
    if held.type is None:
        return _literal(held.default, held.wanted)
    require_held(held.name, held.type, held.wanted)
    return _made(F.col(quoted(held.stored)), held.type, held.wanted)


def _made(there: Column, held: pa.DataType, wanted: pa.DataType) -> Column:
    """A column of a type in files as one of a table's type."""
    if holds_plainly(held, wanted):
        return there
    if pa.types.is_struct(wanted):
        kinds = {one.name: one.type for one in held}
        fields = [_field(there, kinds, one).alias(one.name) for one in wanted]
        return F.when(there.isNull(), F.lit(None)).otherwise(F.struct(*fields))
    if pa.types.is_map(wanted):
        values = F.transform_values(there, lambda _, value: _made(value, held.item_type, wanted.item_type))
        return F.transform_keys(values, lambda key, _: _made(key, held.key_type, wanted.key_type))
    if pa.types.is_list(wanted):
        return F.transform(there, lambda part: _made(part, held.value_type, wanted.value_type))
    if pa.types.is_timestamp(wanted):
        return _instant(there, held, wanted)
    return there.cast(column_type(wanted))


def _field(struct: Column, kinds: Mapping[str, pa.DataType], wanted: pa.Field) -> Column:
    stored = stored_name(wanted)
    if stored in kinds:
        return _made(struct.getField(stored), kinds[stored], wanted.type)
    # Where there is no struct there is no value, or Spark takes the literal for one that is never null.
    return F.when(struct.isNotNull(), _literal(default_of(wanted), wanted.type))


def conformed(frame: DataFrame, schema: pa.Schema, fills: Fills) -> DataFrame:
    """The frame with exactly the schema's columns. Types are checked now, values by the job that writes them.

    They are named ``c0``, ``c1`` and so on: a classic frame's `mapInArrow` stumbles over a dot in a name.
    Raises `InvalidInput` as `conform` does.
    """
    _, lacking = fills.of(list(frame.columns), schema)
    kinds = {field["name"]: field["type"] for field in json.loads(frame.schema.json())["fields"]}
    columns = [
        _literal(lacking[field.name], field.type)
        if field.name in lacking
        else _column(field, kinds[field.name], fills.is_lenient)
        for field in schema
    ]
    return frame.select(*(column.alias(f"c{number}") for number, column in enumerate(columns)))


def _literal(value: Any, kind: pa.DataType) -> Column:
    target = column_type(kind)
    return F.lit(None).cast(target) if value is None else F.expr(literal_term(value, kind).spark).cast(target)


def _fitted(there: Column, found: pa.DataType, wanted: pa.DataType) -> Column:
    """A column whose structs have the fields of a table's, by name, as `lakehouse.engine.fields` makes them."""
    if not has_other_fields(found, wanted):
        return there
    if pa.types.is_struct(wanted):
        kinds = {one.name: one.type for one in found}
        fields = [
            _fitted(there.getField(one.name), kinds[one.name], one.type)
            if one.name in kinds
            else F.when(there.isNotNull(), _literal(default_of(one), one.type))
            for one in wanted
        ]
        named = F.struct(*(part.alias(one.name) for part, one in zip(fields, wanted, strict=True)))
        return F.when(there.isNull(), F.lit(None)).otherwise(named)
    if pa.types.is_map(wanted):
        values = F.transform_values(there, lambda _, value: _fitted(value, found.item_type, wanted.item_type))
        return F.transform_keys(values, lambda key, _: _fitted(key, found.key_type, wanted.key_type))
    return F.transform(there, lambda part: _fitted(part, found.value_type, wanted.value_type))


def _column(field: pa.Field, spark_kind: Any, is_lenient: bool) -> Column:
    found = from_spark_type(spark_kind, field.name)
    column = F.col(quoted(field.name))
    target = column_type(field.type)
    if is_lenient and has_other_fields(found, field.type):
        column = _fitted(column, found, field.type)
        found = fitted_type(found, field.type)
    if found == field.type:
        return column
    if not stores(found, field.type):
        raise cannot_store(field, found)
    if pa.types.is_timestamp(field.type):
        return _timestamp(quoted(field.name), found, field.type)
    if _widens(found, field.type):
        return column.cast(target)
    if pa.types.is_nested(field.type):
        raise cannot_store(field, found)
    cast = column.try_cast(target)
    message = F.lit(f"{REFUSED}: column={field.name} type={field.type};")
    held = F.coalesce(_holds(column, cast, found, field.type, str(spark_kind)), F.lit(False))
    return F.when(column.isNull() | held, cast).otherwise(F.raise_error(message))


def _holds(column: Column, cast: Column, found: pa.DataType, kind: pa.DataType, spark_kind: str) -> Column:
    """Whether a number was cast without loss; floats may lose digits, but not become infinite."""
    back = cast.try_cast(_sql_name(spark_kind))
    if pa.types.is_floating(kind):
        if pa.types.is_floating(found):
            infinity = F.lit(float("inf"))
            return (F.abs(cast) != infinity) | (F.abs(column) == infinity) | F.isnan(column)
        exact = 1 << (24 if pa.types.is_float32(kind) else 53)
        return column.between(-exact, exact)
    if pa.types.is_floating(found):
        # Spark gives the greatest integer for the float that is one more than it.
        return (back == column) & (column < float(1 << (kind.bit_width - 1)))
    return back == column


def _sql_name(spark_kind: Any) -> str:
    """A number type's name in SQL, from its name in JSON."""
    names = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
    return names.get(spark_kind, str(spark_kind))


def _instant(date: Column, found: pa.DataType, kind: pa.TimestampType) -> Column:
    """A date as midnight, in UTC if it has a zone: a cast would use the session's."""
    if kind.tz is None or not pa.types.is_date(found):
        return date.cast(column_type(kind))
    return F.timestamp_micros(F.unix_date(date) * F.lit(_DAY_US))


def _timestamp(name: str, found: pa.DataType, kind: pa.TimestampType) -> Column:
    """Dates and naive times as UTC, by arithmetic: a cast would use the session's time zone."""
    if pa.types.is_null(found) or kind.tz is None or pa.types.is_date(found):
        return _instant(F.col(name), found, kind)
    return F.timestamp_micros(_naive_microseconds(name))


def _naive_microseconds(name: str) -> Column:
    seconds = f"CAST(CAST({name} - {_EPOCH} AS INTERVAL SECOND) AS DECIMAL(20, 6))"
    return F.expr(f"CAST({seconds} * 1000000 AS BIGINT)")


def microseconds(name: str, kind: pa.DataType) -> Column:
    """The time in a column of a table's type, in microseconds since 1970, whatever the session's time zone."""
    if pa.types.is_date(kind):
        return F.unix_date(F.col(name)) * F.lit(_DAY_US)
    return _naive_microseconds(name) if kind.tz is None else F.unix_micros(F.col(name))


def _widens(found: pa.DataType, column: pa.DataType) -> bool:
    """Whether every value of one type is one of the other, so that a cast needs no check.

    The length of lists is looked at where rows are written.
    """
    column = listed_type(column)
    if found == column or pa.types.is_null(found):
        return True
    if pa.types.is_list(found) and pa.types.is_list(column):
        return _widens(found.value_type, column.value_type)
    if pa.types.is_map(found) and pa.types.is_map(column):
        return _widens(found.key_type, column.key_type) and _widens(found.item_type, column.item_type)
    if pa.types.is_struct(found) and pa.types.is_struct(column):
        return all(_widens(one.type, other.type) for one, other in zip(found, column, strict=True))
    if pa.types.is_nested(found) or pa.types.is_nested(column):
        return False
    digits, target = _digits(found), _digits(column)
    if digits is None or target is None:
        return False
    if pa.types.is_floating(found):
        return bool(pa.types.is_floating(column) and found.bit_width <= column.bit_width)
    return all(one <= other for one, other in zip(digits, target, strict=True))


def _digits(kind: pa.DataType) -> tuple[int, int] | None:
    """Whole digits and fractional digits that a number type surely holds."""
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    return {
        pa.int8(): (3, 0),
        pa.int16(): (5, 0),
        pa.int32(): (10, 0),
        pa.int64(): (19, 0),
        pa.float32(): (7, 0),
        pa.float64(): (15, 0),
    }.get(kind)
