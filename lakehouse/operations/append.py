"""Adding rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakehouse.arguments import Rows
from lakehouse.core.contribution import AppendContribution, Contribution
from lakehouse.core.operation import Begun, Kind
from lakehouse.operations.operation import Operation
from lakehouse.session.session import Session


class Append(Operation):
    """Adds rows. It takes no lock, never waits and never conflicts."""

    kind = Kind.APPEND

    def __init__(self, session: Session, begun: Begun, **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._is_lenient = False
        self._as_known = False
        self._guards = False

    def commit_as_known(self) -> None:
        """Let the commit raise `Altered` if others changed the columns before: a begin takes no notice of that."""
        self._as_known = True

    def guard(self) -> None:
        """Let nothing be committed that is committed together with it, if its ``txn`` was committed before."""
        self._guards = True

    def write_leniently(self) -> None:
        """From now on, columns that rows lack are null, or their default, and others than the table's are left out."""
        self._is_lenient = True

    def write(self, data: Rows) -> None:
        """Write rows; any number of times. Raises `InvalidInput` for rows that do not fit the table."""
        self._require_running()
        if not self._is_repeat:
            self._store(self._session.engine_for(data), data, is_lenient=self._is_lenient)

    def contribution(self) -> Contribution:
        """The operation's part of a commit."""
        found = super().contribution()
        return replace(found, guards=True) if self._guards else found

    def _contribution(self) -> Contribution:
        return AppendContribution(**self._written, as_known=self._as_known)
