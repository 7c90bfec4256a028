"""Segments as one Spark frame over explicit files, with the row ids and ordinals that are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program
from pyspark.sql.types import StructType

from lakehouse.core.column import Layout
from lakehouse.core.segment import Segment
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import ROW_ID
from lakehouse.engine import ORDINAL
from lakehouse.engine.spark.arrays import Arrays
from lakehouse.engine.spark.columns import held_column, quoted
from lakehouse.engine.spark.layouts import file_type
from lakehouse.engine.spark.relations import frame_over, kept
from lakehouse.engine.spark.stores import Files
from lakehouse.predicate.literals import text_term

PLACE = "_tmp_metadata_row_index"
"""What Spark's Parquet reader fills with the row's place, when a schema asks for it by this name of its own.

``_metadata.row_index`` is the same, but makes a struct for each row: 10 ns, a fifth of a cheap scan.
"""
FILES_LOOKED_UP = 64
"""A row looks its file up among so many at most."""
NO_PLACE = "raise_error('Spark tells no place or file of a row; use a version that this library was tested with')"
"""Fails a row of which it is not known where it lies."""
_NAME, _SUM = "input_file_name()", "crc32(CAST(input_file_name() AS BINARY))"
_WILD = re.compile(r"([{}\[\]*?\\])")


def scan(
    session: SparkSession,
    schema: pa.Schema,
    segments: Sequence[Segment],
    files: Files,
    layout: Layout | None = None,
) -> DataFrame:
    """Columns of the segments' files, a column that a file has not as null. Nothing is opened.

    ``layout``: how all of the files hold columns of the table, if not all as they are.
    """
    frame = _raw_scan(session, file_type(schema, layout), segments, files)
    return frame if layout is None else frame.select(*_columns(schema, layout))


def _raw_scan(session: SparkSession, kind: StructType, segments: Sequence[Segment], files: Files) -> DataFrame:
    paths = [_WILD.sub(r"\\\1", files[segment.path]) for segment in segments]
    key = (kind.json(), *files.options.items(), *paths)
    return frame_over(session, key, len(paths), lambda: _new_scan(session, kind, paths, files.options))


def _columns(schema: pa.Schema, layout: Layout) -> list[Column]:
    """The columns of a schema, made of what was read of files."""
    held = {one.name: one for one in layout}
    return [
        held_column(held[name]).alias(name) if name in held else F.col(quoted(name)).alias(name)
        for name in schema.names
    ]


def _new_scan(session: SparkSession, kind: StructType, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    reader = session.read.schema(kind)
    for option, value in {
        "datetimeRebaseMode": "CORRECTED",
        "ignoreCorruptFiles": "false",
        "ignoreMissingFiles": "false",
        "mergeSchema": "false",
        "recursiveFileLookup": "true",
        **options,
    }.items():
        reader = reader.option(option, value)
    return reader.parquet(*paths)


def names_in_rows(frame: DataFrame, segments: Sequence[Segment], files: Files) -> Iterator[tuple[str, Segment]]:
    """What rows of a scan may call their file, with the file's segment.

    Spark encodes a path alike everywhere, but writes ``file:///`` in one place and ``file:/`` in another.
    """
    by_path = {files[one.path]: one for one in segments}
    known = kept(frame.sparkSession, tuple(by_path), len(by_path), lambda: tuple(frame.inputFiles()))
    if known and not known[0].startswith("file:"):
        yield from ((uri, by_path[unquote(uri)]) for uri in known)
        return
    paths = [uri.removeprefix("file:").lstrip("/") for uri in known]
    for scheme in ("file:///", "file:/"):
        for path in paths:
            yield f"{scheme}{path}", by_path["/" + unquote(path)]


def asked_of_rows(names: Sequence[str]) -> tuple[str, Sequence[int] | Sequence[str]]:
    """What to ask a row, to know its file, and what it answers for each name of a file.

    It is a checksum where each name has its own: to compare texts takes longer.
    """
    sums = [crc32(name.encode()) for name in names]
    return (_SUM, sums) if len(set(sums)) == len(sums) else (_NAME, names)


class ByFile:
    """What differs from file to file of a scan, as expressions over its rows.

    They ask Spark for the file's name, so that Spark pushes nothing into the scan that comes after them.
    """

    def __init__(self, frame: DataFrame, segments: Sequence[Segment], files: Files, arrays: Arrays) -> None:
        self._segments = segments
        self._arrays = arrays
        names = dict(names_in_rows(frame, segments, files)) if len(segments) > 1 else {}
        self._paths = [one.path for one in names.values()]
        if not names:
            return
        self._asked, answers = asked_of_rows(list(names))
        if self._asked == _SUM:
            self._known = arrays.add(np.array(answers))
        else:
            self._known = f"array({', '.join(text_term(name).spark for name in names)})"

    def number(self, values: IntArray) -> str:
        """A number for each segment, null for a file that is of none."""
        if len(set(values.tolist())) == 1:
            return f"{values[0]}L"
        value = dict(zip((one.path for one in self._segments), values.tolist(), strict=True))
        numbers = self._arrays.add(np.array([value[path] for path in self._paths]))
        return f"map_from_arrays({self._known}, {numbers})[{self._asked}]"

    def extras(self, names: Sequence[str], *, is_stored: bool) -> list[str]:
        """`ROW_ID` and `ORDINAL`, of a scan with `PLACE` and, if rows may store their ids, `ROW_ID`."""
        columns = []
        if ROW_ID in names:
            stored = f"{quoted(ROW_ID)}, " if is_stored else ""
            first = self.number(np.array([one.first_row_id for one in self._segments]))
            columns.append(f"coalesce({stored}{first} + {PLACE}, {NO_PLACE}) AS {ROW_ID}")
        if ORDINAL in names:
            ordinal = self.number(np.array([one.ordinal for one in self._segments]))
            columns.append(f"coalesce({ordinal}, {NO_PLACE}) AS {ORDINAL}")
        return columns


def scan_with_row_ids(
    session: SparkSession,
    schema: pa.Schema,
    segments: Sequence[Segment],
    files: Files,
    where: Sequence[str],
    extras: Sequence[str],
    layout: Layout | None = None,
) -> DataFrame:
    """The rows that pass conditions with `ROW_ID` and `ORDINAL`, of a few files: no join, and no job before it."""
    frame = scan(session, pa.schema([*schema, (ROW_ID, pa.int64()), (PLACE, pa.int64())]), segments, files, layout)
    for condition in where:
        frame = frame.where(condition)
    arrays = Arrays()
    added = ByFile(frame, segments, files, arrays).extras(extras, is_stored=True)
    return arrays.put_into(frame).selectExpr(f"* EXCEPT ({', '.join([ROW_ID, PLACE, *arrays.names])})", *added)


def placed_scan(
    session: SparkSession,
    schema: pa.Schema,
    segments: Sequence[Segment],
    files: Files,
    layout: Layout | None = None,
) -> DataFrame:
    """The rows of any number of files with `ROW_ID` and `ORDINAL`, joined: later filters are pushed into the scan.

    A row's id is that which its file stores, else the segment's first one and the row's place.
    """
    frame = _raw_scan(session, file_type(schema.append(pa.field(ROW_ID, pa.int64())), layout), segments, files)
    known = [(name, one.first_row_id, one.ordinal) for name, one in names_in_rows(frame, segments, files)]
    fields = pa.schema([("_file", pa.string()), ("_first", pa.int64()), (ORDINAL, pa.int64())])
    # As an Arrow table: a list of rows would be read by a job in a Python worker.
    rows = pa.Table.from_arrays([pa.array(column) for column in zip(*known, strict=True)], schema=fields)
    starts = F.broadcast(session.createDataFrame(rows))
    columns = [F.col(quoted(name)) for name in schema.names]
    placed = frame.select(
        *(columns if layout is None else _columns(schema, layout)),
        F.col(ROW_ID),
        F.col("_metadata.file_path").alias("_file"),
        F.col("_metadata.row_index").alias("_place"),
    )
    missing = F.raise_error(F.lit("a file of the scan is none of the plan's")).cast("bigint")
    row_id = F.coalesce(F.col(ROW_ID), F.col("_first") + F.col("_place"), missing)
    return placed.join(starts, "_file", "left").select(*columns, row_id.alias(ROW_ID), F.col(ORDINAL))
