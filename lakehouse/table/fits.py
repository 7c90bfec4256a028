"""Writes of rows that may have other columns than the table, which are refused, fitted, or given to the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse.arguments import Fit, read_fit
from lakehouse.core.commit import Commit
from lakehouse.core.operation import Altered
from lakehouse.engine.conform import check_once
from lakehouse.engine.duckdb.source import as_arrow
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import InvalidInput, WriteConflict
from lakehouse.operations.operation import commit_together
from lakehouse.table.begins import Begins, marks_of

if TYPE_CHECKING:
    from lakehouse.operations.append import Append


class Fits(Begins):
    """Writes rows by what ``schema`` says of columns.

    ``strict`` refuses rows with other columns than the table's, but for columns with a default for new rows. ``ignore``
    leaves columns out that the table lacks, and makes those null that the rows lack, if they have no default. ``merge``
    adds columns that the table lacks and widens those that do not hold the rows' type, in the same version as the rows,
    and otherwise does as ``ignore``.
    """

    def _write(self, begin: Callable[[bool], Append], data: Any, schema: Fit, marks: dict[str, Any]) -> Commit:
        """Begin, write rows and commit. ``begin`` is given whether the operation will commit alone."""
        if read_fit(schema) == "merge" and data is not None:
            return self._write_merging(begin, data, marks)
        if schema == "ignore":
            self.refresh()  # or a column that others made would be left out
        while True:
            known = self._spec.schema_number
            try:
                return self._write_fitting(begin, data, schema)
            except Altered:
                self.refresh()
            except InvalidInput:
                self.refresh()
                if not is_read_again(data) or self._spec.schema_number == known:
                    raise

    def _write_fitting(self, begin: Callable[[bool], Append], data: Any, schema: Fit) -> Commit:
        with begin(True) as op:
            if schema != "strict":
                op.write_leniently()
            if is_read_again(data):
                op.commit_as_known()
            op.write(data)
            return op.commit()

    def _write_merging(self, begin: Callable[[bool], Append], data: Any, marks: dict[str, Any]) -> Commit:
        """Write rows with columns that the same version makes; again, where others altered the table meanwhile."""
        self.refresh()
        rows, columns = with_columns(data, self._spec.schema)
        while True:
            known = self._spec.schema_number  # which other threads may refresh, too
            try:
                return self._write_and_alter(begin, rows, columns, marks)
            except Altered:  # nothing was written yet
                self.refresh()
            except (WriteConflict, InvalidInput):
                self.refresh()
                if not is_read_again(rows) or self._spec.schema_number == known:
                    raise

    def _write_and_alter(
        self, begin: Callable[[bool], Append], rows: Any, columns: pa.Schema, marks: dict[str, Any]
    ) -> Commit:
        from lakehouse.operations.alter import Alter  # noqa: PLC0415 - late
        from lakehouse.schema import altered, merging  # noqa: PLC0415 - late

        with begin(not merging(self._spec, columns)) as op:
            # The operation may have waited for its chunks while others altered the table.
            changes = [] if op.is_repeat else merging(op.begun.table, columns)
            op.write_leniently()
            if not changes:
                op.write(rows)
                return op.commit()
            with self._begin(Alter, marks_of(None, None), changes=changes) as alter:
                if alter.begun.table.schema_number != op.begun.table.schema_number:
                    raise Altered  # noticed by another thread that has this table
                op.write_as(altered(op.begun.table, changes))
                op.write(rows)
                commit = commit_together(self._session, [alter, op], marks["message"], marks["properties"])
        self.refresh()
        return commit


def is_read_again(data: Any) -> bool:
    """Whether rows can be read a second time, unlike a reader's."""
    return not isinstance(data, pa.RecordBatchReader | Iterator)


def with_columns(data: Any, schema: pa.Schema) -> tuple[Any, pa.Schema]:
    """Rows that are still to be read once, and their columns. Raises `InvalidRows` for two of one name."""
    from lakehouse.schema import from_spark_schema  # noqa: PLC0415 - late

    rows = data if is_spark_frame(data) else as_arrow(data, schema)
    columns = from_spark_schema(rows.schema) if is_spark_frame(rows) else rows.schema
    check_once(columns.names)
    return rows, columns
