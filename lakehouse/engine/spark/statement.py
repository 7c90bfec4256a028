"""Run the text of a query over frames: a classic session and Spark Connect both do, and no view stays behind."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakehouse.engine.recursion import MOST_STEPS, TOO_MANY
from lakehouse.engine.spark.settings import held
from lakehouse.errors import InvalidStatement, QueryLimitExceeded

_ZONE = "spark.sql.session.timeZone"
_SETTINGS = {
    _ZONE: "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.variable.substitute": "false",
}
"""What a statement means does not depend on the session: a classic frame keeps what held when it was made."""


def run_query(session: SparkSession, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of a query, lazily. ``text`` names each frame by its key, in backticks.

    Raises `InvalidInput` for what Spark refuses, and where a Connect session, which analyzes a query anew each time,
    would read times without an offset as something else than UTC.
    """
    if _is_connect(session) and session.conf.get(_ZONE) not in ("UTC", "Etc/UTC", "Z"):
        raise InvalidStatement(
            "statements read times as UTC: set spark.sql.session.timeZone to UTC on this session",
            found=session.conf.get(_ZONE),
        )
    if frames:
        text = text.replace("{", "{{").replace("}", "}}")
        for name in frames:
            text = text.replace(f"`{name}`", "{" + name + "}")
    try:
        with held(session, _SETTINGS):
            rows = session.sql(text, None, **frames)
            rows.schema  # noqa: B018 - on Connect this is what analyzes the query
    except (AnalysisException, ParseException) as error:
        raise InvalidStatement(
            "Spark refuses the statement", cause=str(error).split("\n", maxsplit=1)[0][:300]
        ) from error
    return rows


def read_frame_rows(frame: DataFrame) -> pa.Table:
    """All rows of a frame, in memory. Raises `InvalidInput` where the query fails on some row."""
    try:
        return frame.toArrow()
    except PySparkException as error:
        cause = str(error).split("\n", maxsplit=1)[0][:300]
        if TOO_MANY in str(error):
            raise QueryLimitExceeded(TOO_MANY, limit="steps", most=MOST_STEPS) from error
        raise InvalidStatement("Spark fails on some row; correct the statement", cause=cause) from error


def _is_connect(session: SparkSession) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")
