"""A table's writes, in one call and in three steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, TypeVar

from lakehouse.admin.export import renew_exports
from lakehouse.arguments import Txn, read_message, read_properties, read_text, read_txn, read_wait
from lakehouse.core.commit import Commit
from lakehouse.core.erased import Erased
from lakehouse.core.interval import Interval
from lakehouse.core.operation import Begun, Kind, Priority
from lakehouse.core.replace import check_replaceable
from lakehouse.core.spec import TableSpec
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import InvalidInterval, LockLost, LockTimeout, UnknownColumn, WriteConflict
from lakehouse.operations.append import Append
from lakehouse.operations.clauses import Whens, read_arguments, read_clauses, read_source
from lakehouse.operations.compaction import Clean, Compaction, commit_if_useful, locked_for_compaction
from lakehouse.operations.erase import Erase
from lakehouse.operations.merge import Merge
from lakehouse.operations.operation import Operation
from lakehouse.operations.replace import Replace
from lakehouse.operations.resolve import Resolve
from lakehouse.operations.restore import Restore
from lakehouse.operations.retry import retried
from lakehouse.operations.row_change import Delete, RowChange, Update, read_assignments
from lakehouse.operations.upsert import DeleteKeys, Upsert, require_primary_key
from lakehouse.predicate import parse
from lakehouse.schema import typed_scope
from lakehouse.session.session import Session

Begins = TypeVar("Begins", bound=Operation)


class Writes:
    """What changes one table."""

    def __init__(self, session: Session, spec: TableSpec, created_version: int) -> None:
        self._session = session
        self._spec = spec
        self._created_version = created_version

    @property
    def name(self) -> str:
        """The table's name when this value was made."""
        return self._spec.name

    @property
    def session(self) -> Session:
        """What the process keeps open of the lake that the table is in."""
        return self._session

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
        marks = _marks(message, properties, txn)
        with self._begin_append(marks, ahead=not is_spark_frame(data)) as op:
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
        ``engine``: ``duckdb`` (in process, the default) or ``spark``. Raises `WriteConflict` if the table is restored
        meanwhile each time, and for longer than the lake waits.
        """
        return self._repeated(lambda: self.begin_delete(where, engine=engine, **marks))

    def update(self, assigned: Mapping[str, str], where: str, *, engine: str | None = None, **marks: Any) -> Commit:
        """Give columns new values, SQL expressions over the row, where a predicate is true. Rows keep their ids.

        If another operation changes one of these rows meanwhile, this one runs again on what is there then. Raises
        `WriteConflict` if that happens each time, and for longer than the lake waits.

        >>> flights.update({"delay": "delay + 1"}, "carrier = 'UA'").rows_added               # doctest: +SKIP
        """
        return self._repeated(lambda: self.begin_update(assigned, where, engine=engine, **marks))

    def erase(self, where: str, *, reason: str | None = None, engine: str | None = None, **marks: Any) -> Erased:
        """Remove the rows for which a SQL predicate is true from every version, as a law may demand.

        Rows that a version shows, and rows that none shows any more; their values leave the catalog's bounds and
        indexes too, and its exports, which are made anew. Files that held them go with `Lake.collect`, after its grace.
        What is committed after it began stays: stop what brings such rows first. Waits for nobody; updates and
        compactions that read such rows and did not commit yet begin again. Keys of replaces go where the predicate says
        nothing but values of cluster columns; ``residue`` of what is returned names what else may tell of the rows.

        ``reason``: kept in the commit's properties.
        ``engine``: ``duckdb`` (in process, the default) or ``spark``, in whose tasks the segments are looked into.

        Cost: the filter's columns of the segments whose bounds it meets, in all versions; a copy of those with such
        rows. Raises `SegmentUnreadable`, and changes nothing, where a file cannot be read; `WriteConflict` if
        updates and compactions are faster than the search for longer than the lake waits.

        >>> events.erase("client = 4711", message="request 17").rows_deleted                   # doctest: +SKIP
        """
        last: list[Erase] = []

        def begin() -> Erase:
            last[:] = [self.begin_erase(where, engine=engine, **marks)]
            return last[0]

        if reason is not None:
            given = read_properties(marks.get("properties")) or {}
            marks["properties"] = {**given, "reason": read_text(reason, "reason")}
        commit = self._repeated(begin)
        renew_exports(self._session.catalog, self._session.warehouse)
        return last[0].erased(commit)

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

        Case does not count in columns' names. Raises `InvalidInput` where two rows of the source would change one row.

        >>> flights.merge(late, on=["id"], when_matched_update={"delay": "source.delay"})      # doctest: +SKIP
        """
        whens = read_arguments(when_matched_update, when_matched_delete, when_not_matched_insert)
        return self.merge_when(source, on, whens, engine=engine, **marks)

    def merge_when(
        self, source: Any, on: str | Sequence[str], whens: Whens, *, engine: str | None = None, **marks: Any
    ) -> Commit:
        """Merge by clauses with conditions of their own, the first of which counts that a row meets; as `merge`."""
        source = read_source(source, self._spec)
        return self._repeated(lambda: self._begin_merge(source, on, whens, engine, **marks))

    def resolve(self, **marks: Any) -> Commit | None:
        """Turn key tombstones into row tombstones, so that reads need not compare keys; None if there are none.

        Reads the key columns of what they may be about. Runs beside everything and changes no row.
        """
        return retried(
            lambda: commit_if_useful(self.begin_resolve(**marks)),
            on=WriteConflict,  # files that it read were erased and collected
            wait_seconds=self._session.wait_seconds,
        )

    def clean(
        self, interval: Any = None, *, message: str | None = None, properties: Mapping[str, str] | None = None
    ) -> Commit | None:
        """Drop segments that can no longer be seen, and tombstones that hide nothing; None if there are none.

        Reads no row. Raises `LockTimeout` if a user's operation holds a chunk, `LockLost` if one took it meanwhile.
        """
        return commit_if_useful(self.begin_clean(interval, message=message, properties=properties))

    def compact(
        self,
        interval: Any = None,
        *,
        engine: str | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit | None:
        """Rewrite small and masked segments into fewer; None when there is nothing to gain.

        Where a user's operation takes a chunk from it, it waits for that one's end and begins again; so it does where
        rows are erased from what it read. Raises `LockTimeout` if one holds a chunk when it begins, or for longer than
        the lake waits, `LockLost` if it loses what it has each time, and for longer than the lake waits.
        """
        waits = chain([0.0], repeat(self._session.wait_seconds))

        def attempt() -> Commit | None:
            return commit_if_useful(
                self.begin_compaction(
                    interval, engine=engine, wait_seconds=next(waits), message=message, properties=properties
                )
            )

        return retried(attempt, on=LockLost, wait_seconds=self._session.wait_seconds)

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
        begun = self._session.catalog.begin(self._spec, Kind.RESTORE)
        with Restore(self._session, begun, target=target, **marks) as op:
            op.wait_seconds = waits
            return op.commit()

    # Writes in three steps

    def begin_append(
        self, txn: Txn | None = None, *, message: str | None = None, properties: Mapping[str, str] | None = None
    ) -> Append:
        """Begin an append: write any number of times, then commit."""
        return self._begin_append(_marks(message, properties, txn))

    def _begin_append(self, marks: dict[str, Any], *, ahead: bool = False) -> Append:
        begun = self._session.catalog.begin(self._spec, Kind.APPEND, ahead=ahead)
        return Append(self._session, begun, **marks)

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
        begun = self._session.catalog.begin(
            self._spec,
            Kind.REPLACE,
            interval=covered,
            keys=typed_scope(keys, self._spec),
            priority=Priority.USER,
            wait_seconds=self._wait(wait_seconds),
        )
        return Replace(self._session, begun, **marks)

    def begin_delete(self, where: str, *, engine: str | None = None, **marks: Any) -> Delete:
        """Begin a delete of what a predicate lets through now: `run`, then `commit`."""
        return self._begin(Delete, where=parse(where, self._spec.schema), engine=self._session.engine(engine), **marks)

    def begin_erase(self, where: str, *, engine: str | None = None, **marks: Any) -> Erase:
        """Begin to remove what a predicate lets through from every version: `run`, then `commit`.

        What was exported before is not made anew: call `Lake.export`.
        """
        return self._begin(Erase, where=parse(where, self._spec.schema), engine=self._session.engine(engine), **marks)

    def begin_update(
        self, assigned: Mapping[str, str], where: str, *, engine: str | None = None, **marks: Any
    ) -> Update:
        """Begin an update of what a predicate lets through now: `run`, then `commit`."""
        values = read_assignments(assigned, self._spec)
        where_read = parse(where, self._spec.schema)
        return self._begin(Update, assigned=values, where=where_read, engine=self._session.engine(engine), **marks)

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
        whens = read_arguments(when_matched_update, when_matched_delete, when_not_matched_insert)
        return self._begin_merge(read_source(source, self._spec), on, whens, engine, **marks)

    def _begin_merge(self, source: Any, on: Any, whens: Whens, engine: str | None, **marks: Any) -> Merge:
        clauses = read_clauses(self._spec, source, on, whens)
        chosen = self._session.engine("spark" if engine is None and is_spark_frame(source) else engine)
        return self._begin(Merge, source=source, clauses=clauses, engine=chosen, **marks)

    def begin_upsert(self, txn: Txn | None = None, *, newest: str | None = None, **marks: Any) -> Upsert:
        """Begin an upsert: write any number of times, then commit."""
        require_primary_key(self._spec)
        if newest is not None and newest not in self._spec.schema.names:
            raise UnknownColumn("no such column", table=self.name, newest=newest, columns=self._spec.schema.names)
        return self._begin(Upsert, newest=newest, txn=txn, **marks)

    def begin_delete_keys(self, txn: Txn | None = None, **marks: Any) -> DeleteKeys:
        """Begin a delete by primary key: write keys any number of times, then commit."""
        require_primary_key(self._spec)
        return self._begin(DeleteKeys, txn=txn, **marks)

    def begin_resolve(
        self, tombstones: Collection[int] | None = None, *, engine: str | None = None, **marks: Any
    ) -> Resolve:
        """Begin to turn key tombstones (all, or those of some ids) into row tombstones: `run`, then `commit`."""
        return self._begin(Resolve, engine=self._session.engine(engine), chosen=tombstones, **marks)

    def begin_compaction(
        self,
        interval: Any = None,
        *,
        segments: Collection[int] | None = None,
        engine: str | None = None,
        wait_seconds: float = 0.0,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Compaction:
        """Lock the interval's chunks (None: all) at low priority and begin a compaction: `run`, then `commit`.

        ``segments``: ids of those to rewrite together, inside the interval; the default are those that gain by it.
        """
        marks = _marks(message, properties)
        wanted = None if interval is None else Interval.of(interval)
        if segments is None:
            wanted = locked_for_compaction(self._session, self._spec, wanted)
        elif wanted is None:
            raise InvalidInterval("give the interval in which the segments lie", segments=len(segments))
        begun = self._maintains(Kind.COMPACTION, wanted, wait_seconds)
        return Compaction(self._session, begun, engine=self._session.engine(engine), chosen=segments, **marks)

    def begin_clean(
        self,
        interval: Any = None,
        *,
        wait_seconds: float = 0.0,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Clean:
        """Lock the interval's chunks (None: all) at low priority; the commit drops there what can no longer matter."""
        wanted = None if interval is None else Interval.of(interval)
        locked = locked_for_compaction(self._session, self._spec, wanted)
        return Clean(self._session, self._maintains(Kind.CLEAN, locked, wait_seconds), **_marks(message, properties))

    def _maintains(self, kind: Kind, interval: Interval, wait_seconds: float) -> Begun:
        """Begin an operation that holds chunks until a user wants them."""
        return self._session.catalog.begin(
            self._spec,
            kind,
            interval=interval,
            priority=Priority.MAINTENANCE,
            wait_seconds=self._wait(wait_seconds),
        )

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
        return operation(self._session, self._session.catalog.begin(self._spec, operation.kind), **what, **marks)

    def _repeated(self, begin: Callable[[], RowChange | Erase]) -> Commit:
        """Run an operation, again where it conflicts; after a replace where one is in the way."""

        def attempt() -> Commit:
            with begin() as op:
                op.run()
                return op.commit()

        return retried(attempt, on=WriteConflict, wait_seconds=self._session.wait_seconds, between=self._wait_for)

    def _wait_for(self, conflict: WriteConflict) -> None:
        """Wait until a replace that is in the way has ended."""
        held = conflict.facts.get("held")
        if held is not None:
            try:
                self._session.catalog.wait_until_free(self._spec, held, None, self._session.wait_seconds)
            except LockTimeout as timeout:
                raise conflict from timeout

    def _at(self, as_of: Any) -> int:
        """The table's newest version at or before what ``as_of`` means."""
        return self._session.catalog.table_version(self._spec, self._created_version, as_of)

    def _wait(self, wait_seconds: float | None) -> float:
        return self._session.wait_seconds if wait_seconds is None else read_wait(wait_seconds)


def _marks(message: Any, properties: Any, txn: Any = None) -> dict[str, Any]:
    """What a commit will carry, checked."""
    return {"txn": read_txn(txn), "message": read_message(message), "properties": read_properties(properties)}
