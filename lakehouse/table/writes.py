"""A table's writes in one call: each begins an operation, runs it, commits, and retries after conflicts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse.arguments import Fit, Rows, Txn, Where, read_properties, read_text
from lakehouse.catalog.reader import ReadPoint
from lakehouse.core.commit import Commit
from lakehouse.core.erased import Erased
from lakehouse.core.interval import AsOf, IntervalLike
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import LockLost, LockTimeout, StorageUnavailable, WriteConflict, coded
from lakehouse.table.begins import marks_of
from lakehouse.table.fits import Fits

if TYPE_CHECKING:
    from lakehouse.operations.append import Append
    from lakehouse.operations.clauses import Found, Whens
    from lakehouse.operations.erase import Erase
    from lakehouse.operations.replace import Replace
    from lakehouse.operations.row_change import RowChange

logger = logging.getLogger(__name__)


class Writes(Fits):
    """Writes to one table. ``message``, ``properties`` and ``txn`` are those of `Begins`.

    ``data`` is a Spark frame (written by Spark's tasks), or anything that Arrow can read: pyarrow, pandas, polars,
    DuckDB relations, readers of batches (written in process, without a job). Its columns are matched by name;
    ``schema`` says what becomes of others than the table's (`Fits`).

    All of them may raise `InvalidInput` for invalid arguments and rows (nothing is committed then),
    `StorageUnavailable` for a full or broken disk, `CatalogUnavailable`, and `CommitUnknown` if the answer to the
    commit was lost and the outcome cannot be found out.
    """

    def append(
        self,
        data: Rows,
        *,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
        schema: Fit = "strict",
    ) -> Commit:
        """Add rows and return the commit. It takes no lock and never waits.

        Cost: the rows; the commit does not depend on the size of the table. Raises `InvalidRows`, and for
        ``schema="merge"`` `InvalidSchema` and `InvalidName`.

        >>> flights.append(late, message="two late flights", txn=("nightly", 17)).rows_added
        2
        >>> flights.append(late, txn=("nightly", 17)).message, flights.count()
        ('two late flights', 5)
        """
        marks = marks_of(message, properties, txn)

        def begin(alone: bool) -> Append:
            return self._begin_ahead(marks) if alone and not is_spark_frame(data) else self._begin_append(marks)

        return self._write(begin, data, schema, marks)

    def replace(
        self,
        data: Rows | None,
        interval: IntervalLike | None = None,
        *,
        keys: Mapping[str, Any] | None = None,
        txn: Txn | None = None,
        wait_seconds: float | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
        schema: Fit = "strict",
    ) -> Commit:
        """Replace every row of the interval (and of these keys) by ``data``; None or no rows drops them.

        A timeless table has no intervals: every row (of these keys) is replaced.

        Arguments as for `begin_replace`. Cost: the rows, and what is live in the interval's chunks.
        Raises `RowsOutside` for rows outside the interval or keys, `LockTimeout` if another replace holds a chunk for
        too long, `LockLost` if the operation's lease expired and another one took its chunks; errors of columns are
        those of `append`.

        >>> flights.replace(late.slice(0, 1), "2013-01-05").rows_deleted
        2
        """
        marks = marks_of(message, properties, txn)

        def begin(_: bool) -> Replace:
            return self.begin_replace(interval, keys=keys, wait_seconds=wait_seconds, **marks)

        return self._write(begin, data, schema, marks)

    def drop(
        self,
        interval: IntervalLike | None = None,
        *,
        keys: Mapping[str, Any] | None = None,
        txn: Txn | None = None,
        wait_seconds: float | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Drop the rows of an interval (and of these keys): a `replace` by nothing.

        >>> flights.drop("2013-01-06").rows_deleted
        1
        """
        return self.replace(
            None,
            interval,
            keys=keys,
            txn=txn,
            wait_seconds=wait_seconds,
            message=message,
            properties=properties,
        )

    def delete(
        self,
        where: Where,
        *,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Remove the rows for which a SQL predicate is true; ``TRUE`` means all.

        It takes no lock and never waits. ``engine``: ``duckdb`` (in process, the default) or ``spark``. Cost: the
        predicate's columns in segments that its bounds do not rule out; a predicate of only an interval and values of
        cluster columns reads no row. Raises `InvalidPredicate`, and `WriteConflict` if restores of the table conflict
        with it until the lake's ``wait_seconds`` elapse.

        >>> flights.delete("delay > 5").rows_deleted
        1
        """
        return self._repeated(
            lambda: self.begin_delete(where, engine=engine, txn=txn, message=message, properties=properties)
        )

    def update(
        self,
        assigned: Mapping[str, str],
        where: Where,
        *,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Set columns to new values (SQL expressions over the row) where a predicate is true. Rows keep their ids.

        If another operation changes one of these rows meanwhile, this one retries on the new rows. Cost: the segments
        that the predicate's bounds do not rule out, and a copy of the rows. Raises `InvalidPredicate`, `UnknownColumn`,
        `InvalidRows` for a value that a column cannot hold, and `WriteConflict` if it still conflicts after the lake's
        ``wait_seconds``.

        >>> flights.update({"delay": "delay + 1"}, "carrier = 'UA'").rows_added
        2
        """
        return self._repeated(
            lambda: self.begin_update(assigned, where, engine=engine, txn=txn, message=message, properties=properties)
        )

    def erase(
        self,
        where: Where,
        *,
        reason: str | None = None,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Erased:
        """Remove the rows for which a SQL predicate is true from every version, as a law may demand.

        This covers rows visible in some version and rows hidden in all; their values are also removed from the
        catalog's bounds and indexes, and from its exports, which are written again. `Lake.collect` deletes the old
        files after its grace. Where changes were applied, what remembers them forgets the keys of these rows. Rows
        committed after it began stay: first stop what writes them. It never waits; updates
        and compactions that read such rows and have not committed retry. Keys of replaces are removed if the predicate
        has only values of cluster columns; ``residue`` of the result names where values of the rows may remain, exports
        among them if these could not be written again.

        ``reason``: stored in the commit's properties, with a receipt: who (``by``: as given, else the process's user),
        segments rewritten and removed, files to go and their grace, versions that stay readable. ``engine``: ``duckdb``
        (in process, the default) or ``spark``, whose tasks then search the segments.

        Cost: the filter's columns in segments of all versions that its bounds do not rule out; a copy of those with
        such rows. Raises `SegmentUnreadable`, and changes nothing, if a file cannot be read; `WriteConflict` if updates
        and compactions keep outrunning the search until the lake's ``wait_seconds`` elapse.

        >>> erased = flights.erase("carrier = 'UA'", reason="request 17")
        >>> erased.rows_deleted, flights.scan(as_of=erased.version - 1).count()
        (2, 1)
        """
        from lakehouse.admin.export import renew_exports  # noqa: PLC0415 - late
        from lakehouse.storage.exports import count_exports  # noqa: PLC0415 - late

        last: list[Erase] = []
        if reason is not None:
            properties = {**(read_properties(properties) or {}), "reason": read_text(reason, "reason")}

        def begin() -> Erase:
            last[:] = [self.begin_erase(where, engine=engine, txn=txn, message=message, properties=properties)]
            return last[0]

        commit = self._repeated(begin)
        warehouse = self._session.warehouse
        exports: tuple[int, int] | None
        try:
            renew_exports(self._session.catalog, warehouse)
            exports = count_exports(warehouse)
        except StorageUnavailable as error:  # the erasure stands, so this is no error of it
            logger.warning("exports were not written again after an erasure: %s", coded(error))
            exports = None
        return last[0].erased(commit, exports)

    def upsert(
        self,
        data: Rows,
        *,
        newest: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
        schema: Fit = "strict",
    ) -> Commit:
        """Insert rows, replacing those with the same primary keys. Reads nothing, never waits, never conflicts.

        ``newest``: of several rows with the same key, the one with the greatest value in this column is kept. Cost: the
        rows. Raises `NoPrimaryKey`, `DuplicateKey` for a repeated key without ``newest``; errors of columns are those
        of `append`.

        >>> added = flights.upsert(late)
        >>> flights.scan(where="id IN (1, 4)").to_arrow()["delay"].to_pylist()
        [42, 7]
        """
        marks = marks_of(message, properties, txn)
        return self._write(lambda _: self._begin_upsert(newest, marks), data, schema, marks)

    def delete_keys(
        self,
        data: Rows,
        *,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Remove every row with one of these primary keys; ``keys`` has at least the key's columns. Reads nothing.

        Cost: the keys. Raises `NoPrimaryKey`, `InvalidRows`.

        >>> gone = flights.delete_keys(late.select(["id"]))
        >>> flights.count()
        2
        """
        with self.begin_delete_keys(txn, message=message, properties=properties) as op:
            op.write(data)
            return op.commit()

    def merge(
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
    ) -> Commit:
        """Match each row of ``source`` with rows of the table: update or delete those, or insert it if there are none.

        ``on``: a SQL condition over ``target.column`` and ``source.column``, or columns that must be equal. Updates and
        inserts are SQL expressions by column; True takes the source's columns of the same names. A row for which
        ``when_matched_delete`` (a condition; True: always) holds is deleted, not updated. Rows of the table that no row
        of ``source`` matches stay, or are deleted and updated in the same way by the last two arguments, which may name
        the table's columns only. Names of columns ignore case.

        If another operation changes one of these rows meanwhile, this one retries. Cost: the columns of ``on`` in
        segments that the bounds of the source's keys do not rule out, and a copy of the changed rows; for rows without
        a match also a read of the table, or of segments that can hold a row for which a condition of theirs holds.
        Raises `InvalidMerge`, `UnknownColumn`, `DuplicateKey` if two rows of the source would change one row, and
        `WriteConflict` if it still conflicts after the lake's ``wait_seconds``.

        >>> merged = flights.merge(late, on=["id"], when_matched_update={"delay": "source.delay"})
        >>> merged.rows_added, flights.count()
        (2, 4)
        """
        from lakehouse.operations.clauses import read_arguments  # noqa: PLC0415 - late

        whens = read_arguments(
            when_matched_update,
            when_matched_delete,
            when_not_matched_insert,
            when_not_matched_by_source_update,
            when_not_matched_by_source_delete,
        )
        return self.merge_when(source, on, whens, engine=engine, txn=txn, message=message, properties=properties)

    def merge_when(
        self,
        source: Rows,
        on: str | Sequence[str],
        whens: Whens,
        *,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Merge by clauses with their own conditions, of which the first that a row meets applies; else as `merge`."""
        from lakehouse.operations.clauses import read_source  # noqa: PLC0415 - late

        marks = marks_of(message, properties, txn)
        known = self._spec
        read = read_source(source, known)
        return self._repeated(lambda: self._begin_merge(known, read, on, whens, engine, marks))

    def change_found(self, find: Callable[[int], pa.Table], columns: Sequence[str] | None) -> Commit:
        """Change or delete the rows that ``find`` names; it is asked again, at a newer base, where others conflict."""
        return self._repeated(lambda: self.begin_found_rows(find, columns))

    def merge_found(
        self, find: Callable[[int], AbstractContextManager[Rows]], clauses: Sequence[Found], *, is_repeatable: bool
    ) -> Commit:
        """Merge rows that ``find`` gives, each with its clause; it is asked again where others conflict."""
        return self._repeated(lambda: self.begin_found_merge(find, clauses, is_repeatable=is_repeatable))

    def resolve(
        self,
        *,
        engine: str | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit | None:
        """Turn key tombstones into row tombstones, so reads need not compare keys; None if there are none.

        Reads the key columns of segments that they may reach. Runs concurrently with everything and changes no row.

        >>> added = flights.upsert(late)
        >>> flights.resolve().operation, flights.resolve()
        ('resolve', None)
        """
        from lakehouse.operations.compaction import commit_if_useful  # noqa: PLC0415 - late
        from lakehouse.operations.retry import retried  # noqa: PLC0415 - late

        return retried(
            lambda: commit_if_useful(self.begin_resolve(engine=engine, message=message, properties=properties)),
            on=WriteConflict,  # files that it read were erased and collected
            wait_seconds=self._session.wait_seconds,
        )

    def clean(
        self,
        interval: IntervalLike | None = None,
        *,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit | None:
        """Drop overshadowed segments, and tombstones that hide nothing; None if there are none.

        Reads no row. Raises `LockTimeout` if a user's operation holds a chunk, `LockLost` if one took it meanwhile.

        >>> flights.clean() is None
        True
        """
        from lakehouse.operations.compaction import commit_if_useful  # noqa: PLC0415 - late

        return commit_if_useful(self.begin_clean(interval, message=message, properties=properties))

    def compact(
        self,
        interval: IntervalLike | None = None,
        *,
        engine: str | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit | None:
        """Compact small and masked segments into fewer; None if there is nothing to gain. No row changes.

        If a user's operation takes a chunk from it, it waits for that operation and retries; it also retries if rows
        were erased from what it read. Cost: the bytes of the segments that gain from it. Raises `LockTimeout` if a
        user's operation holds a chunk for longer than the lake waits, `LockLost` if it keeps losing its chunks until
        the lake's ``wait_seconds`` elapse.

        >>> added = flights.append(late)
        >>> before = len(flights.segments())
        >>> flights.compact().operation, before, len(flights.segments())
        ('compact', 3, 2)
        """
        from lakehouse.operations.compaction import commit_if_useful  # noqa: PLC0415 - late
        from lakehouse.operations.retry import retried  # noqa: PLC0415 - late

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
        version: AsOf | None,
        *,
        wait_seconds: float | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Restore the table's rows and columns to a version, tag or time, as a new commit; history stays.

        Waits for running replaces of the chunks that change, and takes them from maintenance. Cost: what was added and
        dropped since; no row is read. Raises `VersionNotFound`, `InvalidVersion`, `LockTimeout`.

        >>> gone = flights.delete("TRUE")
        >>> back = flights.restore(gone.version - 1)
        >>> flights.count()
        3
        """
        target = self._point(version)
        marks = marks_of(message, properties)
        waits = self._wait(wait_seconds)
        with self._begin_restore(target.version, target.spec, marks) as op:
            op.wait_seconds = waits
            commit = op.commit()
        if self._spec.schema_number:
            self.refresh()
        return commit

    def _repeated(self, begin: Callable[[], RowChange | Erase]) -> Commit:
        """Run an operation, and retry it after a conflict; if a replace is in the way, after that."""
        from lakehouse.operations.retry import retried  # noqa: PLC0415 - late

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

    def _at(self, as_of: AsOf | None) -> int:
        """The table's newest version at or before ``as_of``."""
        return self._point(as_of).version

    def _point(self, as_of: AsOf | None) -> ReadPoint:
        """What a read at ``as_of`` needs; a new definition of the table is noticed here."""
        found = self._session.catalog.resolve_as_of(self._spec, self._created_version, as_of)
        if as_of is None:
            self._spec = found.spec
        return found
