"""Telling frames apart without importing what made them."""

from __future__ import annotations

from typing import Any

from lakehouse.arguments import is_of


def is_spark_frame(rows: Any) -> bool:
    """Whether rows are a Spark DataFrame, classic or Connect. Does not import PySpark.

    >>> is_spark_frame([1, 2])
    False
    """
    return is_of(rows, "pyspark.sql", "DataFrame")
