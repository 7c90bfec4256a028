"""A table's writes in three steps: begin an operation, write to it or run it, and commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import pyarrow as pa

from lakehouse.arguments import Rows, Txn, Where, read_message, read_properties, read_txn, read_wait
from lakehouse.core.interval import Interval, IntervalLike
from lakehouse.core.operation import Altered, Begun, Kind, Priority
from lakehouse.core.spec import TableSpec
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import InvalidInput, InvalidInterval
from lakehouse.operations.operation import Operation
from lakehouse.session.session import Session

if TYPE_CHECKING:
    from lakehouse.operations.append import Append
    from lakehouse.operations.clauses import Found, Whens
    from lakehouse.operations.compaction import Clean, Compaction
    from lakehouse.operations.erase import Erase
    from lakehouse.operations.merge import FoundMerge, FoundRows, Merge
    from lakehouse.operations.replace import Replace
    from lakehouse.operations.resolve import Resolve
    from lakehouse.operations.restore import Restore
    from lakehouse.operations.row_change import Delete, Update
    from lakehouse.operations.upsert import DeleteKeys, Upsert

Began = TypeVar("Began", bound=Operation)
P = ParamSpec("P")
T = TypeVar("T")


def as_altered(begin: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Begin again with the columns that the table has now if others than its object knows.

    An argument that does not fit those it knows may fit these.
    """

    @wraps(begin)
    def again(self: Any, *given: P.args, **named: P.kwargs) -> T:
        while True:
            try:
                return begin(self, *given, **named)
            except Altered:
                self.refresh()
            except InvalidInput:
                if not self.refresh():
                    raise

    return cast(Callable[Concatenate[Any, P], T], again)


class Begins:
    """Begins operations on one table.

    Every operation takes the same marks, which are stored with its commit. ``message``: text for people, shown in logs.
    ``properties``: a map of text to text, for programs. ``txn``: ``(app, number)``, an idempotency key: if it was
    committed on the table before, nothing changes, and the operation's commit returns the first one.

    An operation is a context manager, which commits on leaving normally and aborts on leaving by an exception.
    """

    def __init__(self, session: Session, spec: TableSpec, created_version: int) -> None:
        self._session = session
        self._spec = spec
        self._created_version = created_version

    @property
    def name(self) -> str:
        """The table's name when this object was made."""
        return self._spec.name

    def refresh(self) -> bool:
        """Read the table's definition again, which others may have altered; whether it was.

        Reads and most operations notice by themselves. Raises `TableNotFound` if the table was dropped.
        """
        before = self._spec.schema_number
        self._spec = self._session.catalog.redefined(self._spec)
        return self._spec.schema_number != before

    @property
    def session(self) -> Session:
        """What the process keeps open of the table's lake."""
        return self._session

    def begin_append(
        self, txn: Txn | None = None, *, message: str | None = None, properties: Mapping[str, str] | None = None
    ) -> Append:
        """Begin an append: `write` any number of times, then `commit`. It takes no lock and never waits.

        >>> with flights.begin_append(message="two files") as op:
        ...     op.write(late.slice(0, 1))
        ...     op.write(late.slice(1))
        >>> flights.count()
        5
        """
        return self._begin_append(marks_of(message, properties, txn))

    @as_altered
    def _begin_append(self, marks: dict[str, Any]) -> Append:
        from lakehouse.operations.append import Append  # noqa: PLC0415 - late

        self.refresh()  # an append begins without a look at the table
        return self._begin(Append, marks)

    def _begin_ahead(self, marks: dict[str, Any]) -> Append:
        """Begin an append with one of the operations that the process has registered in advance."""
        from lakehouse.operations.append import Append  # noqa: PLC0415 - late

        return Append(self._session, self._session.writing().begin(self._spec, Kind.APPEND, ahead=True), **marks)

    @as_altered
    def begin_replace(
        self,
        interval: IntervalLike | None = None,
        keys: Mapping[str, Any] | None = None,
        txn: Txn | None = None,
        wait_seconds: float | None = None,
        *,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Replace:
        """Lock the interval's chunks (for these keys) and begin a replace: `write` any number of times, then `commit`.

        ``interval``: a period such as ``"2013-01"``, a ``(start, end)`` pair or an `Interval`, in UTC; none in a
        timeless table. ``keys``: values by cluster column. Waits up to ``wait_seconds`` (None: the lake's) for another
        replace, but not for a compaction, which loses its chunks. Raises `LockTimeout`, which names the holder,
        `InvalidInterval`, `InvalidKeys`.

        >>> with flights.begin_replace("2013-01-05", keys={"carrier": "UA"}) as op:
        ...     op.write(late.slice(0, 1))
        >>> flights.scan(where="carrier = 'UA'").to_arrow()["delay"].to_pylist()
        [0, 42]
        """
        from lakehouse.core.replace import check_replaceable  # noqa: PLC0415 - late
        from lakehouse.operations.replace import Replace  # noqa: PLC0415 - late
        from lakehouse.schema import typed_scope  # noqa: PLC0415 - late

        marks = marks_of(message, properties, txn)
        covered = self._spec.interval_of(interval)
        if self._spec.write_order == "start":
            check_replaceable(covered, self._spec.grain)
        begun = self._session.writing().begin(
            self._spec,
            Kind.REPLACE,
            interval=covered,
            keys=typed_scope(keys, self._spec),
            priority=Priority.USER,
            wait_seconds=self._wait(wait_seconds),
        )
        return Replace(self._session, begun, **marks)

    @as_altered
    def begin_delete(
        self,
        where: Where,
        *,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Delete:
        """Begin a delete of the rows for which a SQL predicate is true now: `run`, then `commit`.

        ``engine``: ``duckdb`` (in process, the default) or ``spark``. Raises `InvalidPredicate`, `UnknownColumn`.

        >>> op = flights.begin_delete("delay > 5")
        >>> op.run()
        >>> op.commit().rows_deleted
        1
        """
        from lakehouse.operations.row_change import Delete  # noqa: PLC0415 - late
        from lakehouse.predicate import parse  # noqa: PLC0415 - late

        marks = marks_of(message, properties, txn)
        where_read, chosen = parse(where, self._spec.schema), self._session.engine(engine)
        return self._begin(Delete, marks, where=where_read, engine=chosen)

    @as_altered
    def begin_update(
        self,
        assigned: Mapping[str, str],
        where: Where,
        *,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Update:
        """Begin an update of the rows for which a SQL predicate is true now: `run`, then `commit`.

        ``assigned``: SQL expressions over the row, by column. Raises `InvalidPredicate`, `UnknownColumn`.
        """
        from lakehouse.operations.row_change import Update, read_assignments  # noqa: PLC0415 - late
        from lakehouse.predicate import parse  # noqa: PLC0415 - late

        marks = marks_of(message, properties, txn)
        values = read_assignments(assigned, self._spec)
        where_read, chosen = parse(where, self._spec.schema), self._session.engine(engine)
        return self._begin(Update, marks, assigned=values, where=where_read, engine=chosen)

    @as_altered
    def begin_erase(
        self,
        where: Where,
        *,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Erase:
        """Begin an erasure of the rows for which a SQL predicate is true, from every version: `run`, then `commit`.

        Existing exports still hold the rows: call `Lake.export` afterwards. Raises `InvalidPredicate`, `UnknownColumn`.
        """
        from lakehouse.operations.erase import Erase  # noqa: PLC0415 - late
        from lakehouse.predicate import parse  # noqa: PLC0415 - late
        from lakehouse.table.forgetting import forgetting  # noqa: PLC0415 - late

        marks = marks_of(message, properties, txn)
        self.refresh()  # what is written again has the properties of now
        where_read, chosen = parse(where, self._spec.schema), self._session.engine(engine)
        forgets = forgetting(
            lambda name: type(self)(self._session, *self._session.catalog.table(name)), self, where_read
        )
        return self._begin(Erase, marks, where=where_read, engine=chosen, forgets=forgets)

    def begin_merge(
        self,
        source: Rows,
        on: str | Sequence[str],
        *,
        when_matched_update: Mapping[str, str] | bool | None = None,
        when_matched_delete: str | bool | None = None,
        when_not_matched_insert: Mapping[str, str] | bool = True,
        when_not_matched_by_source_update: Mapping[str, str] | None = None,
        when_not_matched_by_source_delete: str | bool | None = None,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Merge:
        """Begin a merge into the current rows: `run`, then `commit`. Arguments and errors as for `merge`."""
        from lakehouse.operations.clauses import read_arguments, read_source  # noqa: PLC0415 - late

        whens = read_arguments(
            when_matched_update,
            when_matched_delete,
            when_not_matched_insert,
            when_not_matched_by_source_update,
            when_not_matched_by_source_delete,
        )
        marks = marks_of(message, properties, txn)
        return self._begin_merge(self._spec, read_source(source, self._spec), on, whens, engine, marks)

    def begin_merge_when(self, source: Rows, on: str | Sequence[str], whens: Whens) -> Merge:
        """Begin a merge by clauses with conditions of their own: `run`, then `commit`."""
        from lakehouse.operations.clauses import read_source  # noqa: PLC0415 - late

        read = read_source(source, self._spec)
        return self._begin_merge(self._spec, read, on, whens, None, marks_of(None, None))

    @as_altered
    def _begin_merge(
        self, known: TableSpec, source: Any, on: Any, whens: Whens, engine: str | None, marks: dict[str, Any]
    ) -> Merge:
        """Begin a merge whose source was made for the columns of ``known``."""
        from lakehouse.operations.clauses import read_clauses, read_source, require_names_kept  # noqa: PLC0415 - late
        from lakehouse.operations.merge import Merge  # noqa: PLC0415 - late

        chosen = self._session.engine("spark" if engine is None and is_spark_frame(source) else engine)
        if is_spark_frame(source) and chosen is self._session.local_engine:
            source = read_source(source.toArrow(), known)
        require_names_kept(source, known, self._spec)
        clauses = read_clauses(self._spec, source, on, whens)
        return self._begin(Merge, marks, source=source, clauses=clauses, engine=chosen)

    @as_altered
    def begin_found_rows(
        self,
        find: Callable[[int], pa.Table],
        columns: Sequence[str] | None,
        *,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> FoundRows:
        """Begin a change of rows that ``find`` names at the base: `run`, then `commit`, as of a merge.

        It gives their ``_row_id``, ``_row_time``, and new values of ``columns`` (None: the rows are deleted).
        """
        from lakehouse.operations.merge import FoundRows  # noqa: PLC0415 - late

        marks = marks_of(message, properties, txn)
        return self._begin(FoundRows, marks, find=find, columns=columns, engine=self._session.engine(None))

    @as_altered
    def begin_found_merge(
        self, find: Callable[[int], AbstractContextManager[Rows]], clauses: Sequence[Found], *, is_repeatable: bool
    ) -> FoundMerge:
        """Begin a merge whose rows ``find`` gives at the base, each with its clause: `run`, then `commit`.

        ``is_repeatable``: a row of the table may be given several times, because all those are deleted.
        """
        from lakehouse.operations.merge import FoundMerge  # noqa: PLC0415 - late

        return self._begin(
            FoundMerge,
            marks_of(None, None),
            find=find,
            clauses=clauses,
            is_repeatable=is_repeatable,
            engine=self._session.engine(None),
        )

    @as_altered
    def begin_upsert(
        self,
        txn: Txn | None = None,
        *,
        newest: str | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Upsert:
        """Begin an upsert: `write` any number of times, then `commit`. It takes no lock and reads nothing.

        ``newest``: of rows with the same key, the one with the greatest value in this column is kept.
        Raises `NoPrimaryKey`, `UnknownColumn`.
        """
        from lakehouse.operations.upsert import require_column  # noqa: PLC0415 - late

        if newest is not None:
            require_column(newest, self._spec)
        return self._begin_upsert(newest, marks_of(message, properties, txn))

    @as_altered
    def _begin_upsert(self, newest: str | None, marks: dict[str, Any]) -> Upsert:
        """Begin an upsert; whether the table has the column ``newest`` is checked by its write."""
        from lakehouse.operations.upsert import Upsert, require_primary_key  # noqa: PLC0415 - late

        require_primary_key(self._spec)
        return self._begin(Upsert, marks, newest=newest)

    @as_altered
    def begin_delete_keys(
        self, txn: Txn | None = None, *, message: str | None = None, properties: Mapping[str, str] | None = None
    ) -> DeleteKeys:
        """Begin a delete by primary key: `write` keys any number of times, then `commit`. Raises `NoPrimaryKey`."""
        from lakehouse.operations.upsert import DeleteKeys, require_primary_key  # noqa: PLC0415 - late

        require_primary_key(self._spec)
        return self._begin(DeleteKeys, marks_of(message, properties, txn))

    @as_altered
    def begin_resolve(
        self,
        tombstones: Collection[int] | None = None,
        *,
        engine: str | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Resolve:
        """Begin to turn key tombstones (all, or those with these ids) into row tombstones: `run`, then `commit`."""
        from lakehouse.operations.resolve import Resolve  # noqa: PLC0415 - late

        marks = marks_of(message, properties)
        return self._begin(Resolve, marks, engine=self._session.engine(engine), chosen=tombstones)

    @as_altered
    def begin_compaction(
        self,
        interval: IntervalLike | None = None,
        *,
        segments: Collection[int] | None = None,
        engine: str | None = None,
        wait_seconds: float = 0.0,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Compaction:
        """Lock the interval's chunks (None: all) at low priority and begin a compaction: `run`, then `commit`.

        ``segments``: ids of segments to compact together, inside the interval; None: those that gain from it.
        Raises `LockTimeout` if a user's operation holds a chunk for longer than ``wait_seconds``.
        """
        from lakehouse.operations.compaction import Compaction, locked_for_compaction  # noqa: PLC0415 - late

        marks = marks_of(message, properties)
        self.refresh()  # what is written again has the properties of now
        wanted = None if interval is None else self._spec.interval_of(interval)
        if segments is None:
            wanted = locked_for_compaction(self._session, self._spec, wanted)
        elif wanted is None:
            raise InvalidInterval("give the interval in which the segments lie", segments=len(segments))
        begun = self._maintains(Kind.COMPACTION, wanted, wait_seconds)
        return Compaction(self._session, begun, engine=self._session.engine(engine), chosen=segments, **marks)

    @as_altered
    def begin_clean(
        self,
        interval: IntervalLike | None = None,
        *,
        wait_seconds: float = 0.0,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Clean:
        """Lock the interval's chunks (None: all) at low priority; the `commit` drops what has no effect any more.

        Raises `LockTimeout` if a user's operation holds a chunk for longer than ``wait_seconds``.
        """
        from lakehouse.operations.compaction import Clean, locked_for_compaction  # noqa: PLC0415 - late

        marks = marks_of(message, properties)
        self.refresh()
        wanted = None if interval is None else self._spec.interval_of(interval)
        locked = locked_for_compaction(self._session, self._spec, wanted)
        return Clean(self._session, self._maintains(Kind.CLEAN, locked, wait_seconds), **marks)

    @as_altered
    def _begin_restore(self, target: int, then: TableSpec, marks: dict[str, Any]) -> Restore:
        from lakehouse.operations.restore import Restore  # noqa: PLC0415 - late

        return self._begin(Restore, marks, target=target, then=then)

    def begin_rewrite(self, altered: TableSpec, engine: str | None, wait_seconds: float | None) -> Compaction:
        """Begin to write the whole table anew for another definition; users' replaces wait for it."""
        from lakehouse.operations.compaction import Compaction, locked_for_compaction  # noqa: PLC0415 - late

        interval = altered.grain.align(locked_for_compaction(self._session, self._spec, None))
        begun = self._session.writing().begin(
            self._spec,
            Kind.COMPACTION,
            interval=interval,
            priority=Priority.USER,
            wait_seconds=self._wait(wait_seconds),
        )
        op = Compaction(self._session, begun, engine=self._session.engine(engine), every=True)
        op.write_as(altered)
        return op

    def _maintains(self, kind: Kind, interval: Interval, wait_seconds: float) -> Begun:
        """Begin an operation that holds chunks until a user's operation takes them."""
        return self._session.writing().begin(
            self._spec,
            kind,
            interval=interval,
            priority=Priority.MAINTENANCE,
            wait_seconds=self._wait(wait_seconds),
        )

    def _begin(self, operation: type[Began], marks: dict[str, Any], **what: Any) -> Began:
        """Begin an operation that takes no lock."""
        return operation(self._session, self._session.writing().begin(self._spec, operation.kind), **what, **marks)

    def _wait(self, wait_seconds: float | None) -> float:
        return self._session.wait_seconds if wait_seconds is None else read_wait(wait_seconds)


def marks_of(message: Any, properties: Any, txn: Any = None) -> dict[str, Any]:
    """The marks of a commit, checked."""
    return {"txn": read_txn(txn), "message": read_message(message), "properties": read_properties(properties)}
