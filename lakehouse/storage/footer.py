"""Reads Parquet footers: rows, bytes, time bounds, minimum and maximum values, null counts.

Minimum and maximum are bounds: every value lies between them, and for long strings they may be shorter than any value
(Parquet cuts or omits those). If a bound could be wrong (a NaN, a value that Python cannot hold), there is none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse.core.interval import ALL_TIME, MAX_TIME, MIN_TIME, Interval, from_us, to_us
from lakehouse.core.segment import BOUND_LENGTH, NewSegment
from lakehouse.core.spec import ROW_ID, TableSpec
from lakehouse.errors import InvalidRows, LakehouseError, SegmentUnreadable
from lakehouse.schema import definition_from_json
from lakehouse.storage.checksums import check_plain

_MIN_US = to_us(MIN_TIME)
_END_US = to_us(MAX_TIME)
_THREADS = 8
_BUCKETS = "lakehouse.buckets"
_CODECS = {"ZSTD": "zstd", "LZ4": "lz4", "SNAPPY": "snappy", "UNCOMPRESSED": "none"}
DAMAGE = (
    pa.ArrowException,
    OSError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors of reading a damaged file: values that no Python type holds, absurd sizes, invalid texts."""


def read_footers(folder: Path, names: Sequence[str], spec: TableSpec) -> list[NewSegment]:
    """Read the footers of files below a folder, in order, leaving out files without rows; paths are as they are given.

    ``start`` and ``end`` are the tight closed-open bounds of the time column, or all of time in a timeless table.
    ``min``, ``max`` and ``nulls`` are by the column's name in files, for columns that are not nested and have
    statistics; values have its Python type.

    Raises `InvalidInput` for null times, for nulls in another column that may hold none, and for times outside the
    years 1 to 9999; `SegmentUnreadable`, naming the file, for one that is missing, cut short or malformed.
    """
    if len(names) <= 4:
        found = [_read(folder, name, spec) for name in names]
    else:
        with ThreadPoolExecutor(_THREADS, "lakehouse-footer") as pool:
            found = list(pool.map(lambda name: _read(folder, name, spec), names))
    return [one for one in found if one is not None]


def has_footer(path: Path) -> bool:
    """Whether a file ends in a readable Parquet footer; its pages are not read."""
    try:
        pq.read_metadata(path)
    except DAMAGE:
        return False
    return True


def _read(folder: Path, name: str, spec: TableSpec) -> NewSegment | None:
    path = folder / name
    check_plain(path)
    try:
        with pq.ParquetFile(path) as file:
            return _statistics(file, path, name, spec)
    except LakehouseError:
        raise
    except DAMAGE as error:
        raise SegmentUnreadable(
            "data file is cut short or malformed; restore it", path=str(path), cause=error
        ) from error


def _statistics(file: pq.ParquetFile, path: Path, name: str, spec: TableSpec) -> NewSegment | None:
    footer = file.metadata
    if footer.num_rows == 0:
        return None
    schema = file.schema_arrow  # made anew each time that it is asked for
    columns = primitive_columns(schema)
    stored = spec.stored_names
    times = [stored.get(name, name) for name in spec.times]
    for time in times:
        if time not in columns:
            raise SegmentUnreadable("data file lacks the time column", path=str(path), column=time)
    gathered: dict[str, _Gathered] = {}
    for column in spec.schema:
        name_there = stored.get(column.name, column.name)
        if name_there not in columns:
            continue
        gathered[name_there] = _gather(footer, columns[name_there], schema.field(name_there).type)
        nulls = gathered[name_there].nulls
        if nulls and not column.nullable:
            what = "time column" if column.name == spec.time else "column"
            raise InvalidRows(f"null in the {what}, which takes none", column=column.name, count=nulls)
    interval, first, last = ALL_TIME, {}, {}
    for time in times:
        start_us, end_us = _time_bounds(file, time, gathered.pop(time))
        interval = Interval(start_us, end_us)
        first, last = {time: interval.start}, {time: from_us(end_us - 1)}
    if ROW_ID in columns:
        gathered[ROW_ID] = _gather(footer, columns[ROW_ID], pa.int64())
    bounds = {name: one for name, one in gathered.items() if one.least is not None}
    return NewSegment(
        path=name,
        rows=footer.num_rows,
        bytes=path.stat().st_size,
        start=interval.start,
        end=interval.end,
        min={**first, **{name: _lower(one.least) for name, one in bounds.items()}},
        max={
            **last,
            **{name: upper for name, one in bounds.items() if (upper := _upper(one.greatest)) is not None},
        },
        nulls=dict.fromkeys(times, 0) | {name: one.nulls for name, one in gathered.items() if one.nulls is not None},
        buckets=read_buckets(footer.metadata or {}),
        has_row_ids=ROW_ID in columns,
        schema_number=_schema_number(footer) if spec.schema_number else 0,
        codec=codec_of(footer),
    )


def codec_of(footer: pq.FileMetaData) -> str:
    """The codec of all pages; nothing where they have several, or one that the library does not write."""
    groups = [footer.row_group(place) for place in range(footer.num_row_groups)]
    found = {group.column(place).compression for group in groups for place in range(group.num_columns)}
    return _CODECS.get(found.pop(), "") if len(found) == 1 else ""


def _schema_number(footer: pq.FileMetaData) -> int:
    held = json.loads((footer.metadata or {}).get(b"lakehouse.definition", b"{}"))
    return int(held.get("schema_number", 0))


def read_definition(path: Path, folder: str) -> TableSpec:
    """The definition that the table had when a file was written. Raises `SegmentUnreadable` if that is not there."""
    try:
        held = pq.read_metadata(path).metadata or {}
        return definition_from_json(
            held[b"lakehouse.definition"].decode(), held[b"lakehouse.schema"].decode(), folder=folder
        )
    except (LakehouseError, *DAMAGE) as error:
        raise SegmentUnreadable(
            "data file does not say what its table was; restore it from a copy", path=str(path), cause=error
        ) from error


def write_buckets(buckets: Mapping[str, bytes]) -> dict[str, str]:
    """The footer entry with the hash buckets of a file's values, by column; none without buckets."""
    return {_BUCKETS: json.dumps({name: held.hex() for name, held in buckets.items()})} if buckets else {}


def read_buckets(metadata: Mapping[bytes, bytes]) -> dict[str, bytes]:
    """The inverse of `write_buckets`."""
    held: dict[str, str] = json.loads(metadata.get(_BUCKETS.encode(), b"{}"))
    return {name: bytes.fromhex(text) for name, text in held.items()}


def primitive_columns(schema: pa.Schema) -> dict[str, int]:
    """The index among the file's leaf columns of every column that is not nested, by name."""
    columns: dict[str, int] = {}
    leaf = 0
    for column in schema:
        if not pa.types.is_nested(column.type):
            columns[column.name] = leaf
        leaf += _leaves(column.type)
    return columns


def _leaves(kind: pa.DataType) -> int:
    if not pa.types.is_nested(kind):
        return 1
    return sum(_leaves(kind.field(index).type) for index in range(kind.num_fields))


@dataclass(frozen=True, slots=True)
class _Gathered:
    """A column over all row groups; ``least`` is None without reliable bounds, ``nulls`` without reliable counts."""

    least: Any
    greatest: Any
    nulls: int | None


def _gather(footer: pq.FileMetaData, leaf: int, kind: pa.DataType) -> _Gathered:
    raw = pa.types.is_timestamp(kind)
    nulls: int | None = 0
    least: Any = None
    greatest: Any = None
    bounded = True
    for index in range(footer.num_row_groups):
        chunk = footer.row_group(index).column(leaf)
        found = chunk.statistics
        if found is None:
            return _Gathered(None, None, None)
        nulls = nulls + found.null_count if nulls is not None and found.has_null_count else None
        if found.has_min_max and bounded:
            try:
                low, high = (found.min_raw, found.max_raw) if raw else (found.min, found.max)
            except (OverflowError, ValueError, pa.ArrowException):
                low = high = None
            if low is None or high is None or low != low or high != high:
                bounded = False
                continue
            least = low if least is None or low < least else least
            greatest = high if greatest is None or high > greatest else greatest
        elif not (found.has_null_count and found.null_count == chunk.num_values):
            bounded = False
    if raw and bounded and least is not None:
        least, greatest = _instants(least, greatest, kind)
    return _Gathered(least, greatest, nulls) if bounded else _Gathered(None, None, nulls)


def _instants(least: int, greatest: int, kind: pa.TimestampType) -> tuple[Any, Any]:
    """Microseconds as the datetimes of a column: aware if it has a time zone, else naive; None if out of range."""
    if least < _MIN_US or greatest > _END_US:
        return None, None
    low, high = from_us(least), from_us(greatest)
    return (low, high) if kind.tz is not None else (low.replace(tzinfo=None), high.replace(tzinfo=None))


def _time_bounds(file: pq.ParquetFile, column: str, gathered: _Gathered) -> tuple[int, int]:
    """Exact bounds of the time column, from its statistics or, if these are missing, from its values."""
    if gathered.least is not None and gathered.nulls is not None and gathered.greatest < MAX_TIME:
        return to_us(gathered.least), to_us(gathered.greatest) + 1
    values = file.read([column]).column(0)
    if values.null_count:
        raise InvalidRows("null in the time column, which takes none", column=column, count=values.null_count)
    extremes = pc.min_max(values.cast(pa.timestamp("us", "UTC")).cast(pa.int64()))
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    if low < _MIN_US or high >= _END_US:
        raise InvalidRows(
            "time is outside the years 1 to 9999; correct or drop such rows", column=column, least=low, greatest=high
        )
    return low, high + 1


def _lower(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0  # Parquet writes a minimum of zero as -0.0
    return value[:BOUND_LENGTH] if isinstance(value, str | bytes) else value


def _upper(value: Any) -> Any:
    """A shorter upper bound: cut, with its last character incremented. None if that is impossible."""
    if not isinstance(value, str | bytes) or len(value) <= BOUND_LENGTH:
        return value
    if isinstance(value, bytes):
        head = value[:BOUND_LENGTH].rstrip(b"\xff")
        return head[:-1] + bytes([head[-1] + 1]) if head else None
    for length in range(BOUND_LENGTH, 0, -1):
        raised = ord(value[length - 1]) + 1
        if raised < 0xD800 or 0xE000 <= raised <= 0x10FFFF:
            return value[: length - 1] + chr(raised)
    return None
