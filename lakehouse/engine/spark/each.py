"""A work on segments, one by one, done in Spark's tasks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from lakehouse.core.segment import Segment
from lakehouse.engine.each import REPORT, TaskWork
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.work import Made, SegmentWork

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
    found = [pickle.loads(row.report) for row in frame.mapInArrow(TaskWork(own), REPORT).collect()]  # noqa: S301
    kept = {path for made in found if not isinstance(made, Exception) for path in own.files(made)}
    folder = work.warehouse.root / own.folder
    if own.folder and folder.is_dir():
        work.warehouse.delete({f"{own.folder}/{path.name}" for path in folder.iterdir()} - kept)
    for made in found:
        if isinstance(made, Exception) and not isinstance(made, SegmentUnreadable):
            raise made
        yield made
