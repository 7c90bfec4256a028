"""A Spark frame into durable Parquet files: one pass, no shuffle, no sort. Each task stores its rows in its worker."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakehouse.engine import WriteTarget, Written
from lakehouse.engine.conform import Fills
from lakehouse.engine.spark.attempts import were_repeated
from lakehouse.engine.spark.columns import conformed
from lakehouse.engine.spark.counting import counting_tasks
from lakehouse.engine.spark.failures import explaining_jobs
from lakehouse.engine.spark.settings import held
from lakehouse.engine.task import REPORT, TaskWriter
from lakehouse.engine.write import stored_schema, write_tables
from lakehouse.errors import InvalidRows
from lakehouse.storage.work import delete_others

_SETTINGS = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}
_LOCAL_BYTES = 64 << 20
_TOO_MUCH = "spark.driver.maxResultSize"
_is_few: ContextVar[bool] = ContextVar("is_few", default=False)


@contextmanager
def few_rows() -> Iterator[None]:
    """Around writes of frames that have few rows as far as their caller knows: they are written in this process.

    A job of tasks in Python workers takes four times as long for them. If they are too many after all for what Spark
    gives to its driver (``spark.driver.maxResultSize``), tasks write them.
    """
    before = _is_few.set(True)
    try:
        yield
    finally:
        _is_few.reset(before)


def write_frame(frame: DataFrame, target: WriteTarget) -> list[Written]:
    """Run the frame's job, writing below the target's folder; return the files of its winning task attempts.

    They are those that the job's result names, which holds one report of each task. What else lies in the job's own
    folder is of attempts that failed or lost, and is deleted. Each task counts its rows against its files' footers.
    """
    if frame.isStreaming:
        raise InvalidRows("a streaming frame cannot be written at once; use writeStream")
    rows = conformed(frame, stored_schema(target), Fills(target.spec.defaults_for_new, target.is_lenient))
    folder = target.folder / f"{target.batch:05d}"
    target.home.make_folder(folder)
    part = replace(target, folder=folder, batch=0, warehouse=target.home)
    with held(frame.sparkSession, _SETTINGS), explaining_jobs():
        held_here = _held_here(rows)
        if held_here is not None:
            named = held_here.rename_columns(stored_schema(part).names)
            return [one.below(folder.name) for one in write_tables([named], part)]
        with counting_tasks(frame.sparkSession):
            reports = rows.mapInArrow(TaskWriter(part, part.stored), REPORT).collect()
    for report in reports:
        if report.error is not None:
            raise pickle.loads(report.error)  # noqa: S301 - made by our own code in the session's own workers
    written = [one for report in reports for one in pickle.loads(report.written)]  # noqa: S301 - as above
    kept = {f"{part.stored}/{one.name}" for one in written}
    delete_others(part.home, part.stored, kept, is_repeated=were_repeated(frame.sparkSession, reports))
    return [one.below(folder.name) for one in sorted(written, key=lambda one: one.name)]


def _held_here(rows: DataFrame) -> pa.Table | None:
    """The rows of a frame that has few of them; None if tasks should write them."""
    if not (_is_few.get() or _is_local(rows)):
        return None
    try:
        return rows.toArrow()
    except PySparkException as error:
        if _TOO_MUCH in str(error):
            return None
        raise


def _is_local(rows: DataFrame) -> bool:
    """Whether a frame is nothing but a few rows that lie in the driver; a task would take longer to begin."""
    if not hasattr(rows, "_jdf"):
        return False  # a frame of Spark Connect does not tell
    plan = rows._jdf.queryExecution().optimizedPlan()
    is_local: bool = plan.getClass().getSimpleName() == "LocalRelation"
    return is_local and int(str(plan.stats().sizeInBytes())) <= _LOCAL_BYTES
