"""Filters against Spark itself: none of its functions gets through unlisted, and text is read as Spark reads it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakehouse.core.predicate import Compare
from lakehouse.errors import InvalidInput
from lakehouse.predicate import parse
from tests.unit.engine.harness import HOSTILE, spec_of

SCHEMA = spec_of(HOSTILE).schema
LISTED = (
    "abs case coalesce contains date day dayofmonth dayofyear endswith hour if ifnull isnan isnotnull isnull length "
    "minute month nullif nvl quarter second startswith to_date year "
    # other words for listed operators
    "! != % * + - / < <= <=> <> = == > >= and between div in like mod negative not or when || "
    # literals and casts of literals
    "bigint decimal double float int smallint string timestamp tinyint true false null "
    # other names of listed functions
    "char_length character_length len positive"
)
ARGUMENTS = ("", "id", "text", "ts", "'java.lang.System', 'exit', 0", "id, 1", "text, 'x'", "ts, 'x', 1", "list")


def test_no_other_function_of_spark_gets_through(spark: Any) -> None:
    names = {row[0].rpartition(".")[2] for row in spark.sql("SHOW FUNCTIONS").collect()}
    assert {"reflect", "java_method", "try_reflect"} <= names
    passed = set()
    for name in names - set(LISTED.split()):
        for arguments in ARGUMENTS:
            for where in (f"{name}({arguments}) = 1", f"{name}({arguments})", f"{name}({arguments}) = 'x'"):
                try:
                    parse(where, SCHEMA)
                except InvalidInput:
                    continue
                passed.add(where)
    assert passed == set()


@pytest.mark.parametrize(
    "written",
    [
        "'it''s'",
        "'it\\'s'",
        '"it\'s"',
        '"a""b"',
        "'a\\nb\\tc\\\\d'",
        "'a\\%b\\_c'",
        "'\\u0041\\101\\Z\\q'",
        "r'a\\nb'",
        "'\U0001d4b3 é'",
        "''",
        "''''",
    ],
)
def test_strings_are_read_as_spark_reads_them(spark: Any, written: str) -> None:
    found = parse(f"text = {written}", SCHEMA)
    assert isinstance(found.tree, Compare)
    assert found.tree.value == spark.sql(f"SELECT {written}").collect()[0][0]


@pytest.mark.parametrize(
    "value", ["it's", "a\\b", "${HOME}", "\x00\x01\x7f\x85", "'; DROP TABLE t; --", '\U0001d4b3`"', ""]
)
@pytest.mark.parametrize("setting", ["false", "true"])
def test_what_is_written_for_spark_means_the_same_whatever_its_settings(spark: Any, value: str, setting: str) -> None:
    written = "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    rows = spark.createDataFrame(pa.table({"text": [value, "other", None]}))
    spark.conf.set("spark.sql.parser.escapedStringLiterals", setting)
    try:
        where = parse(f"text = {written}", SCHEMA).spark
        assert [row[0] for row in rows.where(where).collect()] == [value]
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")
