"""Tables of a lake as a Spark data source: ``spark.read.format("lakehouse")`` and ``df.write.format("lakehouse")``.

For ad-hoc reads and for sinks. `Table.scan().to_spark()` is faster: Spark's Python sources cannot leave out columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import datasource as spark_source
from pyspark.sql.types import StructType

from lakehouse.core.interval import Interval
from lakehouse.core.operation import Begun
from lakehouse.core.plan import ReadGroup, ReadPlan, plan_read
from lakehouse.core.predicate import And, Compare, In, IsNull, Predicate, Unknown
from lakehouse.core.segment import Segment
from lakehouse.engine import Query, WriteTarget, Written
from lakehouse.engine.spark import to_spark_type
from lakehouse.errors import InvalidInput
from lakehouse.lake import Lake, connect
from lakehouse.operation import Append
from lakehouse.table import Table

_PARTITION_BYTES = 128 * 1024 * 1024


def register(spark: SparkSession) -> None:
    """Make the format ``lakehouse`` known to a Spark session, classic or Connect.

    Options: ``table`` (needed), ``catalog`` and ``warehouse`` (default as in `connect`), ``as_of`` and ``interval`` for
    reads, ``message`` for writes. Turns on the session's filter push-down for Python sources. Writing appends; use
    `Table.replace` to put rows in place of others.

    >>> lakehouse.register(spark)                                                         # doctest: +SKIP
    >>> spark.read.format("lakehouse").option("table", "flights").load().count()          # doctest: +SKIP
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")  # else Spark refuses a source that uses filters
    spark.dataSource.register(LakehouseSource)


def _open(options: Mapping[str, str]) -> tuple[Lake, Table]:
    name = options.get("table")
    if not name:
        raise InvalidInput('name the table, as in .option("table", "flights")', option="table")
    lake = connect(options.get("catalog"), options.get("warehouse"))
    return lake, lake.table(name)


class LakehouseSource(spark_source.DataSource):
    """The format ``lakehouse``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "lakehouse"

    def schema(self) -> StructType:
        """The table's columns."""
        lake, table = _open(self.options)
        with lake:
            return to_spark_type(table.schema)

    def reader(self, schema: StructType) -> _Reader:
        """A read of one version, fixed now."""
        lake, table = _open(self.options)
        with lake:
            return _Reader(dict(self.options), table.scan(as_of=self.options.get("as_of")).version)

    def writer(self, schema: StructType, overwrite: bool) -> _Writer:
        """An append, begun now."""
        if overwrite:
            raise InvalidInput(
                "this format appends; use Table.replace to put rows in place of others", mode="overwrite"
            )
        lake, table = _open(self.options)
        with lake:
            return _Writer(dict(self.options), table.begin_append().begun)


class _Part(spark_source.InputPartition):
    """Segments that one task reads, and what masks them."""

    def __init__(self, group: ReadGroup) -> None:
        self.group = group


class _Reader(spark_source.DataSourceReader):
    def __init__(self, options: dict[str, str], version: int) -> None:
        self._options = options
        self._version = version
        self._predicate: Predicate = And(())

    def pushFilters(self, filters: list[spark_source.Filter]) -> Iterable[spark_source.Filter]:  # noqa: N802
        """Use filters to leave out segments; Spark applies all of them to the rows."""
        self._predicate = And(tuple(_predicate(one) for one in filters))
        return filters

    def partitions(self) -> Sequence[spark_source.InputPartition]:
        """Segments packed into tasks of about 128 MiB."""
        lake, table = _open(self._options)
        text = self._options.get("interval")
        interval = None if text is None else Interval.of(text)
        with lake:
            segments, tombstones = lake.catalog.live(table.spec, self._version, interval)
            plan = plan_read(segments, tombstones, version=self._version, interval=interval, predicate=self._predicate)
            plan = lake.filters.narrowed(plan, table.spec, self._predicate)
        return [_Part(part) for group in plan.groups for part in _packed(group)]

    def read(self, partition: spark_source.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, by the in-process engine."""
        assert isinstance(partition, _Part)
        text = self._options.get("interval")
        interval = None if text is None else Interval.of(text)
        lake, table = _open(self._options)
        with lake:
            plan = ReadPlan(self._version, interval, (partition.group,))
            query = Query(plan, table.spec, lake.warehouse, verify=table.spec.verify)
            yield from lake.local_engine.read(query).reader()


def _packed(group: ReadGroup) -> Iterator[ReadGroup]:
    held: list[Segment] = []
    for segment in group.segments:
        if held and sum(one.bytes for one in held) + segment.bytes > _PARTITION_BYTES:
            yield ReadGroup(tuple(held), group.tombstones)
            held = []
        held.append(segment)
    if held:
        yield ReadGroup(tuple(held), group.tombstones)


def _predicate(pushed: spark_source.Filter) -> Predicate:
    """What pruning can use of a Spark filter."""
    column = ".".join(getattr(pushed, "attribute", ()))
    match pushed:
        case spark_source.EqualTo(value=value):
            return Compare(column, "=", value)
        case spark_source.GreaterThan(value=value):
            return Compare(column, ">", value)
        case spark_source.GreaterThanOrEqual(value=value):
            return Compare(column, ">=", value)
        case spark_source.LessThan(value=value):
            return Compare(column, "<", value)
        case spark_source.LessThanOrEqual(value=value):
            return Compare(column, "<=", value)
        case spark_source.In(value=values):
            return In(column, tuple(value for value in values if value is not None))
        case spark_source.IsNull():
            return IsNull(column)
        case spark_source.IsNotNull():
            return IsNull(column, negated=True)
        case _:
            return Unknown()


@dataclass
class _Task(spark_source.WriterCommitMessage):
    """Files that one task wrote, named relative to the operation's folder."""

    files: tuple[Written, ...]


class _Writer(spark_source.DataSourceArrowWriter):
    def __init__(self, options: dict[str, str], begun: Begun) -> None:
        self._options = options
        self._begun = begun

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Task:
        """Store one task's rows; an attempt has names of its own, so that a repeated one is no trouble."""
        first = next(iterator, None)
        if first is None:
            return _Task(())
        context = TaskContext.get()
        assert context is not None
        lake, _ = _open(self._options)
        with lake:
            spec = self._begun.table
            folder = lake.warehouse / spec.folder / self._begun.id
            rows = pa.RecordBatchReader.from_batches(first.schema, _chained(first, iterator))
            target = WriteTarget(spec, folder, self._begun.id, batch=context.taskAttemptId())
            return _Task(tuple(lake.local_engine.write(rows, target)))

    def commit(self, messages: list[spark_source.WriterCommitMessage | None]) -> None:
        """Make the files of winning attempts visible as one version."""
        lake, _ = _open(self._options)
        with lake, Append(lake, self._begun, message=self._options.get("message")) as op:
            op.take([file for one in messages if isinstance(one, _Task) for file in one.files])

    def abort(self, messages: list[spark_source.WriterCommitMessage | None]) -> None:
        """Give up: nothing becomes visible."""
        lake, _ = _open(self._options)
        with lake:
            Append(lake, self._begun).abort()


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
