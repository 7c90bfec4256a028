"""Tables of a lake as a Spark data source: ``spark.read.format("lakehouse")`` and ``df.write.format("lakehouse")``.

For ad-hoc reads and for sinks. `Table.scan().to_spark()` is faster: Spark's Python sources cannot leave out columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import datasource as spark_source
from pyspark.sql.types import StructType

from lakehouse.arguments import Fit, read_fit
from lakehouse.catalog.store.opening import is_missing
from lakehouse.core.interval import Interval
from lakehouse.core.operation import Begun
from lakehouse.core.plan import ReadGroup, ReadPlan
from lakehouse.core.predicate import And, Compare, In, IsNull, Predicate, Unknown
from lakehouse.core.spec import TableSpec
from lakehouse.engine import Query, Written
from lakehouse.engine.spark import to_spark_type
from lakehouse.errors import InvalidAddress, InvalidArgument, WriteConflict
from lakehouse.extras import load
from lakehouse.lake import Lake, connect, open_lakes
from lakehouse.operations.append import Append
from lakehouse.operations.operation import commit_together
from lakehouse.reading.feed_columns import changes_schema
from lakehouse.reading.scan import plan_at, sets_of
from lakehouse.schema import SchemaChange, altered, from_spark_schema, merging
from lakehouse.session.addresses import addresses
from lakehouse.storage.work import delete_others
from lakehouse.streaming.tasks import ASKING, STORING, chained, packed, read_flag, require_spark, with_lists, written
from lakehouse.table.table import Table

if TYPE_CHECKING:  # older versions of Spark lack what these two are made of
    from lakehouse.streaming.reader import StreamReader
    from lakehouse.streaming.writer import StreamWriter

_SQLITE = "sqlite:///"
LEASE_SECONDS = 3600.0
"""How long a write may continue while none of its tasks runs."""
_STORAGE = "storage."
"""What the names of a store's options begin with."""


def register(spark: SparkSession, lake: Lake | None = None) -> None:
    """Register the format ``lakehouse`` with a Spark session, classic or Connect.

    Its reads and writes are of ``lake``; by default of the lake that this process has open, if that is one. Without one
    they are of the lake that their options name, or that `connect` would open, which must be there.

    Options: ``table`` (needed), ``catalog`` and ``warehouse``, ``as_of`` and ``interval`` for
    reads, ``message`` and ``schema`` (that of `Table.append`) for writes; of an object store ``storage.region`` and
    other ``storage_options`` of `connect`, ``cache_dir`` and ``cache_bytes``. Spark may show options: leave
    credentials to the environment of driver and workers. What a query reads is protected for an hour
    after planning, and by each task while it reads; what a write has stored, for an hour (``lease_seconds``) after a
    task last wrote. Turns on the session's filter push-down for Python sources. Writing appends; use `Table.replace` to
    replace rows.

    ``spark.read.format("lakehouse").option("table", "flights").load()`` is then a frame of the table's rows.
    """
    spark.conf.set(
        "spark.sql.python.filterPushdown.enabled", "true"
    )  # otherwise Spark refuses a source that uses filters
    spark.dataSource.register(source_of(lake))


def source_of(lake: Lake | None = None) -> type[LakehouseSource]:
    """The format, for a lake, or the one that is open: Spark plans in a process of its own, which knows neither."""
    found = {(one.catalog.address, str(one.warehouse)) for one in ([lake] if lake is not None else open_lakes())}
    if len(found) != 1:
        return LakehouseSource

    class Connected(LakehouseSource):
        """The format, with the addresses of a lake."""

        addresses = _absolute(*found.pop())

    return Connected


def _absolute(catalog: str, warehouse: str) -> tuple[str, str]:
    """Addresses that name the same from every folder."""
    path = catalog.removeprefix(_SQLITE)
    return (
        catalog if path == catalog else f"{_SQLITE}{Path(path).resolve()}",
        warehouse if "://" in warehouse else str(Path(warehouse).resolve()),
    )


def _open(options: Mapping[str, str], **kept: Any) -> tuple[Lake, Table]:
    name = options.get("table")
    if not name:
        raise InvalidArgument('name the table, as in .option("table", "flights")', option="table")
    _require_lake(options)
    lake = connect(options.get("catalog"), options.get("warehouse"), **_store(options), **kept)
    return lake, lake.table(name)


def _require_lake(options: Mapping[str, str]) -> None:
    """Raise `InvalidAddress` where `connect` would make a lake: it would be empty, and not the one meant."""
    catalog, _ = addresses(options.get("catalog"), options.get("warehouse"))
    if is_missing(catalog):
        raise InvalidAddress(
            "there is no lake; connect to yours before lakehouse.register(spark), or pass it, as in "
            'register(spark, lake), or name it by .option("catalog", ...) and .option("warehouse", ...)',
            catalog=catalog,
            folder=Path.cwd(),
        )


def _store(options: Mapping[str, str]) -> dict[str, Any]:
    """What `connect` takes of an object store; without these options the environment says it."""
    storage = {name[len(_STORAGE) :]: value for name, value in options.items() if name.lower().startswith(_STORAGE)}
    cache = {name: options[name] for name in ("cache_dir", "cache_bytes") if name in options}
    return {"storage_options": storage or None, **cache}


def _open_to_write(options: Mapping[str, str]) -> Lake:
    """A lake whose leases last until the next task begins, because nothing renews them between tasks."""
    lake, _ = _open(options, lease_seconds=float(options.get("lease_seconds", LEASE_SECONDS)))
    return lake


class LakehouseSource(spark_source.DataSource):
    """The format ``lakehouse``. ``addresses`` are those of catalog and warehouse, where options name neither."""

    addresses: ClassVar[tuple[str, str] | None] = None

    def __init__(self, options: dict[str, str]) -> None:
        if self.addresses is not None and not {"catalog", "warehouse"} & {name.lower() for name in options}:
            options["catalog"], options["warehouse"] = self.addresses
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "lakehouse"

    def schema(self) -> StructType:
        """The table's columns; of a stream of changes also what became of each row."""
        lake, table = _open(self.options)
        with lake:
            return to_spark_type(changes_schema(table.schema) if read_flag(self.options, "changes") else table.schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802
        """A stream of the table's rows or changes. Raises `EngineUnavailable` before Spark 4.2."""
        require_spark(pyspark.__version__, ASKING, "a table as a streaming source")
        made: StreamReader = load("lakehouse.streaming.reader").StreamReader(self.options, schema, _open)
        return made

    def reader(self, schema: StructType) -> _Reader:
        """A read of one version, fixed and protected now for the tasks to come."""
        if read_flag(self.options, "changes"):
            raise InvalidArgument("changes are for streams; use Table.changes for those between two versions")
        lake, table = _open(self.options)
        with lake:
            scan = table.scan(as_of=self.options.get("as_of"), interval=self.options.get("interval"))
            lake.session.pins.leave(table.spec, scan.held_version)
            return _Reader(dict(self.options), table.spec, scan.version, scan.held_version)

    def writer(self, schema: StructType, overwrite: bool) -> _Writer:
        """An append, begun now."""
        if overwrite:
            raise InvalidArgument(
                "this format appends; use Table.replace to put rows in place of others", mode="overwrite"
            )
        with _open_to_write(self.options) as lake:
            table = lake.table(self.options["table"])
            fit = read_fit(self.options.get("schema", "strict"))
            changes = merging(table.spec, from_spark_schema(schema)) if fit == "merge" else []
            made = altered(table.spec, changes) if changes else None  # what cannot be is refused before it begins
            begun = table.begin_append().begun
            lake.catalog.renew([begun])
            if made is not None:  # tasks write for the columns that the commit will make
                begun = replace(begun, table=made)
            return _Writer(dict(self.options), begun, fit, changes)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        """Appends of a stream's batches. Spark says which batch, not of which stream: ``stream_id`` does.

        Raises `EngineUnavailable` before Spark 4.1.
        """
        require_spark(pyspark.__version__, STORING, "a stream's writeStream into this format")
        if not self.options.get("stream_id"):
            raise InvalidArgument(
                'Spark does not tell this format whose batches it writes; name the stream, as in .option("stream_id", '
                '"orders"), by a name that no other stream into the table has, or use lakehouse.streaming.write',
                option="stream_id",
            )
        with _open_to_write(self.options) as lake:
            spec = lake.table(self.options["table"]).spec
            fit = read_fit(self.options.get("schema", "strict"))
            made: StreamWriter = load("lakehouse.streaming.writer").StreamWriter(
                self.options, spec, fit, _open_to_write
            )
            return made


class _Part(spark_source.InputPartition):
    """Segments that one task reads, what masks them, and the newest erasure that their plan knew."""

    def __init__(self, group: ReadGroup, erasure: int | None) -> None:
        self.group = group
        self.erasure = erasure


class _Reader(spark_source.DataSourceReader):
    def __init__(self, options: dict[str, str], spec: TableSpec, version: int, held_version: int) -> None:
        self._options = options
        self._spec = spec
        self._version = version
        self._held_version = held_version
        self._interval = Interval.of(options["interval"]) if "interval" in options else None
        self._predicate: Predicate = And(())

    def pushFilters(self, filters: list[spark_source.Filter]) -> Iterable[spark_source.Filter]:  # noqa: N802
        """Use filters to leave out segments; Spark applies all of them to the rows."""
        self._predicate = And(tuple(predicate_of(one, self._spec.schema) for one in filters))
        return filters

    def partitions(self) -> Sequence[spark_source.InputPartition]:
        """Segments packed into tasks of about 128 MiB."""
        lake, _ = _open(self._options)
        with lake:
            plan = plan_at(lake.session, self._spec, self._version, self._predicate, self._interval)
        return [
            _Part(ReadGroup(tuple(some), group.tombstones), plan.erasure)
            for group in plan.groups
            for some in packed(group.segments, lambda segment: segment.bytes)
        ]

    def read(self, partition: spark_source.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, by the in-process engine."""
        if not isinstance(partition, _Part):
            return  # Spark's own, if there is nothing to read
        lake, _ = _open(self._options)
        with lake:
            lake.session.pins.hold(self, self._spec, self._held_version)
            lake.session.drop_erased()  # by what the catalog names: of itself, a worker would drop every copy
            plan = ReadPlan(self._version, self._interval, (partition.group,), partition.erasure)
            spec = with_lists(self._spec)
            query = Query(plan, spec, lake.session.warehouse, sets=sets_of(lake.session, plan), verify=spec.verify)
            yield from lake.session.local_engine.read(query).reader()


def predicate_of(pushed: spark_source.Filter, schema: pa.Schema) -> Predicate:
    """The part of a Spark filter that pruning can use; anything else is assumed to pass every row."""
    path: tuple[str, ...] = getattr(pushed, "attribute", ())
    if len(path) != 1 or path[0] not in schema.names:
        return Unknown()
    column = path[0]
    kind = schema.field(column).type
    match pushed:
        case spark_source.EqualTo(value=value) if _is_of(value, kind):
            return Compare(column, "=", value)
        case spark_source.GreaterThan(value=value) if _is_of(value, kind):
            return Compare(column, ">", value)
        case spark_source.GreaterThanOrEqual(value=value) if _is_of(value, kind):
            return Compare(column, ">=", value)
        case spark_source.LessThan(value=value) if _is_of(value, kind):
            return Compare(column, "<", value)
        case spark_source.LessThanOrEqual(value=value) if _is_of(value, kind):
            return Compare(column, "<=", value)
        case spark_source.In(value=values) if all(one is None or _is_of(one, kind) for one in values):
            return In(column, tuple(one for one in values if one is not None))
        case spark_source.IsNull():
            return IsNull(column)
        case spark_source.IsNotNull():
            return IsNull(column, negated=True)
        case _:
            return Unknown()


def _is_of(value: Any, kind: pa.DataType) -> bool:
    """Whether a column can hold a value unchanged; NaN does not count, because bounds do not cover it."""
    if isinstance(value, float) and math.isnan(value):
        return False
    try:
        held = pa.scalar(value, kind).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return value is not None and type(held) is type(value) and bool(held == value)


@dataclass
class _Task(spark_source.WriterCommitMessage):
    """Files that one task wrote, named relative to the operation's folder."""

    files: tuple[Written, ...]
    is_repeated: bool = False


class _Writer(spark_source.DataSourceArrowWriter):
    def __init__(self, options: dict[str, str], begun: Begun, fit: Fit, changes: Sequence[SchemaChange]) -> None:
        self._options = options
        self._begun = begun
        self._is_lenient = fit != "strict"
        self._changes = changes

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Task:
        """Store one task's rows; each attempt uses its own file names, so a repeated one does no harm."""
        first = next(iterator, None)
        if first is None:
            return _Task(())
        context = TaskContext.get()
        assert context is not None
        with _open_to_write(self._options) as lake:
            rows = chained(first, iterator)
            files = written(lake, self._begun, rows, batch=context.taskAttemptId(), is_lenient=self._is_lenient)
            return _Task(files, context.attemptNumber() > 0)

    def commit(self, messages: list[spark_source.WriterCommitMessage | None]) -> None:
        """Make the files of winning attempts visible as one version; those of others are deleted."""
        files = [file for one in messages if isinstance(one, _Task) for file in one.files]
        with (
            _open_to_write(self._options) as lake,
            Append(lake.session, self._begun, message=self._options.get("message")) as op,
        ):
            folder = f"{self._begun.table.folder}/{self._begun.id}"
            # Whether the session speculates, or ran a stage again, is not told here.
            repeated = any(one.is_repeated for one in messages if isinstance(one, _Task))
            kept = {f"{folder}/{file.name}" for file in files}
            delete_others(lake.session.warehouse, folder, kept, is_repeated=repeated)
            op.take(files)
            if self._changes:
                self._commit_altered(lake, op)

    def _commit_altered(self, lake: Lake, op: Append) -> None:
        """Commit with the columns that the rows were written for, unless others altered the table meanwhile."""
        with lake.table(self._options["table"]).begin_alter(self._changes) as alter:
            if alter.begun.table.schema_number + 1 != self._begun.table.schema_number:
                raise WriteConflict(
                    "another operation altered the table while rows were written for columns to make; write them again",
                    table=self._begun.table.name,
                    operation=op.id,
                )
            commit_together(lake.session, [alter, op], self._options.get("message"), None)

    def abort(self, messages: list[spark_source.WriterCommitMessage | None]) -> None:
        """Abort: nothing becomes visible."""
        with _open_to_write(self._options) as lake:
            Append(lake.session, self._begun).abort()
