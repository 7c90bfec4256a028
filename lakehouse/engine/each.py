"""What a task of Spark's runs in its Python worker to do a work on segments, one by one, with the in-process code.

Workers import this module by name. It stands outside the Spark engine so that they need not load the rest of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from lakehouse.engine.task import attempt_of
from lakehouse.errors import InternalError, LakehouseError
from lakehouse.storage.work import SegmentWork

REPORT = "report BINARY, attempt INT, stage INT"
"""What came of one segment, or the error, pickled; how many attempts came before it, and its stage."""
_REPORT = pa.schema([("report", pa.binary()), ("attempt", pa.int32()), ("stage", pa.int32())])


@dataclass(frozen=True, slots=True)
class TaskWork:
    """Does a work on each of a task's segments, which come pickled, with files named after the attempt.

    Errors that a repetition cannot mend are reported as values, as `lakehouse.engine.task.TaskWriter` does.
    """

    work: SegmentWork[Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a report a segment."""
        context = TaskContext.get()
        if context is None:
            raise InternalError("a task's segments are worked on outside of any task")
        attempt = f".{context.taskAttemptId()}"
        for batch in batches:
            reports = [self._made(stored, attempt) for stored in batch.column(0).to_pylist()]
            rows = [{"report": pickle.dumps(report), **attempt_of(context)} for report in reports]
            yield pa.RecordBatch.from_pylist(rows, _REPORT)

    def _made(self, stored: bytes, attempt: str) -> object:
        try:
            made = self.work(pickle.loads(stored), attempt)  # noqa: S301 - made by our own code
            self.work.sync([made])
        except (LakehouseError, OSError) as error:
            return error
        return made
