"""Rows as a user has them, turned into a stream of Arrow tables of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakehouse.arguments import has_surrogate, is_of
from lakehouse.engine.duckdb.rows import from_python, is_python_rows
from lakehouse.engine.validate import NOT_UTF8
from lakehouse.errors import InvalidRows

SLICE_ROWS = 1 << 20
"""Rows handled at a time."""
SLICE_BYTES = 128 << 20
"""Bytes of a stream that are gathered at a time."""


def tables(rows: Any, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in order, as tables of at most `SLICE_ROWS` rows, at least one; ``schema`` has the columns wanted.

    Takes pyarrow tables, batches and readers, pandas and polars frames, all else with ``__arrow_c_stream__``, and rows
    of Python (`from_python`).
    Raises `InvalidInput` for other values.
    """
    match as_arrow(rows, schema):
        case pa.Table() as table:
            yield from _slices(table)
        case pa.RecordBatch() as batch:
            yield from _slices(pa.Table.from_batches([batch]))
        case reader:
            yield from _gathered(reader)


def as_arrow(rows: Any, schema: pa.Schema) -> pa.Table | pa.RecordBatch | pa.RecordBatchReader:
    """Rows as what tells its columns before any is read; still to be read once. Raises `InvalidInput` as `tables`."""
    _check_names(rows)
    match rows:
        case pa.Table() | pa.RecordBatch() | pa.RecordBatchReader():
            return rows
        case _ if is_of(rows, "pandas", "DataFrame"):
            return _from_pandas(rows, schema.names)
        case _ if hasattr(rows, "__arrow_c_stream__"):
            return _opened(rows)
        case _ if is_of(rows, "polars", "LazyFrame"):
            return _opened(rows.collect(engine="streaming"))
        case _ if is_python_rows(rows):
            return from_python(rows, schema)
    raise _no_rows(rows)


def _no_rows(rows: Any) -> InvalidRows:
    return InvalidRows(
        "not rows; pass a Spark, pandas or polars frame, a pyarrow Table, anything with __arrow_c_stream__, "
        "or a list of dicts or tuples",
        found=type(rows).__name__,
    )


def _check_names(rows: Any) -> None:
    if isinstance(rows, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        try:
            rows.schema.names  # noqa: B018 - decodes them
        except UnicodeDecodeError as error:
            raise InvalidRows("a column's name is not UTF-8; rename it", name=repr(error.object)[:200]) from error


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    if not table.num_columns:  # of which every slice has as many rows as are asked for
        yield table
        return
    for start in range(0, max(table.num_rows, 1), SLICE_ROWS):
        yield table.slice(start, SLICE_ROWS)


def _gathered(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Small batches put together, so that a file's row groups do not shrink to a source's batches."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    found = False
    with reader:
        _check_names(reader)
        for batch in _read(reader):
            found = True
            waiting.append(batch)
            count, size = count + batch.num_rows, size + batch.nbytes
            if count >= SLICE_ROWS or size >= SLICE_BYTES:
                yield from _slices(pa.Table.from_batches(waiting))
                waiting, count, size = [], 0, 0
    if count or not found:
        yield from _slices(pa.Table.from_batches(waiting, reader.schema))


def _read(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except pa.ArrowException as error:
        raise InvalidRows("rows cannot be read as Arrow", cause=str(error)[:200]) from error


def _opened(rows: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidRows("rows cannot be read as Arrow", found=type(rows).__name__, cause=error) from error


def _from_pandas(frame: Any, names: list[str]) -> pa.Table:
    """A pandas frame without its index, but for index levels that are columns of the table."""
    wanted = [level for level in frame.index.names if level in names and level not in frame.columns]
    if wanted:
        frame = frame.reset_index(level=wanted)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except UnicodeError as error:
        raise InvalidRows(f"the column holds {NOT_UTF8}", **_first_surrogate(frame)) from error
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidRows("a pandas column has no one type; convert it first", cause=str(error)[:200]) from error


def _first_surrogate(frame: Any) -> dict[str, Any]:
    """The column and row of a pandas frame in which text is half a character."""
    for name in frame.columns:
        for row, value in enumerate(frame[name].tolist()):
            if isinstance(value, str) and has_surrogate(value):
                return {"column": name, "row": row}
    return {}
