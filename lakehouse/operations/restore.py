"""Restoring a version."""

from __future__ import annotations

from typing import Any

from lakehouse.core.contribution import RestoreContribution
from lakehouse.core.operation import Begun, Kind
from lakehouse.core.spec import TableSpec
from lakehouse.operations.operation import Operation
from lakehouse.session.session import Session


class Restore(Operation):
    """Restores the table to a version and the definition ``then``, as a new commit."""

    kind = Kind.RESTORE

    def __init__(self, session: Session, begun: Begun, *, target: int, then: TableSpec, **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._target = target
        self._then = then

    def _contribution(self) -> RestoreContribution:
        return RestoreContribution(**self._written, target=self._target, then=self._then)
