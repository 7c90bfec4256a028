"""Summaries of segments made in Spark's tasks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from lakehouse.core.segment import Segment
from lakehouse.core.summary import Summary
from lakehouse.engine.summaries import REPORT, TaskSummaries
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.files import delete_files
from lakehouse.storage.summaries import Summarizing

_PARTS = 64
"""Tasks of one job, at most."""


def summarize(
    session: SparkSession, work: Summarizing, segments: Sequence[Segment]
) -> Iterator[list[Summary] | SegmentUnreadable]:
    """Run one job over segments. Raises `OSError` where a summary cannot be written.

    Files of attempts that failed or lost are deleted: the job has a folder of its own.
    """
    if not segments:
        return
    own = replace(work, folder=f"{work.folder}/00000")
    rows = [(bytearray(pickle.dumps(one)),) for one in segments]
    frame = session.createDataFrame(rows, "segment BINARY").repartition(min(_PARTS, len(rows)))
    found = [pickle.loads(row.report) for row in frame.mapInArrow(TaskSummaries(own), REPORT).collect()]  # noqa: S301
    kept = {one.path for made in found if isinstance(made, list) for one in made if one.path}
    folder = work.warehouse / own.folder
    if folder.is_dir():
        delete_files(work.warehouse, {f"{own.folder}/{path.name}" for path in folder.iterdir()} - kept)
    for made in found:
        if not isinstance(made, list | SegmentUnreadable):
            raise made
        yield made
