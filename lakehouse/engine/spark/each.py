"""A work on segments, one by one, done in Spark's tasks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from lakehouse import progress
from lakehouse.core.segment import Segment
from lakehouse.engine.each import REPORT, TaskWork
from lakehouse.engine.spark.attempts import were_repeated
from lakehouse.engine.spark.counting import counting_tasks
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.work import Made, SegmentWork, delete_others

_PARTS = 64
"""Tasks of one job, at most."""


def each(
    session: SparkSession, work: SegmentWork[Made], segments: Sequence[Segment]
) -> Iterator[Made | SegmentUnreadable]:
    """Run one job over segments. Raises `OSError` where a file cannot be written.

    Files of attempts that failed or lost are deleted: the job has a folder of its own.
    """
    if not segments:
        return
    own = work.below("00000")
    rows = [(bytearray(pickle.dumps(one)),) for one in segments]
    frame = session.createDataFrame(rows, "segment BINARY").repartition(min(_PARTS, len(rows)))
    with counting_tasks(session):
        reports = frame.mapInArrow(TaskWork(own), REPORT).collect()
    found = [pickle.loads(row.report) for row in reports]  # noqa: S301 - made by our own code in the session's workers
    kept = {path for made in found if not isinstance(made, Exception) for path in own.files(made)}
    if own.folder:
        delete_others(work.warehouse, own.folder, kept, is_repeated=were_repeated(session, reports))
    for made in found:
        if isinstance(made, Exception) and not isinstance(made, SegmentUnreadable):
            raise made
        progress.advance("files")
        yield made
