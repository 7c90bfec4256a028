"""A table: writes, reads and looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from lakehouse.arguments import Txn, read_limit, read_message, read_properties, read_txn, read_wait
from lakehouse.changes import Changes
from lakehouse.core.commit import ChainLink, Chunk, ChunkLock, Commit, Diff, KeyFrame
from lakehouse.core.interval import Interval
from lakehouse.core.listing import Listing
from lakehouse.core.operation import Kind, Priority
from lakehouse.core.replace import check_replaceable
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec
from lakehouse.core.timeline import Timeline, timeline
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import InvalidInput, LockTimeout, VersionNotFound, WriteConflict
from lakehouse.merge import Merge, read_clauses, read_source
from lakehouse.operation import Append, Compaction, Operation, Replace, Restore, locked_for_compaction
from lakehouse.predicate import parse
from lakehouse.resolve import Resolve
from lakehouse.rowchange import Delete, RowChange, Update, read_assignments
from lakehouse.scan import Scan
from lakehouse.schema import typed_scope
from lakehouse.upsert import DeleteKeys, Upsert, require_primary_key

if TYPE_CHECKING:
    from lakehouse.lake import Lake

T = TypeVar("T")
Begins = TypeVar("Begins", bound=Operation)
_ATTEMPTS = 5
_RUNS = 4
"""How often an operation runs that conflicts: once, and three times again."""


class Table:
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

    def __init__(self, lake: Lake, spec: TableSpec, created_version: int) -> None:
        self._lake = lake
        self._spec = spec
        self._created_version = created_version

    # What it is

    @property
    def name(self) -> str:
        """The table's name when this value was made."""
        return self._spec.name

    @property
    def spec(self) -> TableSpec:
        """The whole definition."""
        return self._spec

    @property
    def schema(self) -> pa.Schema:
        """Columns and types; each field's metadata holds its Parquet field id."""
        return self._spec.schema

    @property
    def time(self) -> str:
        """Name of the time column."""
        return self._spec.time

    @property
    def grain(self) -> str:
        """Length of a time chunk: hour, day, week, month or year."""
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
        """Properties as given when the table was created."""
        return dict(self._spec.properties)

    @property
    def version(self) -> int:
        """The newest version of the table."""
        return self._lake.catalog.newest_version(self._spec.id, self._created_version)

    # Writes in one call

    def append(
        self,
        data: Any,
        *,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Add rows and return the commit. Waits for nobody.

        ``data``: a Spark frame (written by Spark), or anything Arrow can read (written in process, without a job).
        ``txn``: ``(app, sequence)``; the same pair again changes nothing and returns the first commit.
        """
        with self.begin_append(txn=txn, message=message, properties=properties) as op:
            op.write(data)
            return op.commit()

    def replace(
        self,
        data: Any,
        interval: Any,
        *,
        keys: Mapping[str, Any] | None = None,
        txn: Txn | None = None,
        wait_seconds: float | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Put ``data`` in place of every row in the interval (and of these keys); None or no rows: drop what is there.

        Raises `InvalidInput` for rows outside, `LockTimeout` if another replace holds a chunk for too long.
        """
        with self.begin_replace(
            interval, keys=keys, txn=txn, wait_seconds=wait_seconds, message=message, properties=properties
        ) as op:
            op.write(data)
            return op.commit()

    def drop(self, interval: Any, *, keys: Mapping[str, Any] | None = None, **marks: Any) -> Commit:
        """Drop the rows of an interval (and of these keys): a replace by nothing."""
        return self.replace(None, interval, keys=keys, **marks)

    def delete(self, where: str, *, engine: str | None = None, **marks: Any) -> Commit:
        """Remove the rows for which a SQL predicate is true; ``TRUE`` means all.

        Waits for nobody. A predicate that says nothing but an interval and values of cluster columns reads no row.
        ``engine``: ``duckdb`` (in process, the default) or ``spark``. Raises `WriteConflict` if the table was restored
        meanwhile again and again.
        """
        return self._repeated(lambda: self.begin_delete(where, engine=engine, **marks))

    def update(self, assigned: Mapping[str, str], where: str, *, engine: str | None = None, **marks: Any) -> Commit:
        """Give columns new values, SQL expressions over the row, where a predicate is true. Rows keep their ids.

        If another operation changes one of these rows meanwhile, this one runs again on what is there then, up to
        three times, and then raises `WriteConflict`.

        >>> flights.update({"delay": "delay + 1"}, "carrier = 'UA'").rows_added               # doctest: +SKIP
        """
        return self._repeated(lambda: self.begin_update(assigned, where, engine=engine, **marks))

    def upsert(self, data: Any, *, newest: str | None = None, txn: Txn | None = None, **marks: Any) -> Commit:
        """Write rows in the place of those with their primary keys. Reads nothing, waits for nobody, never conflicts.

        No key may be there twice, unless ``newest`` names the column whose greatest value says which row is meant.
        """
        with self.begin_upsert(newest=newest, txn=txn, **marks) as op:
            op.write(data)
            return op.commit()

    def delete_keys(self, data: Any, *, txn: Txn | None = None, **marks: Any) -> Commit:
        """Remove every row with one of these primary keys: rows that have at least the key's columns. Reads nothing."""
        with self.begin_delete_keys(txn=txn, **marks) as op:
            op.write(data)
            return op.commit()

    def merge(
        self,
        source: Any,
        on: str | Sequence[str],
        *,
        when_matched_update: Mapping[str, str] | bool | None = None,
        when_matched_delete: str | bool | None = None,
        when_not_matched_insert: Mapping[str, str] | bool = True,
        engine: str | None = None,
        **marks: Any,
    ) -> Commit:
        """Put each row of ``source`` to the rows that it matches: update or delete those, or insert it if none does.

        ``on``: a SQL condition over ``target.column`` and ``source.column``, or columns that must be equal. Updates and
        inserts are SQL expressions by column; True takes the source's columns of the same names. A row for which
        ``when_matched_delete`` (a condition; True: always) holds is deleted, not updated. Conflicts as `update` does.

        >>> flights.merge(late, on=["id"], when_matched_update={"delay": "source.delay"})      # doctest: +SKIP
        """
        source = read_source(source, self._spec)
        return self._repeated(
            lambda: self.begin_merge(
                source,
                on,
                when_matched_update=when_matched_update,
                when_matched_delete=when_matched_delete,
                when_not_matched_insert=when_not_matched_insert,
                engine=engine,
                **marks,
            )
        )

    def resolve(self, **marks: Any) -> Commit | None:
        """Turn key tombstones into row tombstones, so that reads need not compare keys; None if there are none.

        Reads the key columns of what they may be about. Runs beside everything and changes no row.
        """
        with self.begin_resolve(**marks) as op:
            op.run()
            if not op.has_work:
                op.abort()
                return None
            return op.commit()

    def compact(
        self, interval: Any = None, *, message: str | None = None, properties: Mapping[str, str] | None = None
    ) -> Commit | None:
        """Rewrite small and masked segments into fewer; None when there is nothing to gain.

        Raises `LockTimeout` if a user's operation holds a chunk, `LockLost` if one took a chunk meanwhile.
        """
        with self.begin_compaction(interval, message=message, properties=properties) as op:
            op.run()
            if not op.has_work:
                op.abort()
                return None
            return op.commit()

    def restore(
        self,
        version: Any,
        *,
        wait_seconds: float | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Make the table what it was at a version, by a new commit; history stays.

        Waits for running replaces of chunks that change; takes them from maintenance.
        """
        target = self._at(version)
        marks = _marks(message, properties)
        waits = self._wait(wait_seconds)
        begun = self._lake.catalog.begin(self._spec, Kind.RESTORE)
        with Restore(self._lake, begun, target=target, **marks) as op:
            op.wait_seconds = waits
            return op.commit()

    # Writes in three steps

    def begin_append(
        self, txn: Txn | None = None, *, message: str | None = None, properties: Mapping[str, str] | None = None
    ) -> Append:
        """Begin an append: write any number of times, then commit."""
        marks = _marks(message, properties, txn)
        draws = self._spec.write_order == "start"
        begun = self._lake.catalog.begin(self._spec, Kind.APPEND, draws=draws)
        return Append(self._lake, begun, **marks)

    def begin_replace(
        self,
        interval: Any,
        keys: Mapping[str, Any] | None = None,
        txn: Txn | None = None,
        wait_seconds: float | None = None,
        *,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Replace:
        """Lock the interval's chunks (for these keys) and begin a replace.

        Waits up to ``wait_seconds`` (default: the lake's) for another replace, then raises `LockTimeout`, which names
        it. A compaction is not waited for: it loses its chunks.
        """
        marks = _marks(message, properties, txn)
        covered = Interval.of(interval)
        if self._spec.write_order == "start":
            check_replaceable(covered, self._spec.grain)
        begun = self._lake.catalog.begin(
            self._spec,
            Kind.REPLACE,
            draws=True,
            interval=covered,
            keys=typed_scope(keys, self._spec),
            priority=Priority.USER,
            wait_seconds=self._wait(wait_seconds),
        )
        return Replace(self._lake, begun, **marks)

    def begin_delete(self, where: str, *, engine: str | None = None, **marks: Any) -> Delete:
        """Begin a delete of what a predicate lets through now: `run`, then `commit`."""
        return self._begin(Delete, where=parse(where, self._spec.schema), engine=self._lake.engine(engine), **marks)

    def begin_update(
        self, assigned: Mapping[str, str], where: str, *, engine: str | None = None, **marks: Any
    ) -> Update:
        """Begin an update of what a predicate lets through now: `run`, then `commit`."""
        values = read_assignments(assigned, self._spec)
        where_read = parse(where, self._spec.schema)
        return self._begin(Update, assigned=values, where=where_read, engine=self._lake.engine(engine), **marks)

    def begin_merge(
        self,
        source: Any,
        on: str | Sequence[str],
        *,
        when_matched_update: Mapping[str, str] | bool | None = None,
        when_matched_delete: str | bool | None = None,
        when_not_matched_insert: Mapping[str, str] | bool = True,
        engine: str | None = None,
        **marks: Any,
    ) -> Merge:
        """Begin a merge into the rows that are there now: `run`, then `commit`."""
        given = read_source(source, self._spec)
        clauses = read_clauses(self._spec, given, on, when_matched_update, when_matched_delete, when_not_matched_insert)
        chosen = self._lake.engine("spark" if engine is None and is_spark_frame(source) else engine)
        return self._begin(Merge, source=given, clauses=clauses, engine=chosen, **marks)

    def begin_upsert(self, txn: Txn | None = None, *, newest: str | None = None, **marks: Any) -> Upsert:
        """Begin an upsert: write any number of times, then commit."""
        require_primary_key(self._spec)
        if newest is not None and newest not in self._spec.schema.names:
            raise InvalidInput("no such column", table=self.name, newest=newest, columns=self._spec.schema.names)
        return self._begin(Upsert, newest=newest, txn=txn, **marks)

    def begin_delete_keys(self, txn: Txn | None = None, **marks: Any) -> DeleteKeys:
        """Begin a delete by primary key: write keys any number of times, then commit."""
        require_primary_key(self._spec)
        return self._begin(DeleteKeys, txn=txn, **marks)

    def begin_resolve(self, **marks: Any) -> Resolve:
        """Begin to turn key tombstones into row tombstones: `run`, then `commit`."""
        return self._begin(Resolve, **marks)

    def begin_compaction(
        self,
        interval: Any = None,
        *,
        wait_seconds: float = 0.0,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Compaction:
        """Lock the interval's chunks (None: all) at low priority and begin a compaction: `run`, then `commit`."""
        marks = _marks(message, properties)
        wanted = None if interval is None else Interval.of(interval)
        begun = self._lake.catalog.begin(
            self._spec,
            Kind.COMPACTION,
            interval=locked_for_compaction(self._lake, self._spec, wanted),
            priority=Priority.MAINTENANCE,
            wait_seconds=self._wait(wait_seconds),
        )
        return Compaction(self._lake, begun, **marks)

    # Reads

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        interval: Any = None,
        as_of: Any = None,
        best_effort: bool = False,
    ) -> Scan:
        """Rows at a version, which is fixed now.

        ``where`` is a SQL predicate; it is also used to leave files out. ``as_of``: a version, tag or time.
        ``best_effort`` leaves out files that are missing or short, with a `PartialRead` warning, instead of failing.
        """
        if columns is not None:
            columns = (columns,) if isinstance(columns, str) else tuple(columns)
            unknown = [name for name in columns if name not in self._spec.schema.names]
            if unknown or not columns:
                raise InvalidInput(
                    "no such column; choose among the table's",
                    table=self.name,
                    unknown=unknown,
                    columns=self._spec.schema.names,
                )
        within = None if interval is None else Interval.of(interval)

        def held() -> Scan:
            version, held_version = self._lake.catalog.point(self._spec, self._created_version, as_of)
            scan = Scan(
                self._lake,
                self._spec,
                version,
                columns=columns,
                where=where,
                interval=within,
                best_effort=best_effort,
                held_version=held_version,
            )
            self._lake.pins.hold(scan, self._spec, held_version)
            return scan

        return _again_if_forgotten(held, as_of)

    def read(self, **options: Any) -> Any:
        """``scan(...)`` as a Spark DataFrame."""
        return self.scan(**options).to_spark()

    def changes(self, since: Any, until: Any = None) -> Changes:
        """Rows that the commits after ``since``, up to ``until`` (None: the newest), inserted, deleted and updated.

        Both are a version, tag or time. Raises `VersionNotFound` if the history between them has been forgotten.
        """

        def held() -> Changes:
            last, _ = self._lake.catalog.point(self._spec, self._created_version, until)
            first, held_version = self._lake.catalog.point(self._spec, self._created_version, since)
            found = Changes(self._lake, self._spec, first, max(first, last))
            self._lake.pins.hold(found, self._spec, held_version)
            return found

        return _again_if_forgotten(held, until)

    # Looks

    def log(self, limit: int | None = None) -> Listing[Commit]:
        """Commits that changed the table's rows, newest first."""
        return self._lake.catalog.commits(self._spec.id, read_limit(limit))

    def segments(self, as_of: Any = None, interval: Any = None) -> Listing[Segment]:
        """Live segments, by id, that overlap an interval."""
        return Listing(self._live(as_of, interval)[0])

    def tombstones(self, as_of: Any = None, interval: Any = None) -> Listing[Tombstone]:
        """Live tombstones, by id, that overlap an interval."""
        return Listing(self._live(as_of, interval)[1])

    def timeline(self, interval: Any = None, as_of: Any = None) -> Timeline:
        """What a laser sees from left to right: slices of the same visible segments, and what is overshadowed."""
        within = None if interval is None else Interval.of(interval)
        return timeline(*self._live_in_chunks(as_of, within), within)

    def chunks(self, as_of: Any = None) -> Listing[Chunk]:
        """Time chunks that hold something, by time."""
        return _again_if_forgotten(lambda: self._lake.catalog.chunks(self._spec, self._at(as_of)), as_of)

    def key_frames(self) -> Listing[KeyFrame]:
        """Materialized chunk states, by chunk and version."""
        return self._lake.catalog.key_frames(self._spec)

    def chain(self, interval: Any = None, as_of: Any = None) -> Listing[ChainLink]:
        """What a version is built of, in the chunks that an interval touches: key frames, and the deltas after them."""
        within = None if interval is None else Interval.of(interval)
        return _again_if_forgotten(lambda: self._lake.catalog.chain(self._spec, self._at(as_of), within), as_of)

    def diff(self, a: Any, b: Any) -> Diff:
        """Segments and tombstones added and dropped between two versions, by chunk."""
        return self._lake.catalog.diff(self._spec, self._at(a), self._at(b))

    def locks(self) -> Listing[ChunkLock]:
        """Locks that running operations hold, a value a chunk (one value for a run of more than 10,000 chunks)."""
        return self._lake.catalog.locks(self._spec)

    def __repr__(self) -> str:
        return f"<table {self.name} by {self.grain} of {self.time}, {len(self.schema)} columns>"

    def _begin(
        self,
        operation: type[Begins],
        *,
        txn: Any = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
        **what: Any,
    ) -> Begins:
        """Begin an operation that takes no lock."""
        marks = _marks(message, properties, txn)
        return operation(self._lake, self._lake.catalog.begin(self._spec, operation.kind), **what, **marks)

    def _repeated(self, begin: Callable[[], RowChange]) -> Commit:
        """Run an operation, again where it conflicts; after a replace where one is in the way."""
        for attempt in range(_RUNS):
            with begin() as op:
                op.run()
                try:
                    return op.commit()
                except WriteConflict as conflict:
                    if attempt == _RUNS - 1:
                        raise
                    self._wait_for(conflict)
        raise AssertionError("the last run returns or raises")

    def _wait_for(self, conflict: WriteConflict) -> None:
        """Wait until a replace that is in the way has ended."""
        held = conflict.facts.get("held")
        if held is not None:
            try:
                self._lake.catalog.wait_until_free(self._spec, held, None, self._lake.wait_seconds)
            except LockTimeout as timeout:
                raise conflict from timeout

    def _at(self, as_of: Any) -> int:
        """The table's newest version at or before what ``as_of`` means."""
        return self._lake.catalog.table_version(self._spec, self._created_version, as_of)

    def _live(self, as_of: Any, interval: Any) -> tuple[Segments, list[Tombstone]]:
        within = None if interval is None else Interval.of(interval)
        segments, tombstones = self._live_in_chunks(as_of, within)
        if within is None:
            return segments, tombstones
        return segments.within(within), [one for one in tombstones if within.overlaps(one.interval)]

    def _live_in_chunks(self, as_of: Any, within: Interval | None) -> tuple[Segments, list[Tombstone]]:
        return _again_if_forgotten(lambda: self._lake.catalog.live(self._spec, self._at(as_of), within), as_of)

    def _wait(self, wait_seconds: float | None) -> float:
        return self._lake.wait_seconds if wait_seconds is None else read_wait(wait_seconds)


def _again_if_forgotten(look: Callable[[], T], as_of: Any) -> T:
    """Look at the head again where it was passed and forgotten before it could be looked at."""
    for _ in range(_ATTEMPTS if as_of is None else 0):
        try:
            return look()
        except VersionNotFound:
            continue
    return look()


def _marks(message: Any, properties: Any, txn: Any = None) -> dict[str, Any]:
    """What a commit will carry, checked."""
    return {"txn": read_txn(txn), "message": read_message(message), "properties": read_properties(properties)}
