"""The in-process engine: pyarrow writes, DuckDB reads. No server, no Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse import progress
from lakehouse.core.segment import Segment
from lakehouse.core.spec import ROW_ID, TableSpec
from lakehouse.engine import Matches, Query, WriteTarget, Written
from lakehouse.engine.conform import check_there
from lakehouse.engine.duckdb import literals as sql
from lakehouse.engine.duckdb.connection import KeptDatabase, open_memory
from lakehouse.engine.duckdb.result import BATCH_ROWS, DuckDBRows
from lakehouse.engine.duckdb.room import most_memory, spilling
from lakehouse.engine.duckdb.source import tables
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.work import Made, SegmentWork

if TYPE_CHECKING:
    import duckdb

_THREADS = min(8, os.cpu_count() or 1)
"""Files that are compressed at a time."""


def _opened() -> duckdb.DuckDBPyConnection:
    return open_memory(memory_limit=f"{most_memory()}B", **spilling())


class DuckDBEngine:
    """Writes anything that speaks Arrow, and reads plans lazily. Safe to share between threads."""

    dialect = "duckdb"

    def __init__(self) -> None:
        self._kept = KeptDatabase(_opened)
        self._cursor = self._kept.cursor

    def write(self, rows: Any, target: WriteTarget) -> Sequence[Written]:
        """Write rows as durable Parquet files below the target's folder; return what was written.

        Memory is bounded whatever the source's size. Raises `InvalidInput` for rows that the table cannot hold and
        `OSError` where the disk fails.
        """
        from lakehouse.engine.write import stored_schema, write_tables  # noqa: PLC0415 - late

        return write_tables(tables(rows, stored_schema(target)), target, threads=_THREADS)

    def read(self, query: Query) -> DuckDBRows:
        """The rows of the plan that pass; nothing is opened yet."""
        return DuckDBRows(query, self._cursor)

    def collect(self, query: Query) -> pa.Table:
        """The rows of the plan that pass, in memory."""
        return self.read(query).to_arrow()

    def rewrite(self, query: Query, assigned: Mapping[str, str]) -> pa.RecordBatchReader:
        """The same with some columns' values given by expressions, as a stream; with ``_row_id``."""
        columns = [
            f"{sql.value(assigned.get(field.name, sql.name(field.name)), field.type)} AS {sql.name(field.name)}"
            for field in query.spec.schema
        ]
        chosen = sql.listed([*columns, sql.name(ROW_ID)])
        return self.read(replace(query, columns=None, row_ids=True)).projected(chosen)

    def ordered(self, query: Query, by: Sequence[str]) -> pa.RecordBatchReader:
        """All rows of the plan with ``_row_id``, sorted by one column or by the Z-order of several, as a stream."""
        from lakehouse.engine.duckdb.sort import sorted_batches  # noqa: PLC0415 - late

        rows = self.read(replace(query, columns=None, row_ids=True))
        return pa.RecordBatchReader.from_batches(rows.schema, sorted_batches(rows, query, by, self._cursor))

    def by_row_id(self, query: Query) -> Iterator[pa.RecordBatch]:
        """All rows of a plan with ``_row_id``, in its order; memory is bounded whatever their number."""
        from lakehouse.engine.duckdb.sort import rows_by_id  # noqa: PLC0415 - late

        return rows_by_id(self.read(query))

    def newest(self, rows: Any, spec: TableSpec, column: str) -> pa.RecordBatchReader:
        """Of rows with one primary key that which has the greatest value in a column, nulls being least."""
        given = pa.concat_tables(tables(rows, spec.schema))
        check_there((*spec.primary_key, column), given.column_names)
        keys, by = sql.listed(sql.name(one) for one in spec.primary_key), sql.name(column)
        statement = (
            f"SELECT * FROM given QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {by} DESC NULLS LAST) = 1"  # noqa: S608
        )
        chosen: Any = self._cursor().from_arrow(given).query("given", statement)
        return chosen.to_arrow_reader(BATCH_ROWS)

    def join(
        self,
        condition: str,
        target: Query,
        source: Any,
        equal: Sequence[tuple[str, str]] = (),
        left: tuple[Query, str] | None = None,
    ) -> AbstractContextManager[Matches]:
        """Rows of a source, each with the row of the plan that it matches, kept until the context is left."""
        from lakehouse.engine.duckdb.join import matched  # noqa: PLC0415 - late

        others = None if left is None else (self.read(left[0]), left[1])
        return matched(self._cursor(), condition, target.spec.schema, self.read(target), source, equal, others)

    def each(self, work: SegmentWork[Made], segments: Sequence[Segment]) -> Iterator[Made | SegmentUnreadable]:
        """What comes of a work on each segment, one after the other; an error for one that cannot be read."""
        made: list[Made] = []
        for one in segments:
            try:
                made.append(work(one))
            except SegmentUnreadable as error:
                yield error
            progress.advance("files")
        work.sync(made)
        yield from made

    def close(self) -> None:
        """Free what reads have kept. The engine can be used again."""
        database = self._kept.let_go()
        if database is not None:
            database.close()
