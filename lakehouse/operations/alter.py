"""Changing a table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakehouse.core.contribution import AlterContribution
from lakehouse.core.operation import Begun, Kind
from lakehouse.operations.operation import Operation
from lakehouse.schema import SchemaChange
from lakehouse.session.session import Session


class Alter(Operation):
    """Changes the table's columns. It writes no file, takes no lock and waits for nobody.

    Its changes are made on the columns that the table has when it commits. Raises `UnknownColumn`, `InvalidName`,
    `InvalidSchema` and `InvalidRows` then, as `lakehouse.schema.alter.altered`.
    """

    kind = Kind.ALTER

    def __init__(self, session: Session, begun: Begun, *, changes: Sequence[SchemaChange], **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._changes = tuple(changes)

    def _contribution(self) -> AlterContribution:
        return AlterContribution(**self._written, changes=self._changes)
