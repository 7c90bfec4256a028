"""What a task of Spark's runs in its Python worker to make summaries of segments, with the in-process code.

Workers import this module by name. It stands outside the Spark engine so that they need not load the rest of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from lakehouse.errors import InternalError, LakehouseError
from lakehouse.storage.summaries import Summarizing

REPORT = "report BINARY"
"""What was made of one segment, or the error, pickled."""
_REPORT = pa.schema([("report", pa.binary())])


@dataclass(frozen=True, slots=True)
class TaskSummaries:
    """Makes the summaries of each task's segments, which come pickled, in files named after the attempt.

    Errors that a repetition cannot mend are reported as values, as `lakehouse.engine.task.TaskWriter` does.
    """

    work: Summarizing

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a report a segment."""
        context = TaskContext.get()
        if context is None:
            raise InternalError("summaries of a task are made outside of any task")
        attempt = f".{context.taskAttemptId()}"
        for batch in batches:
            reports = [self._made(stored, attempt) for stored in batch.column(0).to_pylist()]
            rows = [{"report": pickle.dumps(report)} for report in reports]
            yield pa.RecordBatch.from_pylist(rows, _REPORT)

    def _made(self, stored: bytes, attempt: str) -> object:
        try:
            made = self.work(pickle.loads(stored), attempt)  # noqa: S301 - made by our own code
            self.work.sync(made)
        except (LakehouseError, OSError) as error:
            return error
        return made
