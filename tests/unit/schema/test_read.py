"""Schemas from Arrow, Spark and DDL: one form, or an error that names the column."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from lakehouse.core.spec import FIELD_ID
from lakehouse.errors import InvalidInput, InvalidSchema
from lakehouse.schema import read_type, schema_from_json, schema_to_json, to_schema
from tests.unit.engine.harness import HOSTILE

UTC = pa.timestamp("us", "UTC")
EVERY_TYPE = """
    ts TIMESTAMP NOT NULL, id BIGINT, tiny TINYINT, short SMALLINT, int INT, single FLOAT, double DOUBLE, flag BOOLEAN,
    text STRING, bytes BINARY, day DATE, local TIMESTAMP_NTZ, money DECIMAL(10, 2), huge DECIMAL(38, 10),
    `Verspätung in %.of day` INTEGER COMMENT 'late', list ARRAY<BIGINT>, struct STRUCT<x: INT, `y z`: ARRAY<STRING>>,
    map MAP<STRING, DOUBLE>, structs ARRAY<STRUCT<when: TIMESTAMP>>
"""


def test_arrow_ddl_and_spark_give_one_schema() -> None:
    from_arrow = to_schema(HOSTILE, "ts")
    from_ddl = to_schema(EVERY_TYPE, "ts")
    fields = [spark.StructField(name, kind) for name, kind in SPARK_TYPES.items()]
    from_spark = to_schema(spark.StructType(fields), "ts")
    assert from_arrow.equals(from_ddl, check_metadata=True)
    assert from_arrow.equals(from_spark, check_metadata=True)
    assert [int(field.metadata[FIELD_ID]) for field in from_arrow] == list(range(1, len(HOSTILE) + 1))
    assert schema_from_json(schema_to_json(from_arrow)).equals(from_arrow, check_metadata=True)


SPARK_TYPES: dict[str, spark.DataType] = {
    "ts": spark.TimestampType(),
    "id": spark.LongType(),
    "tiny": spark.ByteType(),
    "short": spark.ShortType(),
    "int": spark.IntegerType(),
    "single": spark.FloatType(),
    "double": spark.DoubleType(),
    "flag": spark.BooleanType(),
    "text": spark.StringType(),
    "bytes": spark.BinaryType(),
    "day": spark.DateType(),
    "local": spark.TimestampNTZType(),
    "money": spark.DecimalType(10, 2),
    "huge": spark.DecimalType(38, 10),
    "Verspätung in %.of day": spark.IntegerType(),
    "list": spark.ArrayType(spark.LongType()),
    "struct": spark.StructType().add("x", spark.IntegerType()).add("y z", spark.ArrayType(spark.StringType())),
    "map": spark.MapType(spark.StringType(), spark.DoubleType()),
    "structs": spark.ArrayType(spark.StructType().add("when", spark.TimestampType())),
}


@pytest.mark.parametrize(
    "time_type",
    [pa.timestamp("s"), pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("ms", "UTC"), pa.date32(), pa.date64()],
)
def test_the_time_column_becomes_utc_microseconds_without_nulls(time_type: pa.DataType) -> None:
    assert to_schema(pa.schema([("ts", time_type)]), "ts").field("ts") == pa.field("ts", UTC, nullable=False)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (pa.uint8(), pa.int16()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary(16), pa.binary()),
        (pa.dictionary(pa.int32(), pa.large_string()), pa.string()),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("s", "Asia/Tokyo"), UTC),
        (pa.large_list(pa.uint8()), pa.list_(pa.int16())),
        (pa.list_(pa.int8(), 3), pa.list_(pa.int8())),
        (pa.list_(pa.float16(), 3), pa.list_(pa.float32(), 3)),
        (pa.large_list(pa.list_(pa.float64(), 3)), pa.list_(pa.list_(pa.float64(), 3))),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal256(38, 2), pa.decimal128(38, 2)),
    ],
)
def test_types_that_the_engines_do_not_share_become_ones_that_they_do(given: pa.DataType, stored: pa.DataType) -> None:
    assert to_schema(pa.schema([("ts", UTC), ("x", given)]), "ts").field("x").type == stored


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint64(),
        pa.null(),
        pa.time64("us"),
        pa.duration("s"),
        pa.decimal256(50, 2),
        pa.decimal128(5, -2),
        pa.struct([]),
        pa.struct([("a", pa.int8()), ("A", pa.int8())]),
        pa.dense_union([pa.field("a", pa.int8())]),
        pa.list_(pa.time32("s")),
        pa.month_day_nano_interval(),
    ],
)
def test_a_type_that_no_table_can_hold_is_refused_by_column(kind: pa.DataType) -> None:
    with pytest.raises(InvalidInput, match="column=odd"):
        to_schema(pa.schema([("ts", UTC), ("odd", kind)]), "ts")


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("delay in %", True),
        ("Verspätung", True),
        ("列", True),
        ("1st", True),
        ("a.b", True),
        ("_hidden", False),
        ("", False),
        ("a`b", False),
        ('a"b', False),
        ("a'b", False),
        ("a\nb", False),
        ("a\x00b", False),
        ("a\x7fb", False),
        (" a", False),
        ("x" * 129, False),
    ],
)
def test_column_names(name: str, allowed: bool) -> None:
    schema = pa.schema([("ts", UTC), (name, pa.int64())])
    if allowed:
        assert to_schema(schema, "ts").names == ["ts", name]
    else:
        with pytest.raises(InvalidInput, match="column name"):
            to_schema(schema, "ts")


@pytest.mark.parametrize("twice", ["a", "A"])
def test_two_columns_of_one_name_are_refused_whatever_the_case(twice: str) -> None:
    with pytest.raises(InvalidInput, match="one name"):
        to_schema(pa.schema([("ts", UTC), ("a", pa.int64()), (twice, pa.int64())]), "ts")


def test_a_missing_or_wrong_time_column_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"time=when columns=ts,n"):
        to_schema("ts TIMESTAMP, n INT", "when")
    with pytest.raises(InvalidInput, match=r"timestamp or date \(time=n"):
        to_schema("ts TIMESTAMP, n INT", "n")


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "ts",
        "ts TIMESTAMP, n",
        "ts TIMESTAMP) USING parquet --",
        "ts TIMESTAMP) AS SELECT (1",
        "ts TIMESTAMP); DROP TABLE (t",
        "ts TIMESTAMP DEFAULT now()",
        "ts TIMESTAMP, PRIMARY KEY (ts)",
        "ts TIMESTAMP, v VARIANT",
        "ts TIMESTAMP, v VECTOR(INT, 3)",
        "ts TIMESTAMP, v VECTOR(FLOAT, 0)",
        "ts TIMESTAMP, v VECTOR(FLOAT, 100000)",
        "ts TIMESTAMP, v VECTOR(FLOAT)",
        "ts TIMESTAMP, d DECIMAL(39, 1)",
        "ts TIMESTAMP, d DECIMAL(5, 9)",
        "ts TIMESTAMP, s STRUCT<x: INT> NOT NULL",
        "ts TIMESTAMP, i INTERVAL",
        "(" * 5000,
        5,
        None,
        {"ts": "timestamp"},
        pa.schema([]),
        spark.StructType([spark.StructField("ts", spark.TimestampType()), spark.StructField("n", spark.NullType())]),
    ],
)
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidInput):
        to_schema(schema, "ts")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"fields": []}',
        '{"fields": [{"id": 1, "name": "a", "type": "int64"}]}',
        '{"fields": [{"id": 0, "name": "a", "type": "int64", "nullable": true}]}',
        '{"fields": [{"id": true, "name": "a", "type": "int64", "nullable": true}]}',
        '{"fields": [{"id": 1, "name": "a", "type": "object", "nullable": true}]}',
        '{"fields": [{"id": 1, "name": "a", "type": "decimal(99, 0)", "nullable": true}]}',
        '{"fields": [{"id": 1, "name": "a", "type": {"list": "int64", "x": 1}, "nullable": true}]}',
        '{"fields": [{"id": 1, "name": "a", "type": {"list": "int64", "size": 3}, "nullable": true}]}',
        '{"fields": [{"id": 1, "name": "a", "type": {"list": "float32", "size": 0}, "nullable": true}]}',
        '{"fields": [{"id": 1, "name": "a", "type": {"list": "float32", "size": true}, "nullable": true}]}',
        '{"fields": [{"id": 1, "name": "a", "type": "int64", "nullable": true, "code": "x"}]}',
        '{"fields": [{"id": 1, "name": "a", "type": '
        + '{"list":' * 3000
        + '"int8"'
        + "}" * 3000
        + ', "nullable": true}]}',
    ],
)
def test_a_stored_schema_that_was_changed_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="stored schema is malformed"):
        schema_from_json(text)


@pytest.mark.parametrize("name", ["x", "a`b c", "größe", "s.part"])
def test_a_refused_type_is_told_with_the_name_of_its_column(name: str) -> None:
    assert read_type("DECIMAL(9, 2)", name) == pa.decimal128(9, 2)
    with pytest.raises(InvalidInput, match=re.escape(f"column={name} type=TIME")):
        read_type("TIME", name)


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("ts TIMESTAMP, x DOUBEL", "no such type; .*column=x type=DOUBEL nearest=DOUBLE types=BOOLEAN,"),
        ("ts TIMESTMP NOT NULL", "column=ts type=TIMESTMP nearest=TIMESTAMP"),
        ("a DECIMAL(9, 2), b STRUCT<x: INT, y: INT>, c TEXTT", "column=c type=TEXTT"),
        ("ts TIMESTAMP, x MAP<STRING>", "column=x type=MAP<STRING> write=MAP<STRING, INT>"),
        ("ts TIMESTAMP, x ARRAY", "column=x type=ARRAY write=ARRAY<INT>"),
    ],
)
def test_a_wrong_type_is_named_with_its_column_and_the_nearest(ddl: str, said: str) -> None:
    with pytest.raises(InvalidSchema, match=said):
        to_schema(ddl, None)
