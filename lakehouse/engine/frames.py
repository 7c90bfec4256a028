"""Telling frames apart without importing what made them."""

from __future__ import annotations

from typing import Any


def is_spark_frame(rows: Any) -> bool:
    """Whether rows are a Spark DataFrame, classic or Connect. Does not import PySpark.

    >>> is_spark_frame([1, 2])
    False
    """
    return any(
        base.__module__.startswith("pyspark.sql.") and base.__name__ == "DataFrame" for base in type(rows).__mro__
    )
