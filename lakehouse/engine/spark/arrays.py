"""Numbers that expressions over a frame look up: constant arrays under names of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program
from pyspark.sql import types as spark

from lakehouse.core.skyline import IntArray

_LONGS = spark.ArrayType(spark.LongType(), containsNull=False).json()
_CATALYST = "org.apache.spark.sql.catalyst.expressions"


class Arrays:
    """Arrays by name, for the expressions over one frame.

    They are columns only until Spark's optimizer puts the constants in their place. So an expression may name one
    several times at no cost, and Spark compiles its text, which has none of the numbers, once for all of them.
    """

    def __init__(self) -> None:
        self._held: dict[str, IntArray] = {}

    def add(self, values: IntArray) -> str:
        """The name under which a row finds these numbers."""
        name = f"_array{len(self._held)}"
        self._held[name] = np.asarray(values, dtype=np.int64)
        return name

    @property
    def names(self) -> list[str]:
        """All names, for when they are no longer needed."""
        return list(self._held)

    def put_into(self, frame: DataFrame) -> DataFrame:
        """The frame with the arrays."""
        if not self._held:
            return frame
        made = in_memory if hasattr(frame, "_jdf") else as_text
        literals = made(frame.sparkSession, self._held.values())
        return frame.select("*", *(one.alias(name) for name, one in zip(self._held, literals, strict=True)))


def as_text(_: SparkSession, arrays: Any) -> list[Column]:
    """Numbers as one literal, since those that the parser sees one by one cost it far more."""
    return [F.expr(f"CAST(split('{','.join(map(str, one.tolist()))}', ',') AS ARRAY<BIGINT>)") for one in arrays]


def in_memory(session: SparkSession, arrays: Any) -> list[Column]:
    """Numbers as they lie in memory, of which Spark makes a copy: no text is written or read."""
    from pyspark.sql.classic.column import Column as Classic  # noqa: PLC0415 - absent where Spark is elsewhere

    jvm = session._jvm
    unsafe, literal = getattr(jvm, f"{_CATALYST}.UnsafeArrayData"), getattr(jvm, f"{_CATALYST}.Literal")
    column = getattr(jvm, "org.apache.spark.sql.classic.ExpressionUtils").column
    start = getattr(jvm, "org.apache.spark.unsafe.Platform").BYTE_ARRAY_OFFSET
    kind = session._jsparkSession.parseDataType(_LONGS)
    stored = (unsafe.fromPrimitiveArray(one.tobytes(), start, len(one), 8) for one in arrays)
    return [Classic(column(literal(one, kind))) for one in stored]
