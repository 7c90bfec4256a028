"""Operations on many tables that become one version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa

from lakehouse.arguments import Fit, Rows, Txn, read_fit, read_txn
from lakehouse.core.commit import Commit
from lakehouse.core.interval import IntervalLike
from lakehouse.core.operation import Kind
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import InvalidArgument, OperationEnded, WriteConflict
from lakehouse.operations.alter import Alter
from lakehouse.operations.append import Append
from lakehouse.operations.clauses import Found, Whens
from lakehouse.operations.merge import Merge
from lakehouse.operations.operation import Operation, commit_together
from lakehouse.operations.replace import Replace
from lakehouse.operations.row_change import Delete, RowChange, Update
from lakehouse.operations.upsert import DeleteKeys, Upsert
from lakehouse.schema import SchemaChange, altered, key_fields, merging
from lakehouse.session.session import Session
from lakehouse.table.fits import with_columns
from lakehouse.table.table import Table
from lakehouse.table.tables import open_table


class Transaction:
    """Writes to any number of tables; leaving the block commits all as one version, an exception commits none.

    Rows are stored when a write is called, and visible to nobody, including this transaction, before the commit.

    Examples
    --------
    >>> planes = lake.create_table("planes", "at TIMESTAMP, id BIGINT, carrier STRING, delay BIGINT", time="at")
    >>> with lake.transaction(message="new season") as tx:
    ...     replaced = tx.table("flights").replace(late, "2013-01-05")
    ...     added = tx.table("planes").append(late)
    >>> tx.commit().tables, flights.count(), planes.count()
    (('flights', 'planes'), 3, 2)
    """

    def __init__(self, session: Session, *, message: str | None, properties: Mapping[str, str] | None) -> None:
        self._session = session
        self._message = message
        self._properties = properties
        self._operations: list[Operation] = []
        self.columns: dict[TableId, TableSpec] = {}
        """Definitions that the transaction makes, by table."""
        self._commit: Commit | None = None
        self._ended = False
        self._is_aborted = False

    def table(self, name: str) -> TransactionTable:
        """A table to write to. Raises `TableNotFound`."""
        self._require_open()
        return TransactionTable(self, open_table(self._session, name))

    def once(self, name: str, txn: Txn) -> None:
        """Mark the whole transaction with a ``txn`` on a table: nothing of it is committed if that was before.

        The commit then returns that version. Call it after all writes.

        >>> for _ in range(2):
        ...     with lake.transaction() as tx:
        ...         added = tx.table("flights").append(late)
        ...         tx.once("flights", ("feed", 1))
        >>> flights.count()
        5
        """
        self._require_open()
        operation = open_table(self._session, name).begin_append(txn)
        operation.guard()
        self.add(operation)

    def add(self, operation: Operation) -> None:
        """Add an operation, which then commits with the others."""
        self._require_open()
        others = [one for one in self._operations if one.begun.table.id == operation.begun.table.id]
        if others and not may_follow(operation.kind, {one.kind for one in others}):
            operation.abort()
            raise InvalidArgument(
                f"{operation.kind.value} would not see what was written to the table before it; put it first",
                table=operation.begun.table.name,
                before=sorted({one.kind.value for one in others}),
            )
        if operation.txn is not None and any(one.txn == operation.txn for one in others):
            operation.abort()
            raise InvalidArgument(
                "one txn stands for one write to a table; give each its own",
                table=operation.begun.table.name,
                txn=operation.txn,
            )
        self._operations.append(operation)

    def commit(self) -> Commit | None:
        """Commit now, once; None if nothing was written. A write that failed is not part of it.

        A second call returns the same commit. Raises `WriteConflict`, which ends the transaction; after an error of the
        catalog's database it may be called again. Raises `InvalidInput` after `abort`.
        """
        if self._is_aborted:
            raise OperationEnded("the transaction was aborted; open another")
        if not self._ended:
            for operation in self._operations:
                operation.require_own()
            operations = [one for one in self._operations if not one.has_failed]
            if operations:
                try:
                    self._commit = commit_together(self._session, operations, self._message, self._properties)
                except WriteConflict:
                    self.abort()
                    raise
            self._ended = True
        return self._commit

    def abort(self) -> None:
        """Abort every operation. Raises `InvalidInput` if the transaction is committed."""
        if self._commit is not None:
            raise OperationEnded("the transaction is committed; use restore to undo it", version=self.version)
        self._ended = self._is_aborted = True
        for operation in self._operations:
            operation.abort()

    @property
    def version(self) -> int | None:
        """The version that the transaction made; None before its commit."""
        return None if self._commit is None else self._commit.version

    def _require_open(self) -> None:
        if self._ended:
            raise OperationEnded("the transaction has ended; open another")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        if kind is not None:
            self.abort()
            return
        try:
            self.commit()
        except BaseException:
            if not self._ended:
                self.abort()
            raise


def may_follow(kind: Kind, others: set[Kind]) -> bool:
    """Whether an operation may follow others on its table: it neither sees nor hides their rows."""
    others = others - {Kind.ALTER}
    if not others:
        return kind in (Kind.ALTER, Kind.APPEND, Kind.REPLACE, Kind.UPSERT, Kind.DELETE_KEYS)
    return kind is Kind.APPEND or (kind is Kind.REPLACE and others == {Kind.REPLACE})


A = TypeVar("A", bound=Append)
C = TypeVar("C", bound=RowChange)


def committed_once(
    table: Table,
    txn: Txn | None,
    work: Callable[[Transaction], object],
    *,
    message: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Commit | None:
    """Commit what ``work`` writes in a transaction, once for a ``txn`` on a table: the version that has it already.

    ``work`` is not called if the ``txn`` is known to be committed. None if nothing was written and there is no ``txn``.
    """
    session = table.session
    with Transaction(session, message=message, properties=properties) as transaction:
        if txn is None or not session.catalog.committed(table.spec.id, txn):
            work(transaction)
        if txn is not None:
            transaction.once(table.name, txn)
    return transaction.commit()


class TransactionTable:
    """A table inside a transaction. Its writes return the operation, not a commit, since all commit together."""

    def __init__(self, transaction: Transaction, table: Table) -> None:
        self._transaction = transaction
        self._table = table

    def alter(self, changes: Sequence[SchemaChange]) -> Alter:
        """Change the table's columns: values of `lakehouse.schema.changes`; rows written after it have the new ones."""
        operation = self._table.begin_alter(changes)
        self._add(operation)
        self._transaction.columns[operation.begun.table.id] = altered(operation.begun.table, list(changes))
        return operation

    def append(self, data: Rows, *, txn: Txn | None = None, schema: Fit = "strict") -> Append:
        """Add rows. ``schema`` is that of `Table.append`; columns are made before other writes to the table only."""
        data = self.fit(data, schema, txn)
        return self._written(self._table.begin_append(txn), data, schema)

    def replace(
        self,
        data: Rows | None,
        interval: IntervalLike | None = None,
        *,
        keys: Mapping[str, Any] | None = None,
        txn: Txn | None = None,
        schema: Fit = "strict",
    ) -> Replace:
        """Replace the rows of an interval (and of these keys); must come before an append to the table."""
        self._require_layout()
        data = self.fit(data, schema, txn)
        return self._written(self._table.begin_replace(interval, keys, txn), data, schema)

    def drop(self, interval: IntervalLike | None = None, *, keys: Mapping[str, Any] | None = None) -> Replace:
        """Drop the rows of an interval (and of these keys)."""
        return self.replace(None, interval, keys=keys)

    def upsert(
        self, data: Rows, *, newest: str | None = None, txn: Txn | None = None, schema: Fit = "strict"
    ) -> Upsert:
        """Insert rows, replacing those with the same primary keys; must come before other writes to the table."""
        self._require_layout()
        data = self.fit(data, schema, txn)
        return self._written(self._table.begin_upsert(txn, newest=newest), data, schema)

    def delete_keys(self, data: Rows, *, txn: Txn | None = None) -> DeleteKeys:
        """Remove every row with one of these primary keys; must come before other writes to the table."""
        self._require_layout()
        operation = self._table.begin_delete_keys(txn)
        self._add(operation)
        operation.write(data)
        return operation

    def delete(self, where: str) -> Delete:
        """Remove the rows for which a predicate is true; must come before other writes to the table.

        This, `update` and `merge` read the current rows: the whole transaction raises `WriteConflict` at its commit if
        others changed them meanwhile.
        """
        return self._run(self._table.begin_delete(where))

    def update(self, assigned: Mapping[str, str], where: str) -> Update:
        """Set columns of some rows to new values; must come before other writes to the table."""
        return self._run(self._table.begin_update(assigned, where))

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
    ) -> Merge:
        """Merge rows as `Table.merge` does; must come before other writes to the table."""
        return self._run(
            self._table.begin_merge(
                source,
                on,
                when_matched_update=when_matched_update,
                when_matched_delete=when_matched_delete,
                when_not_matched_insert=when_not_matched_insert,
                when_not_matched_by_source_update=when_not_matched_by_source_update,
                when_not_matched_by_source_delete=when_not_matched_by_source_delete,
                engine=engine,
            )
        )

    def merge_when(self, source: Rows, on: str | Sequence[str], whens: Whens) -> Merge:
        """Merge by clauses with conditions of their own; must come before other writes to the table."""
        return self._run(self._table.begin_merge_when(source, on, whens))

    def change_found(self, find: Callable[[int], pa.Table], columns: Sequence[str] | None) -> Merge:
        """Change or delete the rows that ``find`` names; must come before other writes to the table."""
        return self._run(self._table.begin_found_rows(find, columns))

    def merge_found(
        self, find: Callable[[int], AbstractContextManager[Rows]], clauses: Sequence[Found], *, is_repeatable: bool
    ) -> Merge:
        """Merge rows that ``find`` gives, each with its clause; must come before other writes to the table."""
        return self._run(self._table.begin_found_merge(find, clauses, is_repeatable=is_repeatable))

    def fit(self, data: Rows | None, schema: Fit, txn: Txn | None = None) -> Any:
        """Rows to write later; with ``merge`` the transaction first makes the columns that they need.

        Writes call it. Call it before the first write to the table, if that is one of other rows. Nothing is made for a
        ``txn`` that was committed before.
        """
        if read_fit(schema) != "merge" or data is None:
            return data
        self._table.refresh()
        spec = self._transaction.columns.get(self._table.spec.id, self._table.spec)
        rows, columns = with_columns(data, spec.schema)
        changes = merging(spec, columns)
        mark = read_txn(txn)
        if changes and not (mark is not None and self._table.session.catalog.committed(spec.id, mark)):
            self.alter(changes)
        return rows

    def _written(self, operation: A, data: Rows, schema: Fit) -> A:
        """An operation, added and with rows."""
        self._add(operation)
        if schema != "strict":
            operation.write_leniently()
        operation.write(data)
        return operation

    def _add(self, operation: Operation) -> None:
        """Add an operation; it writes for the columns that the transaction makes."""
        self._transaction.add(operation)
        columns = self._transaction.columns.get(operation.begun.table.id)
        if columns is not None:
            operation.write_as(columns)

    def _require_layout(self) -> None:
        """Refuse a write that locks, clusters or names rows by a layout that the transaction changes."""
        known = self._table.spec
        made = self._transaction.columns.get(known.id, known)
        if (key_fields(made), made.cluster_by, made.grain) != (key_fields(known), known.cluster_by, known.grain):
            raise InvalidArgument(
                "the transaction gives the table other keys or another layout, by which its own writes cannot go; "
                "commit that first",
                table=known.name,
            )

    def _run(self, operation: C) -> C:
        try:
            self._require_layout()
        except InvalidArgument:
            operation.abort()
            raise
        self._transaction.add(operation)
        operation.run()
        return operation
