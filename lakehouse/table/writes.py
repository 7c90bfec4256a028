"""A table's writes in one call: each begins an operation, runs it, commits, and retries where others are in its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from lakehouse.admin.export import renew_exports
from lakehouse.arguments import Txn, read_properties, read_text
from lakehouse.core.commit import Commit
from lakehouse.core.erased import Erased
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import LockLost, LockTimeout, WriteConflict
from lakehouse.operations.clauses import Whens, read_arguments, read_source
from lakehouse.operations.compaction import commit_if_useful
from lakehouse.operations.erase import Erase
from lakehouse.operations.retry import retried
from lakehouse.operations.row_change import RowChange
from lakehouse.table.begins import Begins, marks_of


class Writes(Begins):
    """What changes one table. ``message``, ``properties`` and ``txn`` are those of `Begins`.

    ``data`` is a Spark frame (written by Spark's tasks), or anything that Arrow can read: pyarrow, pandas, polars,
    DuckDB relations, readers of batches (written in process, without a job). Its columns are matched by name.

    What all of them may raise: `InvalidInput` for arguments and rows that cannot be (nothing is committed then),
    `StorageUnavailable` for a full or broken disk, `CatalogUnavailable`, and `CommitUnknown` if the answer to the
    commit was lost and cannot be found out.
    """

    def append(
        self,
        data: Any,
        *,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Add rows and return the commit. It takes no lock and waits for nobody.

        Cost: the rows; the commit does not depend on the size of the table. Raises `InvalidRows`.

        >>> flights.append(late, message="two late flights", txn=("nightly", 17)).rows_added
        2
        >>> flights.append(late, txn=("nightly", 17)).message, flights.count()
        ('two late flights', 5)
        """
        if is_spark_frame(data):
            op = self.begin_append(txn, message=message, properties=properties)
        else:
            op = self._begin_ahead(marks_of(message, properties, txn))
        with op:
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
        """Put ``data`` in place of every row in the interval (and of these keys); None or no rows drops what is there.

        Arguments as of `begin_replace`. Cost: the rows, and what is live in the interval's chunks. Raises `RowsOutside`
        for rows outside of the interval or keys, `LockTimeout` if another replace holds a chunk for too long,
        `LockLost` if the operation's lease ran out and another one took its chunks.

        >>> flights.replace(late.slice(0, 1), "2013-01-05").rows_deleted
        2
        """
        with self.begin_replace(
            interval, keys=keys, txn=txn, wait_seconds=wait_seconds, message=message, properties=properties
        ) as op:
            op.write(data)
            return op.commit()

    def drop(
        self,
        interval: Any,
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
        where: str,
        *,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Remove the rows for which a SQL predicate is true; ``TRUE`` means all.

        It takes no lock and waits for nobody. ``engine``: ``duckdb`` (in process, the default) or ``spark``. Cost: the
        predicate's columns of the segments whose bounds it meets; a predicate that says nothing but an interval and
        values of cluster columns reads no row. Raises `InvalidPredicate`, and `WriteConflict` if the table is restored
        meanwhile each time, and for longer than the lake waits.

        >>> flights.delete("delay > 5").rows_deleted
        1
        """
        return self._repeated(
            lambda: self.begin_delete(where, engine=engine, txn=txn, message=message, properties=properties)
        )

    def update(
        self,
        assigned: Mapping[str, str],
        where: str,
        *,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Give columns new values, SQL expressions over the row, where a predicate is true. Rows keep their ids.

        If another operation changes one of these rows meanwhile, this one runs again on what is there then. Cost: the
        segments whose bounds the predicate meets, and a copy of the rows. Raises `InvalidPredicate`, `UnknownColumn`,
        `InvalidRows` for a value that a column cannot hold, and `WriteConflict` if it conflicts each time, and for
        longer than the lake waits.

        >>> flights.update({"delay": "delay + 1"}, "carrier = 'UA'").rows_added
        2
        """
        return self._repeated(
            lambda: self.begin_update(assigned, where, engine=engine, txn=txn, message=message, properties=properties)
        )

    def erase(
        self,
        where: str,
        *,
        reason: str | None = None,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Erased:
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

        >>> erased = flights.erase("carrier = 'UA'", reason="request 17")
        >>> erased.rows_deleted, flights.scan(as_of=erased.version - 1).count()
        (2, 1)
        """
        last: list[Erase] = []
        if reason is not None:
            properties = {**(read_properties(properties) or {}), "reason": read_text(reason, "reason")}

        def begin() -> Erase:
            last[:] = [self.begin_erase(where, engine=engine, txn=txn, message=message, properties=properties)]
            return last[0]

        commit = self._repeated(begin)
        renew_exports(self._session.catalog, self._session.warehouse)
        return last[0].erased(commit)

    def upsert(
        self,
        data: Any,
        *,
        newest: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Write rows in the place of those with their primary keys. Reads nothing, waits for nobody, never conflicts.

        ``newest``: the column whose greatest value says which of several rows with one key is meant. Cost: the rows.
        Raises `NoPrimaryKey`, `DuplicateKey` for a key that is there twice without ``newest``, `InvalidRows`.

        >>> added = flights.upsert(late)
        >>> flights.scan(where="id IN (1, 4)").to_arrow()["delay"].to_pylist()
        [42, 7]
        """
        with self.begin_upsert(txn, newest=newest, message=message, properties=properties) as op:
            op.write(data)
            return op.commit()

    def delete_keys(
        self,
        data: Any,
        *,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Remove every row with one of these primary keys: rows that have at least the key's columns. Reads nothing.

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
        source: Any,
        on: str | Sequence[str],
        *,
        when_matched_update: Mapping[str, str] | bool | None = None,
        when_matched_delete: str | bool | None = None,
        when_not_matched_insert: Mapping[str, str] | bool = True,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Put each row of ``source`` to the rows that it matches: update or delete those, or insert it if none does.

        ``on``: a SQL condition over ``target.column`` and ``source.column``, or columns that must be equal. Updates and
        inserts are SQL expressions by column; True takes the source's columns of the same names. A row for which
        ``when_matched_delete`` (a condition; True: always) holds is deleted, not updated. Case does not count in
        columns' names.

        If another operation changes one of these rows meanwhile, this one runs again. Cost: the columns of ``on`` in
        the segments whose bounds the source's keys meet, and a copy of the rows that match. Raises `InvalidMerge`,
        `UnknownColumn`, `DuplicateKey` where two rows of the source would change one row, and `WriteConflict` if it
        conflicts each time, and for longer than the lake waits.

        >>> merged = flights.merge(late, on=["id"], when_matched_update={"delay": "source.delay"})
        >>> merged.rows_added, flights.count()
        (2, 4)
        """
        whens = read_arguments(when_matched_update, when_matched_delete, when_not_matched_insert)
        return self.merge_when(source, on, whens, engine=engine, txn=txn, message=message, properties=properties)

    def merge_when(
        self,
        source: Any,
        on: str | Sequence[str],
        whens: Whens,
        *,
        engine: str | None = None,
        txn: Txn | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Merge by clauses with conditions of their own, the first of which counts that a row meets; as `merge`."""
        marks = marks_of(message, properties, txn)
        read = read_source(source, self._spec)
        return self._repeated(lambda: self._begin_merge(read, on, whens, engine, marks))

    def change_found(self, find: Callable[[int], pa.Table], columns: Sequence[str] | None) -> Commit:
        """Change or delete the rows that ``find`` names; it is asked again, at a newer base, where others conflict."""
        return self._repeated(lambda: self.begin_found_rows(find, columns))

    def resolve(
        self,
        *,
        engine: str | None = None,
        message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit | None:
        """Turn key tombstones into row tombstones, so that reads need not compare keys; None if there are none.

        Reads the key columns of what they may be about. Runs beside everything and changes no row.

        >>> added = flights.upsert(late)
        >>> flights.resolve().operation, flights.resolve()
        ('resolve', None)
        """
        return retried(
            lambda: commit_if_useful(self.begin_resolve(engine=engine, message=message, properties=properties)),
            on=WriteConflict,  # files that it read were erased and collected
            wait_seconds=self._session.wait_seconds,
        )

    def clean(
        self, interval: Any = None, *, message: str | None = None, properties: Mapping[str, str] | None = None
    ) -> Commit | None:
        """Drop segments that can no longer be seen, and tombstones that hide nothing; None if there are none.

        Reads no row. Raises `LockTimeout` if a user's operation holds a chunk, `LockLost` if one took it meanwhile.

        >>> flights.clean() is None
        True
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
        """Rewrite small and masked segments into fewer; None when there is nothing to gain. No row changes.

        Where a user's operation takes a chunk from it, it waits for that one's end and begins again; so it does where
        rows are erased from what it read. Cost: the bytes of the segments that gain by it. Raises `LockTimeout` if one
        holds a chunk when it begins, or for longer than the lake waits, `LockLost` if it loses what it has each time,
        and for longer than the lake waits.

        >>> added = flights.append(late)
        >>> before = len(flights.segments())
        >>> flights.compact().operation, before, len(flights.segments())
        ('compact', 3, 2)
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
        """Make the table what it was at a version, tag or time, by a new commit; history stays.

        Waits for running replaces of chunks that change; takes them from maintenance. Cost: what was added and dropped
        since, no row is read. Raises `VersionNotFound`, `InvalidVersion`, `LockTimeout`.

        >>> gone = flights.delete("TRUE")
        >>> back = flights.restore(gone.version - 1)
        >>> flights.count()
        3
        """
        target = self._at(version)
        marks = marks_of(message, properties)
        waits = self._wait(wait_seconds)
        with self._begin_restore(target, marks) as op:
            op.wait_seconds = waits
            return op.commit()

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
