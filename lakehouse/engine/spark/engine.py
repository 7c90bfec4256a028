"""Spark behind the engine's port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.core.segment import Segment
from lakehouse.core.spec import ROW_ID, TableSpec
from lakehouse.engine import Matches, Query, WriteTarget, Written
from lakehouse.engine.conform import check_there
from lakehouse.engine.spark.collect import collect_rows
from lakehouse.engine.spark.columns import quoted, value
from lakehouse.engine.spark.each import each
from lakehouse.engine.spark.failures import explaining_jobs
from lakehouse.engine.spark.join import matched
from lakehouse.engine.spark.read import read_frame
from lakehouse.engine.spark.session import start_session
from lakehouse.engine.spark.sort import ordered_frame
from lakehouse.engine.spark.statement import run_query
from lakehouse.engine.spark.write import write_frame
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.work import Made, SegmentWork


class SparkEngine:
    """Writes Spark frames and reads plans as Spark frames, on a classic or a Connect session."""

    dialect = "spark"

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def write(self, rows: DataFrame, target: WriteTarget) -> Sequence[Written]:
        """Run the frame's job and make its files durable; return what was written.

        Raises `InvalidInput` for columns and values that the table cannot hold. Other errors of the job are Spark's.
        """
        return write_frame(rows, target)

    @explaining_jobs()
    def read(self, query: Query) -> DataFrame:
        """The rows of the plan that pass, as a lazy frame. Raises `SegmentUnreadable`."""
        return read_frame(self.session, query)

    def run(self, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        """The rows of a checked query over frames, lazily; ``text`` names each by its key."""
        return run_query(self.session, text, frames)

    @explaining_jobs()
    def collect(self, query: Query) -> pa.Table:
        """The rows of the plan that pass, in memory. Raises `SegmentUnreadable`."""
        return collect_rows(self.session, query)

    def rewrite(self, query: Query, assigned: Mapping[str, str]) -> DataFrame:
        """The same with some columns' values given by expressions, as a lazy frame; with ``_row_id``."""
        frame = self.read(replace(query, columns=None, row_ids=True))
        return frame.select(
            *(value(assigned.get(one.name, quoted(one.name)), one) for one in query.spec.schema), F.col(ROW_ID)
        )

    @explaining_jobs()
    def ordered(self, query: Query, by: Sequence[str]) -> DataFrame:
        """All rows of the plan with ``_row_id``, as a lazy frame of sorted partitions, each for one segment."""
        return ordered_frame(self.session, query, by)

    def newest(self, rows: Any, spec: TableSpec, column: str) -> DataFrame:
        """Of rows with one primary key that which has the greatest value in a column, nulls being least."""
        check_there((*spec.primary_key, column), rows.columns)
        keys = [F.col(quoted(one)) for one in spec.primary_key]
        place = F.row_number().over(Window.partitionBy(*keys).orderBy(F.col(quoted(column)).desc_nulls_last()))
        chosen: DataFrame = rows.withColumn("_place", place).where("_place = 1").drop("_place")
        return chosen

    def join(
        self,
        condition: str,
        target: Query,
        source: Any,
        equal: Sequence[tuple[str, str]] = (),
        left: tuple[Query, str] | None = None,
    ) -> AbstractContextManager[Matches]:
        """Rows of a source, each with the row of the plan that it matches, kept until the context is left."""
        others = None if left is None else (self.read(left[0]), left[1])
        return matched(self.session, condition, target, self.read(target), source, others)

    def each(self, work: SegmentWork[Made], segments: Sequence[Segment]) -> Iterator[Made | SegmentUnreadable]:
        """What comes of a work on each segment, done in tasks; an error for one that cannot be read."""
        return each(self.session, work, segments)


def open_engine(session: SparkSession | None, *, reads: str = "") -> SparkEngine:
    """Spark on a given session, or on one that starts now. Raises `EngineUnavailable` if it cannot."""
    return SparkEngine(start_session(reads=reads) if session is None else session)
