"""A table as a streaming sink of Spark's own format: each micro-batch is one commit, however often it is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as spark_source

from lakehouse.arguments import Fit
from lakehouse.core.operation import Begun
from lakehouse.core.spec import TableSpec
from lakehouse.engine import Written
from lakehouse.errors import InvalidArgument
from lakehouse.lake import Lake
from lakehouse.operations.append import Append
from lakehouse.streaming.tasks import chained, written

Open = Callable[[Mapping[str, str]], Lake]
"""Opens the lake that options name, with leases that last until the next task begins."""


class StreamWriter(spark_source.DataSourceStreamArrowWriter):
    """Each task begins an append of its own, and the batch's commit is all of them.

    Spark makes a writer anew for each commit, so that tasks and commit have nothing in common but what tasks report.
    """

    def __init__(self, options: Mapping[str, str], spec: TableSpec, fit: Fit, opened: Open) -> None:
        if fit == "merge":
            raise InvalidArgument("a stream of this format adds no columns; use lakehouse.streaming.write", schema=fit)
        self._options = dict(options)
        self._spec = spec
        self._fit = fit
        self._open = opened

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _StreamTask:
        """Store one task's rows as an append that is still to be committed."""
        first = next(iterator, None)
        if first is None:
            return _StreamTask(None, ())
        with self._open(self._options) as lake:
            begun = lake.table(self._options["table"]).begin_append().begun
            try:
                return _StreamTask(
                    begun, written(lake, begun, chained(first, iterator), is_lenient=self._fit != "strict")
                )
            except BaseException:
                Append(lake.session, begun).abort()
                raise

    def commit(self, messages: list[spark_source.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit what the tasks that won have stored as one version, unless the batch was committed before."""
        said = self._options.get("message")
        with self._open(self._options) as lake, lake.transaction(message=said) as transaction:
            for one in _stored(messages):
                append = Append(lake.session, one.begun)
                append.take(one.files)
                transaction.add(append)
            transaction.once(self._options["table"], (self._options["stream_id"], batchId))

    def abort(self, messages: list[spark_source.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Abort: nothing becomes visible."""
        with self._open(self._options) as lake:
            for one in _stored(messages):
                Append(lake.session, one.begun).abort()


@dataclass
class _StreamTask(spark_source.WriterCommitMessage):
    """The append that a task has begun and written; None without rows."""

    begun: Begun | None
    files: tuple[Written, ...]


def _stored(messages: Iterable[spark_source.WriterCommitMessage | None]) -> Iterator[Any]:
    return (one for one in messages if isinstance(one, _StreamTask) and one.begun is not None)
