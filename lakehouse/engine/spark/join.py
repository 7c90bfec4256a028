"""A source joined to a plan's rows by Spark, for a merge: computed once, for a source need not give the same twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.core.spec import ORDINAL, ROW_ID, SIDES
from lakehouse.engine import Query
from lakehouse.engine.frames import is_spark_frame
from lakehouse.engine.spark.collect import to_arrow
from lakehouse.engine.spark.columns import quoted, value

_SOURCE, _TARGET = SIDES["source"], SIDES["target"]
_PLACE = "_lake_place"
"""Number of a source's row; columns of a user may not begin with an underscore."""


@contextmanager
def matched(
    session: SparkSession,
    condition: str,
    target: Query,
    rows: DataFrame,
    source: Any,
    left: tuple[DataFrame, str] | None = None,
) -> Iterator[SparkMatches]:
    """Join, keep, and forget at the end. The source is kept first, so that Spark knows that a small one is."""
    given = source if is_spark_frame(source) else session.createDataFrame(pa.table(source))
    kept = given.withColumn(_PLACE, F.monotonically_increasing_id()).persist()
    kept.count()
    pairs = rows.alias(_TARGET).join(kept.alias(_SOURCE), F.expr(condition), "inner")
    found = pairs.select(F.struct(f"{_SOURCE}.*").alias(_SOURCE), F.struct(f"{_TARGET}.*").alias(_TARGET)).persist()
    matches = SparkMatches(kept, found, target)
    frames = [found]
    if left is not None:
        others = left[0].alias(_TARGET).where(F.expr(left[1]))
        others = others.join(kept.alias(_SOURCE), F.expr(condition), "left_anti")
        frames.append(others.select(F.struct(f"{_TARGET}.*").alias(_TARGET)).persist())
        matches.left = SparkMatches(kept, frames[-1], target)
    try:
        yield matches
    finally:
        for frame in frames:
            frame.unpersist()
        kept.unpersist()


class SparkMatches:
    """The source, its rows numbered, and the pairs in a frame of two structs, one a side; both kept."""

    def __init__(self, source: DataFrame, pairs: DataFrame, target: Query) -> None:
        self._source = source
        self._pairs = pairs
        self._target = target
        self.left: SparkMatches | None = None

    def hits(self, columns: Sequence[str], where: str) -> pa.Table:
        """Columns of the matched rows for which a condition holds, with `_row_id` and `_ordinal`; one row a pair."""
        chosen = [F.col(f"{_TARGET}.{quoted(one)}").alias(one) for one in (*columns, ROW_ID, ORDINAL)]
        return to_arrow(self._where(where).select(*chosen), self._target)

    def updated(self, assigned: Mapping[str, str], where: str) -> DataFrame:
        """Matched rows for which a condition holds with new values; with ``_row_id``."""
        columns = [
            value(assigned.get(one.name, f"{_TARGET}.{quoted(one.name)}"), one) for one in self._target.spec.schema
        ]
        return self._where(where).select(*columns, F.col(f"{_TARGET}.{ROW_ID}").alias(ROW_ID))

    def inserted(self, values: Mapping[str, str], where: str) -> DataFrame:
        """Rows made of the source's rows that match none and for which a condition holds."""
        matched = self._pairs.select(F.col(f"{_SOURCE}.{_PLACE}").alias(_PLACE)).distinct()
        missing = self._source.join(matched, _PLACE, "left_anti").alias(_SOURCE)
        return missing.where(F.expr(where)).select(
            *(value(values.get(one.name, "NULL"), one) for one in self._target.spec.schema)
        )

    def _where(self, where: str) -> DataFrame:
        return self._pairs.where(F.expr(where))
