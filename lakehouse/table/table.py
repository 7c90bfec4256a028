"""A table: its definition, reads and inspection; `writes` has its writes, `alters` the changes of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, overload
from warnings import warn

import pyarrow as pa

from lakehouse.arguments import Where, read_consumer, read_limit, read_seconds, read_wait, unknown_column
from lakehouse.core.chunk import Chunk
from lakehouse.core.commit import Commit
from lakehouse.core.consumer import LEASE_SECONDS
from lakehouse.core.diff import ColumnChange, Diff
from lakehouse.core.feed import Position
from lakehouse.core.history import Touch
from lakehouse.core.interval import ALL_TIME, AsOf, Interval, IntervalLike
from lakehouse.core.key_frame import ChainLink, KeyFrame
from lakehouse.core.listing import Listing
from lakehouse.core.lock import ChunkLock
from lakehouse.core.policy import Policy
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec
from lakehouse.core.summary import ColumnListing
from lakehouse.core.task import Amplification
from lakehouse.core.timeline import Timeline, timeline
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine.frames import first_rows
from lakehouse.errors import InvalidArgument, VersionNotFound
from lakehouse.reading.again import again_if_forgotten
from lakehouse.reading.row_count import MOST_ROWS, count_visible
from lakehouse.reading.scan import Scan
from lakehouse.reading.statistics import read_statistics
from lakehouse.schema import seen_at
from lakehouse.schema.difference import column_changes
from lakehouse.table.alters import Alters
from lakehouse.table.shown import columns_html

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyspark.sql

    from lakehouse.predicate import ParsedPredicate
    from lakehouse.reading.changes import Changes
    from lakehouse.reading.feed_window import Feed
    from lakehouse.reading.follow import Batch, Place

SchemaOf = Literal["then", "current"]


class Table(Alters):
    """One table of a lake.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, lakehouse
    >>> folder = tempfile.mkdtemp()
    >>> lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse")
    >>> events = lake.create_table("events", "at TIMESTAMP, client BIGINT", time="at", cluster_by=["client"])
    >>> rows = pa.table({"at": pa.array([0, 1], pa.timestamp("us", tz="UTC")), "client": [12, 77]})
    >>> events.append(rows).rows_added
    2
    >>> dropped = events.replace(None, "1970-01-01", keys={"client": 12})
    >>> events.scan().to_arrow()["client"].to_pylist(), events.scan(as_of=dropped.version - 2).count()
    ([77], 2)
    >>> lake.close()
    """

    # Definition

    @property
    def spec(self) -> TableSpec:
        """The complete definition."""
        return self._spec

    @property
    def schema(self) -> pa.Schema:
        """Columns and types; each field's metadata holds its Parquet field id."""
        return self._spec.schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order.

        >>> flights.columns
        ['at', 'id', 'carrier', 'delay']
        """
        return list(self._spec.schema.names)

    def spec_at(self, as_of: AsOf | None) -> TableSpec:
        """The definition that the table had at a version, tag or time (None: as far as it is known here)."""
        return self._spec if as_of is None or not self._spec.schema_number else self._point(as_of).spec

    @property
    def time(self) -> str | None:
        """Name of the time column; None for a timeless table."""
        return self._spec.time or None

    @property
    def grain(self) -> str:
        """Length of a time chunk: hour, day, week, month or year; ``all`` for a timeless table."""
        return self._spec.grain.value

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of the primary key's columns."""
        return self._spec.primary_key

    @property
    def cluster_by(self) -> dict[str, int]:
        """Cluster columns with their number of hash buckets (0: not hashed)."""
        return dict(self._spec.cluster_by)

    @property
    def properties(self) -> dict[str, str]:
        """Properties, as given at creation or since."""
        return dict(self._spec.properties)

    @property
    def policy(self) -> Policy:
        """The maintenance policy: the table's properties, and defaults for the rest."""
        return Policy.of(self._spec.properties)

    def amplification(self) -> Amplification:
        """Bytes that users have written to the table, and bytes that maintenance has rewritten."""
        known = self._session.catalog.tasks().upkeep(self._spec.id)
        head = self._session.catalog.head()
        since = self._session.catalog.tasks().written(self._spec.id, known.planned_version, head)
        return Amplification(known.appended_bytes + since.appended_bytes, known.rewritten_bytes + since.rewritten_bytes)

    @property
    def version(self) -> int:
        """The newest version of the table."""
        return self._session.catalog.newest_version(self._spec.id, self._created_version)

    def version_at(self, as_of: AsOf | None = None) -> int:
        """The table's newest version at or before a version, tag or time. Raises `VersionNotFound`."""
        return self._at(as_of)

    # Reads

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        interval: IntervalLike | None = None,
        as_of: AsOf | None = None,
        best_effort: bool = False,
        schema: SchemaOf = "then",
    ) -> Scan:
        """Rows at a version, which is fixed now.

        ``where`` is a SQL predicate, also used to prune files. ``as_of``: a version, tag or time. ``best_effort``
        leaves out files that are missing, short, or damaged where the read needs them, with a `PartialRead` warning,
        instead of failing. ``schema``: ``then`` for the columns that the table had at the version, ``current`` for
        those that it has now.
        """

        def held() -> Scan:
            scan = self.unheld_scan(
                columns=columns, where=where, interval=interval, as_of=as_of, best_effort=best_effort, schema=schema
            )
            scan.hold()
            return scan

        return again_if_forgotten(held, as_of)

    def unheld_scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: Where | ParsedPredicate | None = None,
        interval: IntervalLike | None = None,
        as_of: AsOf | None = None,
        best_effort: bool = False,
        row_ids: bool = False,
        schema: SchemaOf = "then",
    ) -> Scan:
        """The same for callers that call `Scan.hold` before they read: until then the version may expire.

        With ``row_ids`` rows have their ``_row_id`` as the last column. A ``where`` that is parsed was so over the
        columns of that version.
        """
        if schema not in ("then", "current"):
            raise InvalidArgument("schema is then, the version's own columns, or current", schema=repr(schema)[:100])
        version, held_version, spec = self._point(as_of)
        if schema == "current" and as_of is not None:
            spec = seen_at(self._point(None).spec, spec)
        if columns is not None:
            columns = (columns,) if isinstance(columns, str) else tuple(columns)
            unknown = [name for name in columns if name not in spec.schema.names]
            if unknown or not columns:
                raise unknown_column(
                    "no such column; choose among the table's", unknown, spec.schema.names, table=self.name
                )
        return Scan(
            self._session,
            spec,
            version,
            columns=columns,
            where=where,
            interval=None if interval is None else self._spec.interval_of(interval),
            best_effort=best_effort,
            held_version=held_version,
            row_ids=row_ids,
        )

    def read(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        interval: IntervalLike | None = None,
        as_of: AsOf | None = None,
        best_effort: bool = False,
    ) -> pyspark.sql.DataFrame:
        """``scan(...)`` as a lazy Spark DataFrame. Raises `EngineUnavailable` without Java or Spark."""
        return self.scan(
            columns=columns, where=where, interval=interval, as_of=as_of, best_effort=best_effort
        ).to_spark()

    def head(self, rows: int = 5, *, columns: Sequence[str] | None = None, as_of: AsOf | None = None) -> pa.Table:
        """Some rows, as an Arrow table: the first of the oldest files, in no order. Reads no more than it returns.

        >>> flights.head(2).num_rows
        2
        """
        most = read_limit(rows, "rows") or 0
        with self.scan(columns=columns, as_of=as_of).to_reader() as reader:
            return first_rows(reader, most)

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table; `scan` reads some of them, or a version.

        >>> flights.to_arrow().num_rows
        3
        """
        return self.scan().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas frame."""
        return self.scan().to_pandas()

    @overload
    def to_polars(self, *, lazy: Literal[False] = False) -> pl.DataFrame: ...

    @overload
    def to_polars(self, *, lazy: Literal[True]) -> pl.LazyFrame: ...

    def to_polars(self, *, lazy: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """All rows as a polars frame; with ``lazy`` as a LazyFrame, which reads what is then asked of it."""
        scan = self.scan()
        return scan.to_polars(lazy=True) if lazy else scan.to_polars()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    def count(
        self, *, interval: IntervalLike | None = None, as_of: AsOf | None = None, most_rows: int = MOST_ROWS
    ) -> int | None:
        """How many rows are visible at a version; None if more than ``most_rows`` would have to be read to count them.

        ``scan(...).count()`` always counts. Cost: a plan; segments cut by tombstones or the interval are read.

        >>> before = flights.version
        >>> gone = flights.delete("carrier = 'UA'")
        >>> flights.count(), flights.count(as_of=before), flights.count(most_rows=0)
        (1, 3, None)
        """
        scan = self.scan(interval=interval, as_of=as_of)  # holds the version
        within = None if interval is None else self._spec.interval_of(interval)
        return count_visible(self._session, scan.spec, scan.version, within, most_rows=read_limit(most_rows) or 0)

    def changes(self, since: AsOf, until: AsOf | None = None) -> Changes:
        """Rows that the commits after ``since``, up to ``until`` (None: the newest), inserted, deleted and updated.

        Both are a version, tag or time. Raises `VersionNotFound` if the history between them has expired.
        """
        from lakehouse.reading.changes import Changes  # noqa: PLC0415 - late

        def held() -> Changes:
            last, (first, held_version, _) = self._point(until), self._point(since)
            found = Changes(self._session, last.spec, first, max(first, last.version))
            self._session.pins.hold(found, last.spec, held_version)
            self._session.catalog.check_complete(self._spec, found.since, found.until)
            return found

        return again_if_forgotten(held, until)

    def follow(
        self,
        *,
        since: AsOf | None = None,
        changes: bool = False,
        consumer: str | None = None,
        wait_seconds: float | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> Iterator[Batch]:
        """Rows of the table as they come: a `Batch` has those of one version, a large version comes in several.

        Without ``since``, first all rows that there are, as the version that the table has now; then what each commit
        added: inserted rows, and updated rows as they are then. With a version, tag or time as ``since``, what came
        after it; ``since=table.version`` is from now on. With ``changes`` batches have the columns of `Table.changes`,
        and deleted rows too, those of one version before the rows that it inserted. Compactions change no row, and an
        erased row is in no version: both have no batch, and a running reader gives no erased row either. Columns are
        those that the table has when a batch is read.

        ``consumer`` names a reader, whose place the catalog keeps: without ``since`` it begins as above the first time,
        and goes on where it was every other time, here or elsewhere. A batch counts as read once the next one is asked
        for: one that was being worked on when its reader died comes again, and none is skipped. ``batch.txn``
        identifies it: what is written with it as ``txn`` is written once. What a consumer has yet to read does not
        expire within ``lease_seconds`` of its last batch. ``since`` of a known consumer counts only if its place has
        expired.

        It waits ``wait_seconds`` for the next commit before it ends: None for ever, 0 not at all. A commit of this lake
        wakes it at once, others within a quarter of a second. Memory is bounded whatever a commit changed. Raises
        `VersionNotFound` and `ConsumerExpired` if what is to be read has expired, `ConsumerLost` if another reader has
        taken over, `TableNotFound` after the last batch of a table that was dropped.

        >>> before = flights.version
        >>> gone = flights.delete("id = 2")
        >>> added = flights.append(late.slice(0, 1))
        >>> [(batch.version - before, batch.rows.num_rows) for batch in flights.follow(since=before, wait_seconds=0)]
        [(2, 1)]
        >>> changed = flights.follow(since=before, changes=True, wait_seconds=0)
        >>> [batch.rows["_change_type"].to_pylist() for batch in changed]
        [['delete'], ['insert']]
        """
        from lakehouse.reading.follow import Follower  # noqa: PLC0415 - late

        wait = None if wait_seconds is None else read_wait(wait_seconds)
        feed, place, start = self.begin_following(since, consumer, lease_seconds)
        return Follower(feed, place, start, changes=changes, wait_seconds=wait).batches()

    def begin_following(
        self, since: AsOf | None, consumer: str | None, lease_seconds: float, *, start: Position | None = None
    ) -> tuple[Feed, Place, Position]:
        """The same for callers that walk the feed themselves; ``start`` is where such a caller was."""
        from lakehouse.reading import feed_window, follow  # noqa: PLC0415 - late

        name, lease = read_consumer(consumer), read_seconds(lease_seconds, "lease_seconds")

        def begun() -> tuple[Feed, Place, Position]:
            first = start or self._first(since, name)
            self.refresh()
            place = follow.Place(self._session, self._spec, name, lease)
            began = place.begin(first, first if since is not None or start else None)
            if start is not None and began != start:
                place.acknowledge(start)
            return feed_window.Feed(self._session, self._spec, self._created_version), place, start or began

        return again_if_forgotten(begun, since)

    def _first(self, since: AsOf | None, consumer: str | None) -> Position:
        """Where a reader begins that has read nothing yet; a known consumer may be given a version that has expired."""
        try:
            return Position(self._point(since).held_version, is_snapshot=since is None)
        except VersionNotFound:
            known = None if consumer is None else self._session.catalog.consumer_position(consumer, self._spec)
            if known is None:
                raise
            return known

    # Inspection

    def log(
        self,
        limit: int | None = None,
        *,
        before: int | None = None,
        operation: str | None = None,
        interval: IntervalLike | None = None,
        definitions: bool = False,
    ) -> Listing[Commit]:
        """Commits that changed the table's rows, newest first; with ``definitions`` also those that altered it.

        ``before``: only versions older than this. ``operation``: only this kind, such as ``replace``. ``interval``:
        only commits that added or dropped something overlapping it.
        """
        touching = None if interval is None else (self._spec, self._spec.interval_of(interval))
        return self._session.catalog.commits(
            self._spec.id,
            read_limit(limit),
            before=before,
            operation=operation,
            touching=touching,
            definitions=definitions,
        )

    def history(self, interval: IntervalLike | None = None, limit: int | None = None) -> Listing[Touch]:
        """What versions did to an interval (None: all of time), newest first: why rows appeared and disappeared.

        >>> gone = flights.delete("carrier = 'UA'")
        >>> [(one.rows_added, one.tombstones_added) for one in flights.history(limit=2)]
        [(0, 1), (3, 0)]
        """
        within = ALL_TIME if interval is None else self._spec.interval_of(interval)
        return self._session.catalog.history(self._spec, within, read_limit(limit))

    def segments(self, as_of: AsOf | None = None, interval: IntervalLike | None = None) -> Listing[Segment]:
        """Live segments, by id, that overlap an interval."""
        return Listing(self._live(as_of, interval)[0])

    def tombstones(self, as_of: AsOf | None = None, interval: IntervalLike | None = None) -> Listing[Tombstone]:
        """Live tombstones, by id, that overlap an interval."""
        return Listing(self._live(as_of, interval)[1])

    def statistics(self, as_of: AsOf | None = None, interval: IntervalLike | None = None) -> ColumnListing:
        """Statistics of each column in live segments that overlap an interval, without opening a data file.

        Hidden rows count too. ``distinct`` and ``bytes`` cover segments with sketches, which the table service builds
        if the property ``statistics`` is on.

        >>> [(one.column, one.rows, one.nulls, one.max) for one in flights.statistics()][1:3]
        [('id', 3, 0, 3), ('carrier', 3, 0, 'UA')]
        """
        segments, _ = self._live(as_of, interval)
        return read_statistics(self._session.catalog.summaries, self._point(as_of).spec, segments)

    def timeline(self, interval: IntervalLike | None = None, as_of: AsOf | None = None) -> Timeline:
        """The visible segments over time, as slices, and the overshadowed ones."""
        within = None if interval is None else self._spec.interval_of(interval)
        return timeline(*self._live_in_chunks(as_of, within), within)

    def chunks(self, as_of: AsOf | None = None) -> Listing[Chunk]:
        """Time chunks that hold something, by time."""
        return again_if_forgotten(lambda: self._session.catalog.chunks(self._spec, self._at(as_of)), as_of)

    def key_frames(self) -> Listing[KeyFrame]:
        """Key frames, by chunk and version."""
        return self._session.catalog.key_frames(self._spec)

    def chunk_history(self, interval: IntervalLike | None = None, limit: int = 100) -> Listing[ChainLink]:
        """Key frames and deltas that led to the state of an interval's chunks, by chunk, oldest first.

        A timeless table needs no ``interval``. The newest ``limit`` for each bin. Cost: the deltas of these chunks.
        """
        return self._session.catalog.chunk_history(self._spec, self._spec.interval_of(interval), limit)

    def film(self, interval: IntervalLike, limit: int = 100) -> Listing[ChainLink]:
        """The former name of `chunk_history`; it will be removed in the next version."""
        warn("Table.film is called Table.chunk_history now", DeprecationWarning, stacklevel=2)
        return self.chunk_history(interval, limit)

    def chain(self, interval: IntervalLike | None = None, as_of: AsOf | None = None) -> Listing[ChainLink]:
        """What a version is built from in the chunks of an interval: key frames, and the deltas after them."""
        within = None if interval is None else self._spec.interval_of(interval)
        return again_if_forgotten(lambda: self._session.catalog.chain(self._spec, self._at(as_of), within), as_of)

    def diff(self, a: AsOf | None, b: AsOf | None) -> Diff:
        """Segments and tombstones added and dropped between two versions, by chunk, and what became of columns."""
        found = self._session.catalog.diff(self._spec, self._at(a), self._at(b))
        return replace(found, columns=tuple(self.column_changes(a, b)))  # which may have changed after the rows

    def column_changes(self, a: AsOf | None, b: AsOf | None) -> Listing[ColumnChange]:
        """How columns differ between two versions, tags or times. Cost: two definitions; no deltas are read.

        >>> before = flights.version
        >>> commit = flights.rename_column("delay", "late")
        >>> [str(one) for one in flights.column_changes(before, commit.version)]
        ['column late renamed: delay to late']
        """
        return Listing(column_changes(self._point(a).spec, self._point(b).spec))

    def locks(self) -> Listing[ChunkLock]:
        """Locks of running operations, one for each chunk (one in all for a range of more than 10,000 chunks)."""
        return self._session.catalog.locks(self._spec)

    def __repr__(self) -> str:
        divided = f" by {self.grain} of {self.time}" if self.time else ""
        return f"<table {self.name}{divided}, {len(self.schema)} columns>"

    def _repr_html_(self) -> str:
        return columns_html(repr(self).strip("<>"), self.schema, self.primary_key)

    def _live(self, as_of: AsOf | None, interval: IntervalLike | None) -> tuple[Segments, list[Tombstone]]:
        within = None if interval is None else self._spec.interval_of(interval)
        segments, tombstones = self._live_in_chunks(as_of, within)
        if within is None:
            return segments, tombstones
        return segments.within(within), [one for one in tombstones if within.overlaps(one.interval)]

    def _live_in_chunks(self, as_of: AsOf | None, within: Interval | None) -> tuple[Segments, list[Tombstone]]:

        def look() -> tuple[Segments, list[Tombstone]]:
            version, _, spec = self._point(as_of)
            return self._session.catalog.live(spec, version, within)

        return again_if_forgotten(look, as_of)
