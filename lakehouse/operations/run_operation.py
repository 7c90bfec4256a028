"""Operations that take no rows from their caller: they read the table and write rows made from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lakehouse.core.commit import Commit
from lakehouse.core.operation import Begun
from lakehouse.engine import Engine
from lakehouse.errors import LakehouseError, SegmentUnreadable
from lakehouse.operations.operation import Operation
from lakehouse.reading.scan import is_replaced
from lakehouse.session.session import Session


class RunOperation(Operation, ABC):
    """An operation that is begun, run and committed; `commit` calls `run` first if it was not called.

    ``engine`` reads and writes the rows. An error during `run` ends the operation.
    """

    def __init__(self, session: Session, begun: Begun, *, engine: Engine, **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._engine = engine

    def run(self) -> None:
        """Read the table, and write the new files. Nothing is visible before the commit.

        Does nothing if the operation's ``txn`` was committed before. Raises `OperationEnded` for a second run, and
        `SegmentUnreadable` naming a file that is not what was written.
        """
        self._start()
        if not self._is_repeat:
            with self._ended_by_errors():
                self._run()

    @abstractmethod
    def _run(self) -> None:
        """Find what the operation changes, and write the new files."""

    @abstractmethod
    def _overtaken(self) -> LakehouseError:
        """The error to raise if an erasure replaced files, and they were collected, while they were read."""

    def commit(self, *, if_useful: bool = False) -> Commit:
        """Make the changes visible as one version; calls `run` first if it was not called.

        A second call returns the same commit.
        Raises as `Operation.commit`, and as `run`. A `WriteConflict` ends the operation.
        """
        if not self._ran and self._state == "running":
            self.run()
        return super().commit(if_useful=if_useful)

    @contextmanager
    def _ended_by_errors(self) -> Iterator[None]:
        try:
            with super()._ended_by_errors():
                yield
        except SegmentUnreadable as error:
            if is_replaced(self._session, error):
                raise self._overtaken() from error
            raise
