"""Reads a user's file as a stream of Arrow batches: Parquet, Arrow, CSV or JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from lakehouse.cli.parquet import open_parquet
from lakehouse.core.column import listed_type
from lakehouse.errors import InvalidArgument, InvalidInput

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
_ROW_OF_BLOCK = re.compile(r" in row (\d+)$")
"""Arrow counts rows of JSON from the start of a block."""


def open_rows(path: Path, schema: pa.Schema) -> pa.RecordBatchReader:
    """The rows of a file, read lazily. In text formats, columns get their types from ``schema``.

    Times in text are ISO 8601; without an offset they are UTC. Raises `InvalidInput`, naming the file, for an unknown
    suffix and for a file that cannot be read as that format.
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise InvalidArgument("unknown file format; use one of the suffixes " + ", ".join(FORMATS), path=path)
    batches: Iterator[pa.RecordBatch]
    try:
        if form in ("csv", "jsonl"):
            reader = _open_text(path, form, schema)
            target = _retimed(reader.schema, schema)
            batches = (_with_times(batch, target) for batch in reader)
        else:
            target, batches = _open_binary(path, form)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise _unreadable(path, form, error) from error
    return pa.RecordBatchReader.from_batches(target, _named_errors(batches, path, form))


def _open_binary(path: Path, form: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    match form:
        case "parquet":
            return open_parquet(path)
        case "stream":
            stream = pa.ipc.open_stream(pa.memory_map(str(path)))
            return stream.schema, iter(stream)
        case _:
            ipc = pa.ipc.open_file(pa.memory_map(str(path)))
            return ipc.schema, (ipc.get_batch(number) for number in range(ipc.num_record_batches))


def _open_text(path: Path, form: str, schema: pa.Schema) -> pa.RecordBatchReader:
    """Batches in which dates and times are still text.

    Arrow reads times with a zone only if every one has an offset, and dates in JSON only as numbers. It reads lists of
    fixed size as any lists.
    """
    types = {
        field.name: pa.string() if pa.types.is_temporal(field.type) else listed_type(field.type) for field in schema
    }
    if form == "csv":
        convert = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
        return pa.csv.open_csv(path, pa.csv.ReadOptions(block_size=_TEXT_BLOCK_BYTES), convert_options=convert)
    parse = pa.json.ParseOptions(explicit_schema=pa.schema(list(types.items())), unexpected_field_behavior="infer")
    # With threads Arrow reads ahead, and holds most of a large file in memory.
    read = pa.json.ReadOptions(block_size=_TEXT_BLOCK_BYTES, use_threads=False)
    return pa.json.open_json(path, read, parse)


def _retimed(read: pa.Schema, schema: pa.Schema) -> pa.Schema:
    """The schema of a file, with the table's types for times."""
    known = {field.name: listed_type(field.type) for field in schema}
    return pa.schema([(field.name, known.get(field.name, field.type)) for field in read])


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


def _named_errors(batches: Iterator[pa.RecordBatch], path: Path, form: str) -> Iterator[pa.RecordBatch]:
    rows = 0
    try:
        for batch in batches:
            yield batch
            rows += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, form, error, rows) from error


def _unreadable(path: Path, form: str, error: Exception, rows: int = 0) -> InvalidInput:
    """The error for a file that cannot be read, after ``rows`` readable rows."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    where: dict[str, int] = {"rows_before": rows}
    in_block = _ROW_OF_BLOCK.search(reason)
    if form == "jsonl" and in_block is not None:
        reason, where = reason[: in_block.start()], {"row": rows + int(in_block[1])}
    if "unexpected field" in reason:
        reason += "; this row has a column that neither the table nor the first rows of the file have"
    return InvalidArgument(
        f"cannot read the file as {form}; check its contents and its suffix", path=path, **where, cause=reason
    )
