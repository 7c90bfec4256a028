"""A table's schema as Spark's."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as spark

from lakehouse.errors import InternalError

_TYPES: dict[pa.DataType, spark.DataType] = {
    pa.bool_(): spark.BooleanType(),
    pa.int8(): spark.ByteType(),
    pa.int16(): spark.ShortType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    pa.float32(): spark.FloatType(),
    pa.float64(): spark.DoubleType(),
    pa.string(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.date32(): spark.DateType(),
    pa.timestamp("us"): spark.TimestampNTZType(),
    pa.timestamp("us", "UTC"): spark.TimestampType(),
}


def to_spark_type(schema: pa.Schema) -> spark.StructType:
    """A table's columns as a Spark schema.

    >>> to_spark_type(pa.schema([("client", pa.int64())])).simpleString()
    'struct<client:bigint>'
    """
    return spark.StructType(
        [spark.StructField(field.name, column_type(field.type), bool(field.nullable)) for field in schema]
    )


def column_type(kind: pa.DataType) -> spark.DataType:
    """The Spark type of a column's type."""
    if kind in _TYPES:
        return _TYPES[kind]
    if pa.types.is_decimal(kind):
        return spark.DecimalType(kind.precision, kind.scale)
    if pa.types.is_map(kind):
        return spark.MapType(column_type(kind.key_type), column_type(kind.item_type))
    if pa.types.is_struct(kind):
        return spark.StructType([spark.StructField(part.name, column_type(part.type)) for part in kind])
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return spark.ArrayType(column_type(kind.value_type))
    raise InternalError("a type that no table has", type=kind)
