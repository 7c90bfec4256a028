"""Rows into durable Parquet files, split by time chunk, with bounded memory. Both engines write so."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse import cancelling, progress
from lakehouse.core.bucket import BucketSet
from lakehouse.core.checksum import Checksum
from lakehouse.core.chunk import Grain
from lakehouse.core.column import has_fixed_size, stored_type
from lakehouse.core.interval import MAX_TIME, MAX_US, MIN_US
from lakehouse.core.segment import NewSegment
from lakehouse.engine import ROW_ID_FIELD, WriteTarget, Written
from lakehouse.engine.castable import castable
from lakehouse.engine.conform import Fills, conform
from lakehouse.engine.validate import GIVEN, Origin
from lakehouse.errors import InternalError, InvalidInput, InvalidRows
from lakehouse.meanwhile import meanwhile
from lakehouse.schema import footer_texts
from lakehouse.storage.blocks import write_blocks
from lakehouse.storage.checksums import HashedFile
from lakehouse.storage.footer import read_footers, write_buckets

_ROW_GROUP_ROWS = 1 << 17
_DICTIONARY_BYTES = 128 << 10
"""A dictionary pays off for few distinct values; kept small it is given up early in columns that have many."""
BUFFER_BYTES = 256 << 20
"""Rows held back, so that a chunk's row groups are large although its rows come among others."""
OPEN_FILES = 64
ALONE_BYTES = 4 << 20
"""Less than this one thread has compressed before others have started."""
_WHOLE = 0


def stored_schema(target: WriteTarget) -> pa.Schema:
    """The columns that the target's files have."""
    schema = target.spec.schema
    return schema.append(ROW_ID_FIELD) if target.row_ids else schema


def write_tables(
    tables: Iterable[pa.Table], target: WriteTarget, *, buffer_bytes: int | None = None, threads: int = 1
) -> list[Written]:
    """Write rows below the target's folder and make them durable; return the files.

    Holds back ``buffer_bytes`` (`BUFFER_BYTES`) of rows, and at worst as much again twice: parts of one table share
    its memory until all of them are written. Files of as many chunks as there are ``threads`` are written at a time.
    """
    spec = target.spec
    schema = stored_schema(target)
    files = _Files(target, schema, BUFFER_BYTES if buffer_bytes is None else buffer_bytes, threads)
    fills = Fills(spec.defaults_for_new, target.is_lenient)
    expected_rows = 0
    try:
        for table in tables:
            cancelling.check()
            origin = Origin(expected_rows, target.partition)
            conformed = conform(table, schema, origin, fills)
            expected_rows += conformed.num_rows
            if not conformed.num_rows:
                continue
            grain = None if spec.ragged else spec.grain
            for chunk_us, part in split(conformed, spec.time, grain, origin):
                files.add(chunk_us, part)
            progress.advance("rows", conformed.num_rows)
        files.close()
    finally:
        files.abandon()
    if files.rows != expected_rows:
        raise InternalError(
            "files hold another number of rows than was given; run the operation again",
            expected=expected_rows,
            found=files.rows,
        )
    found = _published(target, files.names)
    return [Written(name, files.checksums[name], found.get(name)) for name in files.names]


def _published(target: WriteTarget, names: Sequence[str]) -> dict[str, NewSegment]:
    """Make files durable; what their footers say, by name, if they go to a store.

    The footers are read meanwhile, as a store's answer takes longer.
    """
    paths = [target.folder / name for name in names]
    if target.home.cache is None:
        target.publish(paths)
        return {}
    stored = [f"{target.stored}/{name}" for name in names]
    with target.home.cache.held(stored), meanwhile(read_footers, target.folder, names, target.spec) as reading:
        target.publish(paths)
    return {one.path: one for one in reading.result()}


def write_segment(
    tables: Iterable[pa.Table], target: WriteTarget, name: str, not_numbers: set[str], last_us: int
) -> Checksum:
    """Write rows as one file below the target's folder, whatever chunks they lie in, and return its checksum.

    It is not durable yet. ``not_numbers`` are columns that may hold a NaN; no row is newer than ``last_us``.
    """
    schema = stored_schema(target)
    target.home.make_folder(target.folder)
    file = _File(target, name, schema, not_numbers, target.spec.codec_of(last_us, target.now_us))
    try:
        for table in tables:
            file.write(conform(table, schema))
        file.close()
    except BaseException:
        file.abandon()
        raise
    return file.checksum


def split(table: pa.Table, time: str, grain: Grain | None, origin: Origin = GIVEN) -> Iterator[tuple[int, pa.Table]]:
    """Parts of a table by time chunk, each with its chunk's start in microseconds; one part where grain is None.

    Without a time column (``time`` is empty) all rows are one part.

    Rows keep their order within a chunk. Cost: nothing but the bounds of the time column where they share a chunk, no
    copy where chunks come in order, else one sort of chunk starts and one copy.
    """
    if not time:
        yield _WHOLE, table
        return
    column = table.column(time)
    bounds = pc.min_max(column.cast(pa.int64()))
    if bounds["max"].as_py() >= MAX_US:
        raise _at_end_of_time(column, time, origin)
    if grain is None:
        yield _WHOLE, table
        return
    ends = grain.floor_us(np.array([bounds["min"].as_py(), bounds["max"].as_py()], dtype=np.int64))
    if ends[0] == ends[1]:
        yield int(ends[0]), table
        return
    starts = grain.floor_us(column.cast(pa.int64()).to_numpy())
    if (np.diff(starts) < 0).any():
        order = np.argsort(starts, kind="stable")
        starts, table = starts[order], table.take(pa.array(order))
    cuts = np.flatnonzero(np.diff(starts)) + 1
    edges = [0, *cuts.tolist(), table.num_rows]
    for start, end in itertools.pairwise(edges):
        yield int(starts[start]), table.slice(start, end - start)


def _at_end_of_time(times: pa.ChunkedArray, column: str, origin: Origin) -> InvalidInput:
    """The error for the last microsecond that there is: intervals stop before their end, so that none could hold it."""
    return InvalidRows(
        f"a row's time must lie before {MAX_TIME:%Y-%m-%d %H:%M:%S.%f}, the end of time; use an earlier one",
        column=column,
        **origin.first(pc.equal(times.cast(pa.int64()), MAX_US)),
    )


@dataclass(frozen=True, slots=True)
class _Form:
    """How the file of some rows is written: columns that may hold a NaN, and the codec."""

    not_numbers: set[str]
    codec: str


class _Files:
    """The files of one write: rows wait by chunk until enough are there, or too many over all chunks."""

    def __init__(self, target: WriteTarget, schema: pa.Schema, buffer_bytes: int, threads: int) -> None:
        self.names: list[str] = []
        self.checksums: dict[str, Checksum] = {}
        """Of closed files, by name."""
        self.rows = 0
        """Rows of closed files, as their footers say."""
        self._buffer_bytes = buffer_bytes
        self._threads = threads
        self._target = target
        self._schema = schema
        self._waiting: dict[int, list[pa.Table]] = {}
        self._waiting_bytes = 0
        self._open: dict[int, _File] = {}
        self._guard = threading.Lock()

    def add(self, chunk_us: int, rows: pa.Table) -> None:
        self._waiting.setdefault(chunk_us, []).append(rows)
        self._waiting_bytes += rows.nbytes
        while self._waiting_bytes > self._buffer_bytes:
            sizes = {chunk: sum(one.nbytes for one in parts) for chunk, parts in self._waiting.items()}
            largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[: self._threads]
            # Not those that would make small row groups of it.
            self._flush([one for one in largest if 2 * sizes[one] >= sizes[largest[0]]])

    def close(self) -> None:
        most = max(1, OPEN_FILES // 2)
        while self._waiting:
            chunks = list(itertools.islice(self._waiting, most))
            self._flush(chunks, last=True)
        for chunk_us in list(self._open):
            self._close(chunk_us)

    def abandon(self) -> None:
        """Let go of files that a failed write left open; whoever collects the operation deletes them."""
        for file in self._open.values():
            file.abandon()
        self._open.clear()

    def _flush(self, chunks: Sequence[int], *, last: bool = False) -> None:
        """Write what waits of some chunks, and close their files if it was the ``last``."""
        jobs = []
        for chunk_us in chunks:
            parts = self._waiting.pop(chunk_us)
            self._waiting_bytes -= sum(one.nbytes for one in parts)
            rows = pa.concat_tables(parts) if len(parts) > 1 else parts[0]
            not_numbers = {field.name for field in self._schema if _has_nan(rows.column(field.name))}
            form = _Form(not_numbers, self._codec(rows))
            self._make_room(chunks)
            self._file(chunk_us, form)  # here, so that files are numbered in the order of chunks
            jobs.append((chunk_us, rows, form, last))
        self._each(self._write, jobs, sum(rows.nbytes for _, rows, _, _ in jobs))

    def _each(self, work: Callable[..., None], jobs: Sequence[tuple[Any, ...]], size: int) -> None:
        """Do jobs of different chunks, side by side if it is worth it; all have ended when one has failed."""
        if self._threads == 1 or len(jobs) < 2 or size < ALONE_BYTES:
            for job in jobs:
                work(*job)
            return
        with ThreadPoolExecutor(self._threads, thread_name_prefix="lakehouse-write") as pool:
            for done in [pool.submit(work, *job) for job in jobs]:
                done.result()

    def _codec(self, rows: pa.Table) -> str:
        """The codec of a file that begins with some rows; what comes later into it may be newer in a ragged table."""
        spec, now_us = self._target.spec, self._target.now_us
        if now_us is None or len(spec.codecs.steps) == 1:
            return spec.codec_of(0, now_us)
        return spec.codec_of(_bounds(rows, spec.time)[1], now_us)

    def _write(self, chunk_us: int, rows: pa.Table, form: _Form, last: bool) -> None:
        start = 0
        while start < rows.num_rows:
            file = self._file(chunk_us, form)
            part = rows.slice(start, self._target.spec.target_rows - file.rows)
            file.write(part)
            start += part.num_rows
            if file.rows >= self._target.spec.target_rows:
                self._close(chunk_us)
        if last:
            self._close(chunk_us)

    def _make_room(self, chunks: Sequence[int]) -> None:
        """Close the files that were used longest ago, so that one more may be open."""
        others = [chunk_us for chunk_us in self._open if chunk_us not in chunks]
        for chunk_us in others[: max(0, len(self._open) + 1 - OPEN_FILES)]:
            self._close(chunk_us)

    def _file(self, chunk_us: int, form: _Form) -> _File:
        """The chunk's open file, or a new one where it keeps statistics of a column that now holds a NaN."""
        with self._guard:
            file = self._open.pop(chunk_us, None)
            if file is not None and not form.not_numbers <= file.not_numbers:
                self._note(file, file.close())
                file = None
            if file is None:
                file = self._new(form)
            self._open[chunk_us] = file
            return file

    def _new(self, form: _Form) -> _File:
        if not self.names:
            self._target.home.make_folder(self._target.folder)
        name = f"{self._target.batch:05d}-{len(self.names):05d}.parquet"
        self.names.append(name)
        return _File(self._target, name, self._schema, form.not_numbers, form.codec)

    def _close(self, chunk_us: int) -> None:
        file = self._open.get(chunk_us)
        if file is not None:
            rows = file.close()
            with self._guard:
                self._note(file, rows)
                del self._open[chunk_us]

    def _note(self, file: _File, rows: int) -> None:
        self.rows += rows
        self.checksums[file.name] = file.checksum


class _File:
    """One Parquet file being written. Columns with a NaN get no statistics: readers would prune by a wrong maximum."""

    def __init__(self, target: WriteTarget, name: str, schema: pa.Schema, not_numbers: set[str], codec: str) -> None:
        self.name = name
        self.rows = 0
        self.not_numbers = not_numbers
        self._time = target.spec.time
        self._least: int | None = None
        self._greatest = 0
        stored = self._stored_names = target.spec.stored_names
        is_other = bool(target.spec.columns) or any(has_fixed_size(field.type) for field in schema)
        self._stored = _file_schema(schema, stored) if is_other else None
        statistics = [
            stored.get(field.name, field.name)
            for field in schema
            if field.name not in not_numbers and not pa.types.is_nested(field.type)
        ]
        self._buckets = {
            name: BucketSet(buckets)
            for name, buckets in target.spec.cluster_by.items()
            if buckets and _has_buckets(schema.field(name).type)
        }
        self._footers: list[pq.FileMetaData] = []
        self._sink = HashedFile(target.folder / name)
        self._writer = pq.ParquetWriter(
            self._sink,
            schema if self._stored is None else self._stored,
            compression=codec,
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            write_statistics=statistics,
            store_schema=False,
            store_decimal_as_integer=True,  # up to 18 digits: DuckDB reads those in two thirds of the time of bytes
            write_page_checksum=True,
            metadata_collector=self._footers,
        )
        self._writer.add_key_value_metadata(
            {
                **footer_texts(target.spec),
                "lakehouse.operation": target.operation_id,
                "lakehouse.file": f"{target.inside}{name}",
            }
        )

    def write(self, rows: pa.Table) -> None:
        least, greatest = _bounds(rows, self._time)
        self._least = least if self._least is None else min(self._least, least)
        self._greatest = greatest if self.rows == 0 else max(self._greatest, greatest)
        held = rows if self._stored is None else _as_stored(rows, self._stored)
        self._writer.write_table(held, row_group_size=_ROW_GROUP_ROWS)
        for name, seen in self._buckets.items():
            if not seen.is_full:
                seen.add(pc.unique(rows.column(name)).to_pylist())
        self.rows += rows.num_rows

    def close(self) -> int:
        """Write the footer; return how many rows it says that the file has."""
        self._writer.add_key_value_metadata({"lakehouse.interval_us": f"{self._least},{self._greatest + 1}"})
        stored = self._stored_names
        telling = {stored.get(name, name): seen.to_bytes() for name, seen in self._buckets.items() if not seen.is_full}
        self._writer.add_key_value_metadata(write_buckets(telling))
        self._writer.add_key_value_metadata(write_blocks(self._sink.end_blocks()))
        self._writer.close()
        self._sink.close()
        return int(self._footers[0].num_rows)

    @property
    def checksum(self) -> Checksum:
        """The checksum of the closed file."""
        return self._sink.checksum

    def abandon(self) -> None:
        """Let go of a file that nobody will read; a disk that refuses its footer is no news to the caller."""
        with suppress(OSError, RuntimeError):
            self._writer.close()
        self._writer.is_open = False
        with suppress(OSError):
            self._writer.close()
        with suppress(OSError):
            self._sink.close()


def _bounds(rows: pa.Table, time: str) -> tuple[int, int]:
    """The first and last time of some rows; those that there are at all in a timeless table."""
    if not time:
        return MIN_US, MAX_US - 1
    bounds = pc.min_max(rows.column(time).cast(pa.int64()))
    return bounds["min"].as_py(), bounds["max"].as_py()


def _file_schema(schema: pa.Schema, stored: Mapping[str, str]) -> pa.Schema:
    """Columns, and fields of their structs, under the names that they have in files."""
    return pa.schema(
        [field.with_name(stored.get(field.name, field.name)).with_type(stored_type(field.type)) for field in schema]
    )


def _as_stored(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows under the names that a schema has; nothing is copied but lists of fixed size."""
    columns = [
        column
        if column.type == field.type
        else pa.chunked_array([_named(one, field.type) for one in column.chunks], field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _named(array: pa.Array, kind: pa.DataType) -> pa.Array:
    listed = castable(array)[0] if has_fixed_size(array.type) else array
    return pa.array(_Named(listed, kind))


class _Named:
    """An array as one of a type that differs from its own by names of fields only, by Arrow's C interface."""

    def __init__(self, array: pa.Array, kind: pa.DataType) -> None:
        self._array = array
        self._kind = kind

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._kind.__arrow_c_schema__(), self._array.__arrow_c_array__()[1]


def _has_buckets(kind: pa.DataType) -> bool:
    """Whether equal values of a type have one text, so that their bucket is one."""
    return not (pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_nested(kind))


def _has_nan(column: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())
