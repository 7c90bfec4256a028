"""Whether a job's tasks were tried more than once, so that attempts that did not win may have left files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession


def were_repeated(session: SparkSession, reports: Sequence[Any]) -> bool:
    """Whether other attempts may have run than those that reported, by ``attempt`` and ``stage`` of the reports.

    A session that runs elsewhere (Spark Connect) does not tell of stages that were run again, for a lost shuffle.
    """
    if any(one.attempt for one in reports) or str(session.conf.get("spark.speculation", "false")).lower() == "true":
        return True
    if not hasattr(session, "_jsparkSession"):
        return False
    tracker = session.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in {one.stage for one in reports}]
    return any(one is None or one.currentAttemptId > 0 for one in stages)
