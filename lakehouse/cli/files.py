"""Reads a user's file as a stream of Arrow batches: Parquet, Arrow, CSV or JSON lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from lakehouse.cli.ingest import STDIN
from lakehouse.cli.parquet import count_rows, open_parquet
from lakehouse.core.column import listed_type
from lakehouse.errors import InvalidArgument, InvalidInput
from lakehouse.progress import Step, Unit

FORMATS: Mapping[str, str] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".arrows": "stream",
    ".csv": "csv",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_OFFSET = r"(?:[Zz]|[+-]\d{2}:?\d{2})$"
_TEXT_BLOCK_BYTES = 8 << 20
_LINE = re.compile(r"Row #(\d+): ")
"""How Arrow names a line of CSV; a text over several lines counts as one."""
_ROW_OF_BLOCK = re.compile(r" in row (\d+)$")
"""Arrow counts rows of JSON from the start of a block."""


def measured(path: Path, form: str | None = None) -> tuple[Unit, int | None]:
    """How the reading of a file is counted, and how much there is: rows of Parquet, else bytes, of a pipe unknown.

    Cost: the footer of a Parquet file. What is wrong with a file is left for `open_rows` to say.
    """
    if path == STDIN:
        return "rows", None
    try:
        if (form or FORMATS.get(path.suffix.lower())) == "parquet":
            return "rows", count_rows(path)
        return "bytes", path.stat().st_size
    except (pa.ArrowException, OSError):
        return "bytes", None


def open_rows(path: Path, schema: pa.Schema, form: str | None = None, step: Step | None = None) -> pa.RecordBatchReader:
    """The rows of a file, read lazily. In text formats, columns get their types from ``schema``.

    ``form``: one of the values of `FORMATS`, by default that of the suffix. The path ``-`` is standard input. Text and
    streams may be compressed: ``.csv.gz``. Times in text are ISO 8601; without an offset they are UTC. ``step`` counts
    what was read, in the unit of `measured`. Raises
    `InvalidInput`, naming the file and its line, for an unknown suffix and for a file that cannot be read as that
    format.
    """
    form = form or format_of(path)
    batches: Iterator[pa.RecordBatch]
    source = _Source(path)
    try:
        if form in ("csv", "jsonl"):
            reader = _open_text(source.opened(), form, schema, is_pipe=path == STDIN)
            target = _retimed(reader.schema, schema)
            batches = _timed(reader, target, path, form)
        else:
            target, batches = _open_binary(path, form, source)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise _unreadable(path, form, _counted(path, form, schema, error)) from error
    counted = batches if step is None else _counted_in(step, batches, source)
    return pa.RecordBatchReader.from_batches(target, _named_errors(counted, path, form, schema))


def format_of(path: Path) -> str:
    """What a file is by its suffix. Raises `InvalidArgument` for one that says nothing, and for standard input."""
    if path == STDIN:
        raise InvalidArgument("say what comes from standard input: --format csv, jsonl or stream (Arrow)")
    is_packed = path.suffix.lower() == ".gz"
    form = FORMATS.get((path.with_suffix("") if is_packed else path).suffix.lower())
    if form is None:
        raise InvalidArgument("unknown file format; use one of the suffixes " + ", ".join(FORMATS), path=path)
    return form


def _require_whole(path: Path, form: str) -> None:
    """Raise `InvalidArgument` for a format that is not read from its beginning to its end."""
    if path == STDIN or path.suffix.lower() == ".gz":
        raise InvalidArgument("this format is read from a file that is not compressed", path=path, format=form)


class _Source:
    """The bytes of a file without its compression, and how many of those that lie there were read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = None
        self._bytes_read = 0

    def opened(self) -> Any:
        if self._path == STDIN:
            return pa.PythonFile(sys.stdin.buffer, mode="r")
        self._file = pa.OSFile(str(self._path))
        try:
            return pa.CompressedInputStream(self._file, pa.Codec.detect(str(self._path)).name)
        except (TypeError, ValueError):
            return self._file  # by its suffix it is not compressed

    @property
    def bytes_read(self) -> int:
        if self._file is not None and not self._file.closed:
            self._bytes_read = self._file.tell()
        return self._bytes_read


def _counted_in(step: Step, batches: Iterator[pa.RecordBatch], source: _Source) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        if step.unit == "bytes":
            step.done = source.bytes_read or step.done + batch.nbytes
        else:
            step.advance(batch.num_rows)


def _open_binary(path: Path, form: str, source: _Source) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if form != "stream":
        _require_whole(path, form)
    match form:
        case "parquet":
            return open_parquet(path)
        case "stream":
            stream = pa.ipc.open_stream(source.opened())
            return stream.schema, iter(stream)
        case _:
            ipc = pa.ipc.open_file(pa.memory_map(str(path)))
            return ipc.schema, (ipc.get_batch(number) for number in range(ipc.num_record_batches))


def _open_text(
    source: Any, form: str, schema: pa.Schema, *, use_threads: bool = True, is_pipe: bool = False
) -> pa.RecordBatchReader:
    """Batches in which dates and times are still text.

    Arrow reads times with a zone only if every one has an offset, and dates in JSON only as numbers. It reads lists of
    fixed size as any lists.
    """
    types = {
        field.name: pa.string() if pa.types.is_temporal(field.type) else listed_type(field.type) for field in schema
    }
    if form == "csv":
        convert = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
        # Threads do not count rows: an error in standard input, which cannot be read again, must name its line.
        read_csv = pa.csv.ReadOptions(block_size=_TEXT_BLOCK_BYTES, use_threads=use_threads and not is_pipe)
        return pa.csv.open_csv(source, read_csv, convert_options=convert)
    parse = pa.json.ParseOptions(explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="infer")
    # With threads Arrow reads ahead, and holds most of a large file in memory.
    read = pa.json.ReadOptions(block_size=_TEXT_BLOCK_BYTES, use_threads=False)
    return pa.json.open_json(source, read, parse)


def _retimed(read: pa.Schema, schema: pa.Schema) -> pa.Schema:
    """The schema of a file, with the table's types for times."""
    known = {field.name: listed_type(field.type) for field in schema}
    return pa.schema([(field.name, known.get(field.name, field.type)) for field in read])


def _timed(reader: pa.RecordBatchReader, target: pa.Schema, path: Path, form: str) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in reader:
        try:
            found = _with_times(batch, target)
        except pa.ArrowInvalid as error:
            raise _wrong_time(batch, target, path, rows + 2 if form == "csv" else rows + 1) or error from error
        yield found
        rows += batch.num_rows


def _wrong_time(batch: pa.RecordBatch, target: pa.Schema, path: Path, first_line: int) -> InvalidInput | None:
    """The error for the first row of a batch with a date or time that is none."""
    for row in range(batch.num_rows):
        try:
            _with_times(batch.slice(row, 1), target)
        except pa.ArrowInvalid as error:
            cause = str(error).splitlines()[0]
            return InvalidArgument(
                "cannot read a date or time; write ISO 8601, such as 2013-01-05T07:00:00", path=path,
                line=first_line + row, cause=cause[:200],
            )  # fmt: skip
    return None


def _with_times(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    columns = []
    for column, field in zip(batch.columns, target, strict=True):
        if column.type.equals(field.type):
            columns.append(column)
        else:
            columns.append(_instants(column, field.type) if _is_instant(field.type) else column.cast(field.type))
    return pa.record_batch(columns, schema=target)


def _instants(text: pa.StringArray, kind: pa.TimestampType) -> pa.Array:
    """Read ISO 8601 times; the ones without an offset are UTC."""
    has_offset = pc.match_substring_regex(text, _OFFSET)
    with_offset = pc.if_else(has_offset, text, None).cast(pa.timestamp(kind.unit, "UTC"))
    without = pc.if_else(has_offset, None, text).cast(pa.timestamp(kind.unit))
    return pc.coalesce(with_offset, pc.assume_timezone(without, "UTC")).cast(kind)


def _is_instant(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _counted(path: Path, form: str, schema: pa.Schema, error: Exception) -> Exception:
    """The error of CSV with its line, which is known only if the file is read again without threads."""
    if form != "csv" or path == STDIN or _LINE.search(str(error)):
        return error
    try:
        for _ in _open_text(_Source(path).opened(), form, schema, use_threads=False):
            pass
    except (pa.ArrowException, OSError, UnicodeError) as again:
        return again
    return error


def _named_errors(
    batches: Iterator[pa.RecordBatch], path: Path, form: str, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    rows = 0
    try:
        for batch in batches:
            yield batch
            rows += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, form, _counted(path, form, schema, error), rows) from error


def _unreadable(path: Path, form: str, error: Exception, rows: int = 0) -> InvalidInput:
    """The error for a file that cannot be read, after ``rows`` readable rows."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    where: dict[str, int] = {"rows_before": rows}
    in_block, line = _ROW_OF_BLOCK.search(reason), _LINE.search(reason)
    if form == "csv" and line is not None:
        reason, where = reason.replace(line[0], ""), {"line": int(line[1])}
    if form == "jsonl" and in_block is not None:
        reason, where = reason[: in_block.start()], {"row": rows + int(in_block[1])}
    if "unexpected field" in reason:
        reason += "; this row has a column that neither the table nor the first rows of the file have"
    return InvalidArgument(
        f"cannot read the file as {form}; check its contents and its suffix", path=path, **where, cause=reason
    )
