"""Spark behind the engine's port."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from lakehouse.engine import Query, WriteTarget
from lakehouse.engine.spark.read import read_frame
from lakehouse.engine.spark.session import start_session
from lakehouse.engine.spark.write import write_frame


class SparkEngine:
    """Writes Spark frames and reads plans as Spark frames, on a classic or a Connect session."""

    dialect = "spark"

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def write(self, rows: DataFrame, target: WriteTarget) -> Sequence[str]:
        """Run the frame's job and make its files durable; return their names below the target's folder.

        Raises `InvalidInput` for columns and values that the table cannot hold. Other errors of the job are Spark's.
        """
        return write_frame(rows, target)

    def read(self, query: Query) -> DataFrame:
        """The rows of the plan that pass, as a lazy frame."""
        return read_frame(self.session, query)


def open_engine(session: SparkSession | None) -> SparkEngine:
    """Spark on a given session, or on one that starts now. Raises `EngineUnavailable` if it cannot."""
    return SparkEngine(start_session() if session is None else session)
