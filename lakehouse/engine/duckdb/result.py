"""The rows of a read, fetched when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.engine import Query
from lakehouse.engine.duckdb.connection import counted
from lakehouse.engine.duckdb.query import count_query, result_schema, rows_query
from lakehouse.engine.hidden import Part, plan_parts, stored_columns_read
from lakehouse.engine.plain import footers_that_fit, is_plain, plain_batches
from lakehouse.errors import InternalError, InvalidPredicate, LakehouseError, SegmentUnreadable
from lakehouse.storage.checksums import check_content
from lakehouse.storage.footer import DAMAGE
from lakehouse.storage.verify import verified

if TYPE_CHECKING:
    import duckdb

_T = TypeVar("_T")
_Values: TypeAlias = "pa.Array | pa.ChunkedArray"
BATCH_ROWS = 100_000


class DuckDBRows:
    """Rows of one query, each method a run of its own.

    Every method first checks that each file is there and whole, and raises `SegmentUnreadable` naming one that is not.
    """

    def __init__(self, query: Query, cursor: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        self._query = query
        self._cursor = cursor
        self.schema: pa.Schema = result_schema(query)

    def to_arrow(self) -> pa.Table:
        """All rows, with the table's own schema."""
        files, parts = self._verified()
        if not files:
            return self.schema.empty_table()
        cursor = self._cursor()
        statement = rows_query(self._query, parts, files)
        with counted(cursor, f"read {self._query.spec.name}"):
            table = self._run(lambda: cursor.sql(statement).to_arrow_table())
        return self._run(lambda: pa.Table.from_arrays(self._exact(table.columns), schema=self.schema))

    def reader(self, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        """The rows as a stream of batches: memory does not grow with them."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(*self._verified(), batch_rows))

    def decoded(self) -> pa.RecordBatchReader:
        """As `reader`, without a statement where all rows of the files are read as they are there."""
        files, parts = self._verified()
        segments = list(self._query.plan.segments)
        if files and is_plain(self._query, parts):
            footers = self._run(lambda: footers_that_fit(files, segments, self.schema))
            if footers is not None:
                batches = plain_batches(files, segments, footers, self.schema)
                return pa.RecordBatchReader.from_batches(self.schema, self._guarded(batches))
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(files, parts, BATCH_ROWS))

    def ordered(self, expressions: Sequence[str], connection: duckdb.DuckDBPyConnection) -> Iterator[pa.RecordBatch]:
        """The rows by some expressions, if there are any, as batches; what does not fit into memory waits on disk."""
        files, parts = self._verified()
        rows = rows_query(self._query, parts, files)
        by = f" ORDER BY {', '.join(expressions)}" if expressions else ""
        yield from self._streamed(connection, f"SELECT * FROM ({rows}){by}")  # noqa: S608

    def sample(self, rows: int, connection: duckdb.DuckDBPyConnection) -> pa.Table:
        """So many of the rows, the same each time, spread over all; every row is read."""
        files, parts = self._verified()
        text = rows_query(self._query, parts, files)
        statement = f"SELECT * FROM ({text}) USING SAMPLE reservoir({rows} ROWS) REPEATABLE (7)"  # noqa: S608
        table = self._run(lambda: connection.sql(statement).to_arrow_table())
        return table.cast(self.schema)

    def _batches(self, files: dict[str, Path], parts: list[Part], batch_rows: int) -> Iterator[pa.RecordBatch]:
        if files:
            statement = rows_query(self._query, parts, files)
            yield from self._streamed(self._cursor(), statement, batch_rows)

    def _streamed(
        self, cursor: duckdb.DuckDBPyConnection, statement: str, batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        stream = self._run(lambda: cursor.sql(statement).to_arrow_reader(batch_rows))
        for batch in self._guarded(stream):
            columns = self._run(lambda batch=batch: self._exact(batch.columns))  # type: ignore[misc]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def projected(self, expressions: str, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        """Expressions over the rows, as a stream of batches."""
        files, parts = self._verified()
        held = self._cursor()
        statement = f"SELECT {expressions} FROM ({rows_query(self._query, parts, files)})"  # noqa: S608
        stream = self._run(lambda: held.sql(statement).to_arrow_reader(batch_rows))
        return pa.RecordBatchReader.from_batches(stream.schema, self._guarded(stream))

    def _guarded(self, stream: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while True:
            batch = self._run(lambda: next(stream, None))
            if batch is None:
                return
            yield batch

    @contextmanager
    def naming_files(self) -> Iterator[None]:
        """For statements over `relation`: raise `SegmentUnreadable` for a file that is gone or damaged since."""
        import duckdb  # noqa: PLC0415 - late

        try:
            yield
        except duckdb.IOException as error:
            raise self._unreadable(error) or error from error

    def _exact(self, columns: Sequence[_Values]) -> list[_Values]:
        """Columns in the table's own types."""
        return [
            values if values.type.equals(field.type) else values.cast(field.type)
            for values, field in zip(columns, self.schema, strict=True)
        ]

    def count(self) -> int:
        """How many rows pass. What nothing but places hides is counted from the plan; its files are still checked."""
        files, parts = self._verified(counting=True)
        known = 0
        filtered: list[Part] = []
        for part in parts:
            if self._query.where is None and part.condition is None and not part.masks:
                known += sum(segment.rows for segment in part.segments) - sum(map(len, part.places))
            else:
                filtered.append(part)
        if not filtered:
            return known
        cursor = self._cursor()
        statement = count_query(self._query, filtered, files)
        with counted(cursor, f"count {self._query.spec.name}"):
            found: int = self._run(lambda: cursor.sql(statement).fetchall())[0][0]
        return known + found

    def relation(self, connection: duckdb.DuckDBPyConnection | None = None, among: str = "") -> duckdb.DuckDBPyRelation:
        """The rows as a relation of a connection, the engine's own if none is given; ``among``: see `rows_query`."""
        files, parts = self._verified()
        held = connection if connection is not None else self._cursor()
        statement = rows_query(self._query, parts, files, among)
        return self._run(lambda: held.sql(statement))

    def sql(self, *, is_joined: bool = False) -> str:
        """The rows as the text of a query, which may be joined with others."""
        files, parts = self._verified()
        return rows_query(self._query, parts, files, is_joined=is_joined)

    def _verified(self, *, counting: bool = False) -> tuple[dict[str, Path], list[Part]]:
        """The plan's files, as sure as the query wants to be of them, and its parts."""
        query, parts = self._query, plan_parts(self._query)
        columns = stored_columns_read(query, parts, counting=counting) if query.compares_columns else None
        return verified(query.warehouse, query.plan.segments, query.verify, columns, query), parts

    def _run(self, step: Callable[[], _T]) -> _T:
        import duckdb  # noqa: PLC0415 - late

        try:
            return step()
        except LakehouseError:
            raise
        except (duckdb.Error, *DAMAGE) as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> LakehouseError | Exception:
        """Find out what a failed query means: a bad file, a filter that some row breaks, or neither."""
        import duckdb  # noqa: PLC0415 - late

        if isinstance(error, duckdb.OutOfMemoryException | duckdb.InterruptException):
            return error
        damage = self._unreadable(error)
        if damage is not None:
            return damage
        if self._query.where is not None and isinstance(error, duckdb.DataError | duckdb.OperationalError):
            return InvalidPredicate("the filter fails on some row", where=self._query.where, cause=str(error)[:300])
        return InternalError("the in-process engine failed", cause=str(error)[:300])

    def _unreadable(self, error: Exception) -> SegmentUnreadable | None:
        """The first file of the plan that is not what was committed."""
        try:
            files = verified(self._query.warehouse, self._query.plan.segments, holder=self._query)
            for segment in self._query.plan.segments:
                path = files[segment.path]
                check_content(path, segment.checksum, segment.bytes)
                if not segment.checksum and not _is_readable(path):
                    return SegmentUnreadable(
                        "data file is malformed; restore it from a copy", path=str(path), cause=error
                    )
        except SegmentUnreadable as damage:
            return damage
        return None


def _is_readable(path: Path) -> bool:
    """Whether every page of a file decodes. Slow, and asked only after a read has failed."""
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                batch.validate()
    except DAMAGE:
        return False
    return True
