"""Adding rows."""

from __future__ import annotations

from typing import Any

from lakehouse.core.contribution import AppendContribution, Contribution
from lakehouse.core.operation import Kind
from lakehouse.operations.operation import Operation


class Append(Operation):
    """Adds rows. It takes no lock, never waits and never conflicts."""

    kind = Kind.APPEND

    def write(self, data: Any, *, is_lenient: bool = False) -> None:
        """Write rows; any number of times. Raises `InvalidInput` for rows that do not fit the table.

        With ``is_lenient`` columns that the rows lack are null, or their default, and others than the table's left out.
        """
        self._require_running()
        if not self._is_repeat:
            self._store(self._session.engine_for(data), data, is_lenient=is_lenient)

    def _contribution(self) -> Contribution:
        return AppendContribution(**self._written)
