"""A plan's rows in an order, as a Spark frame whose partitions become segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.engine import Query
from lakehouse.engine.order import SAMPLE_ROWS, plan_order
from lakehouse.engine.spark.collect import to_arrow
from lakehouse.engine.spark.read import read_frame

_FILL = 0.8
"""Share of the target that a partition gets: their sizes vary, and one above it would become two segments."""


def ordered_frame(session: SparkSession, query: Query, by: Sequence[str]) -> DataFrame:
    """The rows by one column or the Z-order of several, in ranges of that order; each partition is sorted."""
    frame = read_frame(session, replace(query, columns=None, row_ids=True))
    rows = query.plan.segments.rows
    if not rows:
        return frame
    sample = None
    if len(by) > 1:
        values = replace(query, columns=tuple(by), row_ids=False)
        chosen = read_frame(session, values).sample(fraction=min(1.0, SAMPLE_ROWS / rows), seed=7)
        sample = to_arrow(chosen.limit(2 * SAMPLE_ROWS), values)
    order = plan_order(query.spec, query.plan, by, sample).spark
    # As columns: an expression to sort by would be computed for each comparison.
    places = [f"_place{number}" for number in range(len(order))]
    placed = frame.select("*", *(F.expr(one).alias(name) for one, name in zip(order, places, strict=True)))
    parts = 1 if rows <= query.spec.target_rows else -int(-rows // (query.spec.target_rows * _FILL))
    if not places:  # a timeless table without keys
        return frame.coalesce(1) if parts == 1 else frame.repartition(parts)
    ranged = placed.coalesce(1) if parts == 1 else placed.repartitionByRange(parts, *places)
    return ranged.sortWithinPartitions(*places).drop(*places)
