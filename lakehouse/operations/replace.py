"""Replacing an interval, or some keys in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from lakehouse.arguments import Rows
from lakehouse.core.contribution import Contribution, ReplaceContribution
from lakehouse.core.operation import Kind
from lakehouse.core.segment import NewSegment
from lakehouse.errors import RowsOutside
from lakehouse.operations.append import Append
from lakehouse.reading.row_count import count_visible
from lakehouse.storage.outside import values_outside


class Replace(Append):
    """Replaces an interval (of some keys): its rows replace those that were there when it began."""

    kind = Kind.REPLACE
    _properties_after: Mapping[str, str] | None = None

    def set_table_properties(self, properties: Mapping[str, str]) -> None:
        """Let the table have these properties, and no others, from the commit on: rows are written by them already.

        Call it before `write`. They are taken as they are: `lakehouse.schema.define_table` reads and checks them.
        """
        self._properties_after = properties
        self.write_as(replace(self._begun.table, properties=properties))

    def write(self, data: Rows) -> None:
        """Write rows; any number of times. Raises `InvalidInput` for rows outside the interval or keys."""
        if data is not None:
            super().write(data)

    def _contribution(self) -> Contribution:
        return ReplaceContribution(**self._written, rows_taken=self._rows_taken, properties=self._properties_after)

    @cached_property
    def _rows_taken(self) -> int | None:
        begun = self._begun
        return count_visible(self._session, begun.table, begun.base_version, begun.locked, begun.keys)

    def _check(self, files: list[NewSegment]) -> None:
        begun = self._begun
        outside = values_outside(self._session.warehouse, files, begun.table, begun.locked, begun.keys)
        if outside is not None:
            raise RowsOutside(
                "rows lie outside what is replaced; filter them or widen the interval or keys",
                table=begun.table.name,
                rows=outside.rows,
                column=outside.column,
                example=outside.example,
                interval=begun.interval,
                keys=begun.keys,
            )
