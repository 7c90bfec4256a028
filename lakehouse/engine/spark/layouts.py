"""Which files one scan of Spark reads that hold a table's columns in several ways, and with what schema.

Spark's Parquet reader widens integers and floats by itself, and a column with `EXISTS_DEFAULT` has that in files which
lack it (Spark's ``ParquetVectorUpdaterFactory`` and ``ResolveDefaultColumns``, since 4.0 and 3.4). Filters that are
pushed down know of both. The latter is true of its reader of batches alone: that of rows, which a session may choose,
takes null for all such columns but the last.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as spark

from lakehouse.core.column import Held, Layout
from lakehouse.core.widening import is_wider
from lakehouse.engine.hidden import Joining
from lakehouse.engine.spark.types import column_type, to_spark_type
from lakehouse.predicate.literals import literal_term

EXISTS_DEFAULT = "EXISTS_DEFAULT"
"""Metadata of a column that Spark knows: its value where a file lacks it, as SQL."""


_BATCHED = ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader")


def joining(session: SparkSession) -> Joining:
    """How a session reads files of two layouts in one scan, by the reader that it has chosen."""
    fills = cache(lambda: all(session.conf.get(one, "true") == "true" for one in _BATCHED))
    return lambda one, other: joined(one, other, fills=fills())


def joined(one: Layout, other: Layout, *, fills: bool = True) -> Layout | None:
    """How files of two layouts are read in one scan; None if Spark cannot. ``fills``: whether it knows defaults.

    >>> held = Held("delay", "delay", pa.int32(), pa.int64(), default=7)
    >>> both = joined((held,), (held._replace(type=None),))
    >>> both[0].type, both[0].is_lacked
    (DataType(int32), True)
    """
    both = [_both(*pair, fills) for pair in zip(one, other, strict=True)]
    return None if None in both else tuple(held for held in both if held is not None)


def file_type(schema: pa.Schema, layout: Layout | None) -> spark.StructType:
    """What is read of files, for the columns of a schema."""
    if layout is None:
        return to_spark_type(schema)
    held = {one.name: one for one in layout}
    fields = []
    for field in schema:
        one = held.get(field.name)
        if one is None:
            fields.append(spark.StructField(field.name, column_type(field.type)))
        elif one.type is not None:
            fields.append(spark.StructField(one.stored, column_type(one.type), metadata=_metadata(one)))
    return spark.StructType(fields)


def _metadata(held: Held) -> dict[str, str]:
    if not held.is_lacked or held.default is None:
        return {}
    kind = column_type(held.wanted).simpleString()
    return {EXISTS_DEFAULT: f"CAST({literal_term(held.default, held.wanted).spark} AS {kind})"}


def _both(one: Held, other: Held, fills: bool) -> Held | None:
    if one == other:
        return one
    if one.wanted != other.wanted:
        return None  # of which one is text, and the table's column is of UUIDs
    if one.type is None:
        one, other = other, one
    if other.type is None:
        # Spark's reader of batches fills in no bytes, and no value of parts.
        is_filled = fills and not pa.types.is_nested(one.wanted) and not pa.types.is_binary(one.wanted)
        return one._replace(is_lacked=True) if is_filled or one.default is None else None
    is_lacked = one.is_lacked or other.is_lacked
    if one.type == other.type:
        return one._replace(is_lacked=is_lacked)
    if _reads(one.type, one.wanted) and _reads(other.type, one.wanted):
        return one._replace(type=one.wanted, is_lacked=is_lacked)
    return None


def _reads(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark reads a type in files as another one, value by value as the table widens it.

    It reads some decimals and dates as wider ones, too, but that depends on how many bytes a file has for a value.
    """
    if pa.types.is_integer(held) or pa.types.is_floating(held):
        return held == wanted or (is_wider(wanted, held) and not pa.types.is_decimal(wanted))
    return False
