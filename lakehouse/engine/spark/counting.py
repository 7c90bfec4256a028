"""How many tasks of Spark's stages are done, for whoever listens to progress."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse import progress

_LOOK_SECONDS = 0.5


@contextmanager
def counting_tasks(session: SparkSession) -> Iterator[None]:
    """Around a job: a step of the tasks of the stages that run meanwhile. Nothing where nobody listens.

    A session of Spark Connect does not tell, so there it counts nothing. Cost: a question to Spark's driver twice a
    second, from a thread.
    """
    if progress.listener() is None or type(session).__module__.startswith("pyspark.sql.connect"):
        yield
        return
    with progress.step("Spark", "tasks") as step:
        ended = threading.Event()
        asking = threading.Thread(target=_ask, args=(session, step, ended), name="lakehouse-spark-tasks", daemon=True)
        asking.start()
        try:
            yield
        finally:
            ended.set()
            asking.join()


def _ask(session: SparkSession, step: progress.Step, ended: threading.Event) -> None:
    tracker = session.sparkContext.statusTracker()
    totals: dict[int, int] = {}
    while not ended.wait(_LOOK_SECONDS):
        left = 0
        try:
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    totals[stage] = info.numTasks
                    left += info.numTasks - info.numCompletedTasks
        except (PySparkException, Py4JError, OSError):
            return  # the session ends, as its job will say
        if totals:
            step.total = sum(totals.values())
            step.done = step.total - left
