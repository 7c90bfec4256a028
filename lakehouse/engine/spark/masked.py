"""Segments under row and key tombstones as one Spark frame."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.core.spec import ROW_ID
from lakehouse.engine import ORDINAL, Query
from lakehouse.engine.hidden import KeyMask, Part
from lakehouse.engine.spark.columns import quoted
from lakehouse.engine.spark.scan import placed_scan, scan
from lakehouse.engine.spark.stores import Files
from lakehouse.engine.spark.types import to_spark_type


def masked_frame(session: SparkSession, query: Query, part: Part, files: Files, extras: Sequence[str]) -> DataFrame:
    """The part's rows that no place or mask hides; the columns of the table, and extra ones."""
    schema, layout = query.spec.schema, part.layout
    needs_ids = bool(part.places) or any(ROW_ID in mask.columns or mask.is_ordered for mask in part.masks)
    if needs_ids or extras:
        frame = placed_scan(session, schema, part.segments, files, layout)
    else:
        frame = scan(session, schema, part.segments, files, layout)
    masks = list(part.masks)
    if part.places:
        table = pa.table({ROW_ID: part.hidden_ids})
        masks.append(KeyMask((ROW_ID,), table, is_ordered=False))
    for mask in masks:
        frame = _without(session, frame, mask)
    return frame.select(*(F.col(quoted(name)) for name in (*schema.names, *extras)))


def _without(session: SparkSession, frame: DataFrame, mask: KeyMask) -> DataFrame:
    """The rows of a frame that a mask does not hide."""
    used = [*mask.columns, *([ORDINAL] if mask.is_ordered else [])]
    names = {name: f"_m{number}" for number, name in enumerate(used)}
    table = mask.table.select(used).rename_columns(list(names.values()))
    hidden = F.broadcast(session.createDataFrame(table, to_spark_type(table.schema)))
    conditions = [F.col(quoted(name)) == F.col(names[name]) for name in mask.columns]
    if mask.is_ordered:
        conditions.append(F.col(ORDINAL) < F.col(names[ORDINAL]))
    return frame.join(hidden, reduce(Column.__and__, conditions), "left_anti")
