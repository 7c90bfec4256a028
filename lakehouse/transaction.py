"""Operations on many tables that become one version."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from lakehouse.arguments import Txn
from lakehouse.core.commit import Commit
from lakehouse.core.operation import Kind
from lakehouse.errors import InvalidInput
from lakehouse.operation import Append, Operation, Replace
from lakehouse.table import Table

if TYPE_CHECKING:
    from lakehouse.lake import Lake


class Transaction:
    """Writes on any number of tables; leaving the block commits them all as one version, an exception none.

    Rows are stored when a write is called and seen by nobody, this transaction included, before the commit.

    Examples
    --------
    >>> with lake.transaction(message="new season") as tx:                              # doctest: +SKIP
    ...     tx.table("airlines").replace(airlines, "2013")
    ...     tx.table("planes").append(planes)
    >>> tx.commit().version                                                             # doctest: +SKIP
    12
    """

    def __init__(self, lake: Lake, *, message: str | None, properties: Mapping[str, str] | None) -> None:
        self._lake = lake
        self._message = message
        self._properties = properties
        self._operations: list[Operation] = []
        self._commit: Commit | None = None
        self._ended = False

    def table(self, name: str) -> TransactionTable:
        """A table to write to. Raises `TableNotFound`."""
        self._require_open()
        return TransactionTable(self, self._lake.table(name))

    def add(self, operation: Operation) -> None:
        """Take an operation in, which then commits with the others."""
        self._require_open()
        others = [one for one in self._operations if one.begun.table.id == operation.begun.table.id]
        if operation.kind is Kind.REPLACE and any(one.kind is Kind.APPEND for one in others):
            operation.abort()
            raise InvalidInput(
                "a replace after an append to the same table would not hide its rows; put the replace first",
                table=operation.begun.table.name,
            )
        if operation.txn is not None and any(one.txn == operation.txn for one in others):
            operation.abort()
            raise InvalidInput(
                "one txn stands for one write to a table; give each its own",
                table=operation.begun.table.name,
                txn=operation.txn,
            )
        self._operations.append(operation)

    def commit(self) -> Commit | None:
        """Commit now, once; None if nothing was written. A write that failed is not part of it."""
        if not self._ended:
            self._ended = True
            operations = [one for one in self._operations if not one.has_failed]
            if operations:
                self._commit = self._lake.catalog.commit(
                    [operation.contribution() for operation in operations],
                    message=self._message,
                    properties=self._properties,
                )
                for operation in operations:
                    operation.committed(self._commit)
        return self._commit

    def abort(self) -> None:
        """Give up every operation."""
        self._ended = True
        for operation in self._operations:
            operation.abort()

    @property
    def version(self) -> int | None:
        """The version that the transaction became; None before its commit."""
        return None if self._commit is None else self._commit.version

    def _require_open(self) -> None:
        if self._ended:
            raise InvalidInput("the transaction has ended; open another")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            if not self._ended:
                self.abort()
            return
        try:
            self.commit()
        except BaseException:
            self.abort()
            raise


class TransactionTable:
    """A table inside a transaction. Its writes return the operation, not a commit: that comes with the others."""

    def __init__(self, transaction: Transaction, table: Table) -> None:
        self._transaction = transaction
        self._table = table

    def append(self, data: Any, *, txn: Txn | None = None) -> Append:
        """Add rows."""
        operation = self._table.begin_append(txn)
        self._transaction.add(operation)
        operation.write(data)
        return operation

    def replace(
        self, data: Any, interval: Any, *, keys: Mapping[str, Any] | None = None, txn: Txn | None = None
    ) -> Replace:
        """Put rows in place of those in an interval (and of these keys); must come before an append to the table."""
        operation = self._table.begin_replace(interval, keys, txn)
        self._transaction.add(operation)
        operation.write(data)
        return operation

    def drop(self, interval: Any, *, keys: Mapping[str, Any] | None = None) -> Replace:
        """Drop the rows of an interval (and of these keys)."""
        return self.replace(None, interval, keys=keys)
