"""What a task of Spark's runs in its Python worker: it stores the task's rows with the in-process writer.

Workers import this module by name. It stands outside the Spark engine so that they need not load the rest of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext

from lakehouse.engine import WriteTarget, Written
from lakehouse.engine.write import stored_schema, write_tables
from lakehouse.errors import InternalError, LakehouseError

REPORT = "written BINARY, error BINARY, attempt INT, stage INT"
"""A task's only row: its files or its error, pickled; how many attempts came before it, and its stage."""
_REPORT = pa.schema([("written", pa.binary()), ("error", pa.binary()), ("attempt", pa.int32()), ("stage", pa.int32())])
_TABLE_BYTES = 32 << 20
_BUFFER_BYTES = 128 << 20
"""Less than the writer's own: a machine runs as many tasks as it has cores."""


@dataclass(frozen=True, slots=True)
class TaskWriter:
    """Stores each task's rows below ``target.folder``, in files named after the attempt.

    An attempt that fails or loses thus never touches a file of the one that wins. Errors that a repetition cannot mend
    are reported as values: Spark would try again, and hand on no more than their text.
    """

    target: WriteTarget
    stored: str | None = None
    """The stored path of the folder, by which a worker of another machine finds its own."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Store all batches; yield the report."""
        context = TaskContext.get()
        if context is None:
            raise InternalError("rows of a task are stored outside of any task")
        written: list[Written] = []
        error: bytes | None = None
        try:
            target = replace(self._target(), batch=context.taskAttemptId(), partition=context.partitionId())
            written = write_tables(_tables(batches, stored_schema(target).names), target, buffer_bytes=_BUFFER_BYTES)
        except (LakehouseError, OSError) as failure:
            error = pickle.dumps(failure)
        report = {"written": pickle.dumps(written), "error": error, **attempt_of(context)}
        yield pa.RecordBatch.from_pylist([report], _REPORT)

    def _target(self) -> WriteTarget:
        if self.stored is None:
            return self.target
        return replace(self.target, folder=self.target.home.root / self.stored)


def attempt_of(context: TaskContext) -> dict[str, int]:
    """What a report says, so that the driver knows whether other attempts may have left files."""
    return {"attempt": context.attemptNumber(), "stage": context.stageId()}


def _tables(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[pa.Table]:
    """Batches put together to tables of some size, their columns named anew."""
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for batch in batches:
        waiting.append(batch)
        waiting_bytes += batch.nbytes
        if waiting_bytes >= _TABLE_BYTES:
            yield pa.Table.from_batches(waiting).rename_columns(names)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting).rename_columns(names)
