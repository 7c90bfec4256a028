"""Scans: one plan, made from the catalog alone, run by either engine."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import pyarrow as pa

from lakehouse.arguments import Where
from lakehouse.core.condition_text import text_of
from lakehouse.core.html import html_table
from lakehouse.core.interval import Interval
from lakehouse.core.listing import Listing
from lakehouse.core.plan import ReadGroup, ReadPlan, plan_read
from lakehouse.core.predicate import Predicate
from lakehouse.core.pruned import Pruned, Reason, why_pruned
from lakehouse.core.segments import Segments
from lakehouse.core.sets import MatchSet
from lakehouse.core.spec import TableSpec
from lakehouse.core.summary import indexed_columns
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine import Query
from lakehouse.engine.duckdb import BATCH_ROWS
from lakehouse.engine.hidden import plan_parts, stored_columns_read
from lakehouse.engine.verifying import at_least
from lakehouse.errors import PartialRead, SegmentUnreadable
from lakehouse.extras import load
from lakehouse.faults import reach
from lakehouse.session.session import Session
from lakehouse.storage.footer import has_footer
from lakehouse.storage.verify import check_files, verified

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.dataset
    import pyspark.sql
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from lakehouse.predicate import ParsedPredicate

T = TypeVar("T")
_PLANS = 5
"""The most times that a read is planned again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scan will open. ``bytes`` are those of whole files; ``rows_estimate`` includes masked rows."""

    version: int
    segments: Segments
    tombstones: Listing[Tombstone]
    groups: tuple[ReadGroup, ...] = field(repr=False)

    @property
    def files(self) -> list[str]:
        """Paths of the files, relative to the warehouse."""
        return self.segments.paths

    @property
    def bytes(self) -> int:
        """Bytes of the files."""
        return self.segments.bytes

    @property
    def rows_estimate(self) -> int:
        """Rows of the files."""
        return self.segments.rows

    def to_arrow(self) -> pa.Table:
        """One row for each segment to open."""
        return self.segments.to_arrow()

    def _repr_html_(self) -> str:
        headings = ["segment", "start", "end", "rows", "bytes", "path"]
        rows = ([one.id, one.start, one.end, one.rows, one.bytes, one.path] for one in self.segments)
        return html_table(headings, rows, repr(self).strip("<>"), len(self.segments))

    def __repr__(self) -> str:
        return (
            f"<plan at version {self.version}: {len(self.segments)} segments, {self.rows_estimate} rows, "
            f"{self.bytes} bytes, {len(self.tombstones)} tombstones>"
        )


def planned_read(
    session: Session, spec: TableSpec, version: int, where: ParsedPredicate | None, interval: Interval | None = None
) -> ReadPlan:
    """What a read at a version has to open, from the catalog alone."""
    within, is_empty = _time_read(spec, where, interval)
    if is_empty:
        return ReadPlan(version, interval, ())
    return plan_at(session, spec, version, None if where is None else where.tree, within)


def plan_at(
    session: Session, spec: TableSpec, version: int, predicate: Predicate | None, within: Interval | None = None
) -> ReadPlan:
    """The only way from a version to the files of a read, pruned by a predicate and an interval."""
    session.plan_counts.count(spec, within)
    erasure = session.drop_erased()
    segments, tombstones = session.catalog.live(spec, version, within)
    plan = plan_read(segments, tombstones, version=version, interval=within, predicate=predicate)
    return session.index_cache.narrowed(plan if erasure is None else replace(plan, erasure=erasure), spec, predicate)


def _time_read(
    spec: TableSpec, where: ParsedPredicate | None, interval: Interval | None
) -> tuple[Interval | None, bool]:
    """The interval of a read (None: all time), and whether filter and interval exclude each other."""
    implied = None if where is None else where.interval(spec.time)
    if implied is None or interval is None:
        return implied or interval, False
    within = implied.intersect(interval)
    return within, within is None


def sets_of(session: Session, plan: ReadPlan) -> dict[int, MatchSet]:
    """The sets of a plan's row and key tombstones."""
    wanted = {one.id: one for group in plan.groups for one in group.tombstones if one.kind != "interval"}
    return session.catalog.sets(wanted.values()) if wanted else {}


def is_replaced(session: Session, error: SegmentUnreadable) -> bool:
    """Whether the catalog no longer names an unreadable file, because an erasure replaced it.

    A read planned before the erasure then plans again. Cost: a pass over the catalog's files, only after a failure.
    """
    path, warehouse = str(error.facts.get("path", "")), session.warehouse
    stored = path.removeprefix(f"{warehouse.root}/").removeprefix(f"{warehouse.address}/")
    return bool(path) and not session.catalog.checks().names(stored)


class Scan:
    """Rows of a table at one version. Lazy: planned when first needed; files are opened when rows are read.

    Examples
    --------
    >>> scan = flights.scan(columns=["carrier"], where="delay > 10", interval="2013-01")
    >>> len(scan.plan().segments), scan.count()
    (1, 1)
    """

    def __init__(
        self,
        session: Session,
        spec: TableSpec,
        version: int,
        *,
        columns: tuple[str, ...] | None,
        where: Where | ParsedPredicate | None,
        interval: Interval | None,
        best_effort: bool,
        held_version: int,
        row_ids: bool = False,
    ) -> None:
        self._session = session
        self._spec = spec
        self._columns = columns
        self._where = None if where is None else _parsed(where, spec.schema)
        self._interval = interval
        self._best_effort = best_effort
        self._row_ids = row_ids
        self.held_version = held_version
        self._let_go: Callable[[], object] | None = None
        self._asked: Query | None = None
        self._is_prepared = False
        self.version = version
        self.missing: list[str] = []
        """Paths that a ``best_effort`` read has left out."""

    @property
    def spec(self) -> TableSpec:
        """The definition with which the rows are read."""
        return self._spec

    @cached_property
    def _planned(self) -> ReadPlan:
        return planned_read(self._session, self._spec, self.version, self._where, self._interval)

    def prepare(self) -> None:
        """Plan now rather than when the plan is first needed: the next read is of this plan, whatever comes between."""
        _ = self._planned
        self._is_prepared = True

    def _renew(self) -> None:
        """Plan again if an erasure came after the plan: the store may still have what it replaced.

        Free for the first read of a new plan; else, of a store, a small read of the catalog.
        """
        is_prepared, self._is_prepared = self._is_prepared, False
        planned: ReadPlan | None = self.__dict__.get("_planned")
        if is_prepared or planned is None or planned.erasure is None:
            return
        if self._session.drop_erased() != planned.erasure:
            del self._planned

    def plan(self) -> Plan:
        """What will be opened, from the catalog alone. Cost: the requested chunks, not the table or its history."""
        planned = self._planned
        tombstones = {one.id: one for group in planned.groups for one in group.tombstones}
        return Plan(
            planned.version,
            planned.segments,
            Listing(tombstones[one] for one in sorted(tombstones)),
            planned.groups,
        )

    @property
    def planned_bytes(self) -> int:
        """Bytes of the files that will be opened, without the rest of the plan."""
        return sum(Segments.of(group.segments).bytes for group in self._planned.groups)

    def pruned(self) -> list[Pruned]:
        """Live segments that will not be opened, by reason. Cost: the table's segments at the version, not its history.

        Each live segment is in the plan, or here once.
        """
        within, is_empty = _time_read(self._spec, self._where, self._interval)
        segments, tombstones = self._session.catalog.live(self._spec, self.version)
        if is_empty:
            return [Pruned(Reason.TIME, segments, str(self._interval))] if len(segments) else []
        predicate = None if self._where is None else self._where.tree
        found = why_pruned(segments, tombstones, interval=within, predicate=predicate)
        explained = np.concatenate([self._planned.segments.ids, *(one.segments.ids for one in found)])
        if len(explained) < len(segments) and predicate is not None:
            by_index = segments.where(~np.isin(segments.ids, explained))
            found.append(Pruned(Reason.INDEX, by_index, text_of(predicate), indexed_columns(self._spec)))
        return found

    def _query(self, dialect: str, *, filtered: bool = True) -> Query:
        plan = self._planned
        reach("read.planned")
        query = Query(
            plan=plan if filtered else replace(plan, interval=None),
            spec=self._spec,
            warehouse=self._session.warehouse,
            columns=self._columns,
            where=self._where.sql(dialect) if filtered and self._where is not None else None,
            row_ids=self._row_ids,
            sets=sets_of(self._session, plan),
            verify=self._spec.verify,
            is_open=not filtered,
        )
        self._asked = self._readable(query) if self._best_effort else query
        return self._asked

    def _readable(self, query: Query) -> Query:
        """The query without segments whose file is missing, short, malformed, or whose pages changed.

        The pages that the query needs are compared whatever `verify` says, so that the rest cannot fail while it runs.
        """
        plan = query.plan
        columns = stored_columns_read(query, plan_parts(query))
        files, _ = check_files(query.warehouse, plan.segments, at_least(query.verify, "pages"), columns, query)
        sound = {stored for stored, path in files.items() if has_footer(path)}
        self.missing = sorted(segment.path for segment in plan.segments if segment.path not in sound)
        if not self.missing:
            return query
        warnings.warn(
            PartialRead(f"{len(self.missing)} data files are missing or damaged and were left out: {self.missing[:3]}"),
            stacklevel=5,
        )
        groups = [
            ReadGroup(tuple(one for one in group.segments if one.path in sound), group.tombstones)
            for group in plan.groups
        ]
        left = replace(plan, groups=tuple(group for group in groups if group.segments))
        return replace(query, plan=left)

    def _read(self, engine: Any, ask: Callable[[Any], T], *, filtered: bool = True) -> T:
        """Read the rows; plan again if an erasure, with a collection without grace, removed files of this plan."""
        self._renew()
        for _ in range(_PLANS):
            try:
                return ask(engine.read(self._query(engine.dialect, filtered=filtered)))
            except SegmentUnreadable as error:
                if self._session.warehouse.heal(str(error.facts.get("path", ""))):
                    continue
                if not is_replaced(self._session, error):
                    raise
                del self._planned
        return ask(engine.read(self._query(engine.dialect, filtered=filtered)))

    def _local(self, ask: Callable[[Any], T], *, filtered: bool = True) -> T:
        return self._read(self._session.local_engine, ask, filtered=filtered)

    def linger(self) -> None:
        """Protect results that may be read after this scan is gone, for as long as `connect` says."""
        self._session.pins.linger(self.held_version)
        cache = self._session.warehouse.cache
        if cache is not None and self._asked is not None:
            paths = [path for group in self._asked.plan.groups for path in Segments.of(group.segments).paths]
            cache.linger(paths, self._session.pins.seconds)

    def hold(self) -> None:
        """Protect the version from expiry for as long as this scan lives, or until `release`."""
        self._let_go = self._session.pins.hold(self, self._spec, self.held_version)

    def release(self) -> None:
        """Let the version expire now. Lazy results of the scan must have been read before."""
        if self._let_go is not None:
            self._let_go()

    def to_spark(self) -> pyspark.sql.DataFrame:
        """A lazy Spark DataFrame. Raises `SegmentUnreadable` if a file is missing or short, `EngineUnavailable`."""
        frame = self.frame()
        self.linger()
        return frame

    def frame(self) -> pyspark.sql.DataFrame:
        """The same, for callers that keep the scan until the rows are read."""
        frame: pyspark.sql.DataFrame = self._read(self._session.spark_engine, lambda frame: frame)
        return frame

    def unfiltered_frame(self) -> pyspark.sql.DataFrame:
        """The rows of the plan's segments as a Spark frame, for callers that apply ``where`` and choose columns.

        A condition in other words than the caller's would be tried twice on each row, and Spark takes longer to choose
        columns than to find the files. The scan must live until the rows are read.
        """
        frame: pyspark.sql.DataFrame = self._read(self._session.spark_engine, lambda frame: frame, filtered=False)
        return frame

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, read in process."""
        table: pa.Table = self._local(lambda rows: rows.to_arrow())
        return table

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow batches, read in process in bounded memory."""
        reader: pa.RecordBatchReader = self._local(lambda rows: rows.reader())
        return pa.RecordBatchReader.from_batches(reader.schema, self._kept_for(reader))

    def _kept_for(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """The stream; it keeps this scan, and so its version, alive."""
        yield from reader

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        load("pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    @overload
    def to_polars(self, *, lazy: Literal[False] = False) -> pl.DataFrame: ...

    @overload
    def to_polars(self, *, lazy: Literal[True]) -> pl.LazyFrame: ...

    def to_polars(self, *, lazy: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """The rows as a polars frame; with ``lazy`` as a LazyFrame, which reads only what is then asked of it.

        Of a lazy frame's filters, those that a filter of a scan can say exactly also prune files by the catalog:
        comparisons of columns with values, `is_in`, `is_between`, `is_null`, and what `&`, `|` and `~` make of them.
        polars applies all of them again. Its result does not depend on what was pushed. The version is protected from
        expiry as long as the frame lives.

        >>> import polars as pl
        >>> frame = flights.scan().to_polars(lazy=True)
        >>> frame.filter(pl.col("carrier") == "UA").select("id", "delay").collect().rows()
        [(1, 3), (3, 0)]
        """
        from lakehouse.reading.lazy import lazy_frame  # noqa: PLC0415 - late

        polars = load("polars")  # costs a second of start-up that nobody else should pay
        if lazy:
            return lazy_frame(self._schema, self._narrowed, f"{self._spec.name} at version {self.version}")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow())
        return frame

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([self._spec.schema.field(name) for name in self._columns or self._spec.schema.names])

    def _narrowed(self, columns: tuple[str, ...], where: str | None, batch_rows: int | None) -> pa.RecordBatchReader:
        """Some columns of the rows that pass a filter too. The caller keeps this scan, which protects the version."""
        own = None if self._where is None else self._where.text
        scan = Scan(
            self._session,
            self._spec,
            self.version,
            columns=columns,
            where=own if where is None else where if own is None else f"({own}) AND {where}",
            interval=self._interval,
            best_effort=self._best_effort,
            held_version=self.held_version,
        )
        reader: pa.RecordBatchReader = scan._local(lambda rows: rows.reader(batch_rows or BATCH_ROWS))
        return reader

    def to_dataset(self) -> pyarrow.dataset.Dataset:
        """The rows as a `pyarrow.dataset.Dataset` over the table's files, for engines that scan such datasets.

        Arrow prunes files by what the catalog knows of the time, cluster and primary key columns. Only a scan of whole
        files can be one. Raises `NotWholeFiles` if it has a ``where``, or if tombstones or the interval hide some rows
        of a file; `to_reader` takes every scan. Cost: the plan; no file is opened. The version is protected for
        ``pin_seconds``, and as long as the dataset lives.

        >>> import pyarrow.dataset as pads
        >>> flights.scan().to_dataset().to_table(filter=pads.field("carrier") == "DL")["delay"].to_pylist()
        [30]
        """
        datasets = load("lakehouse.reading.dataset")  # Arrow's loads pandas where it is, which nobody else should pay
        dataset = self._read(datasets.Datasets(self._schema), lambda found: found)
        self.linger()
        self._session.pins.hold(dataset, self._spec, self.held_version)
        return dataset

    def to_duckdb(self, connection: DuckDBPyConnection | None = None) -> DuckDBPyRelation:
        """The rows as a lazy DuckDB relation, on ``connection`` or on one of its own.

        It belongs to DuckDB: if a file disappears after this call, the relation fails with DuckDB's error, which names
        it.
        """
        found = self.relation(connection)
        self.linger()
        return found

    def relation(self, connection: DuckDBPyConnection | None = None) -> DuckDBPyRelation:
        """The same, for callers that keep the scan until the rows are read."""
        found: DuckDBPyRelation = self._local(lambda rows: rows.relation(connection))
        return found

    def check_readable(self) -> None:
        """Raise `SegmentUnreadable` naming the first file of the plan that is missing, short or without a footer."""
        files = verified(self._session.warehouse, self._planned.segments, holder=self)
        for path in files.values():
            if not has_footer(path):
                raise SegmentUnreadable("data file is malformed; restore it from a copy", path=str(path))

    def unfiltered_sql(self, *, is_joined: bool) -> str:
        """The rows of the plan's segments as a query in DuckDB's SQL, for callers that apply ``where`` themselves.

        DuckDB would count a condition in both twice in its estimate. The scan must live until the query was run.
        """
        return self._local(lambda rows: str(rows.sql(is_joined=is_joined)), filtered=False)

    def count(self) -> int:
        """The number of rows. Segments that nothing masks or filters are counted from the catalog."""
        return int(self._local(lambda rows: rows.count()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<scan of {self._spec.name} at version {self.version}>"


def _parsed(where: Where | ParsedPredicate, schema: pa.Schema) -> ParsedPredicate:
    from lakehouse.predicate import ParsedPredicate, parse  # noqa: PLC0415 - late

    return where if isinstance(where, ParsedPredicate) else parse(where, schema)
