"""Segments as one Spark frame over explicit files, with the row ids and ordinals that are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote
from zlib import crc32

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.core.segment import Segment
from lakehouse.core.spec import ROW_ID
from lakehouse.engine import ORDINAL
from lakehouse.engine.spark.columns import quoted
from lakehouse.engine.spark.relations import frame_over
from lakehouse.engine.spark.types import to_spark_type
from lakehouse.predicate.literals import text_term

PLACE = "_tmp_metadata_row_index"
"""What Spark's Parquet reader fills with the row's place, when a schema asks for it by this name of its own.

``_metadata.row_index`` is the same, but makes a struct for each row: 10 ns, a fifth of a cheap scan.
"""
FILES_LOOKED_UP = 64
"""A row looks its file up among so many at most."""
NO_PLACE = "CAST(raise_error('Spark gives rows no place; use a version that this library was tested with') AS BIGINT)"
_NO_FILE = "CAST(raise_error('a file of the scan is none of the plan''s') AS BIGINT)"
_NAME, _SUM = "input_file_name()", "crc32(CAST(input_file_name() AS BINARY))"
_WILD = re.compile(r"([{}\[\]*?\\])")


def scan(session: SparkSession, schema: pa.Schema, segments: Sequence[Segment], files: Mapping[str, Path]) -> DataFrame:
    """Columns of the segments' files, a column that a file has not as null. Nothing is opened."""
    paths = [_WILD.sub(r"\\\1", str(files[segment.path])) for segment in segments]
    return frame_over(session, (schema, *paths), len(paths), lambda: _new_scan(session, schema, paths))


def _new_scan(session: SparkSession, schema: pa.Schema, paths: Sequence[str]) -> DataFrame:
    reader = session.read.schema(to_spark_type(schema))
    for option, value in {
        "datetimeRebaseMode": "CORRECTED",
        "ignoreCorruptFiles": "false",
        "ignoreMissingFiles": "false",
        "mergeSchema": "false",
        "recursiveFileLookup": "true",
    }.items():
        reader = reader.option(option, value)
    return reader.parquet(*paths)


def names_in_rows(
    frame: DataFrame, segments: Sequence[Segment], files: Mapping[str, Path]
) -> Iterator[tuple[str, Segment]]:
    """What rows of a scan may call their file, with the file's segment.

    Spark encodes a path alike everywhere, but writes ``file:///`` in one place and ``file:/`` in another.
    """
    by_path = {str(files[one.path]): one for one in segments}
    for uri in frame.inputFiles():
        path = uri.removeprefix("file:").lstrip("/")
        for scheme in ("file:/", "file:///"):
            yield f"{scheme}{path}", by_path["/" + unquote(path)]


class ByFile:
    """What differs from file to file of a scan, as expressions over its rows.

    They ask Spark for the file's name, so that Spark pushes nothing into the scan that comes after them.
    """

    def __init__(self, frame: DataFrame, segments: Sequence[Segment], files: Mapping[str, Path]) -> None:
        self._segments = segments
        names = dict(names_in_rows(frame, segments, files)) if len(segments) > 1 else {}
        # A checksum where each name has its own: to compare texts takes longer.
        sums = {f"{crc32(name.encode())}L": one.path for name, one in names.items()}
        is_told_by_sum = len(sums) == len(names)
        self._asked = _SUM if is_told_by_sum else _NAME
        self._paths = sums if is_told_by_sum else {text_term(name).spark: one.path for name, one in names.items()}
        """Of which file a row is, by what it is asked for, as a literal."""

    def number(self, values: Sequence[int]) -> str:
        """A number for each segment."""
        if len(set(values)) == 1:
            return f"{values[0]}L"
        value = dict(zip((one.path for one in self._segments), values, strict=True))
        known = ", ".join(f"{key}, {value[path]}L" for key, path in self._paths.items())
        return f"coalesce(map({known})[{self._asked}], {_NO_FILE})"

    def extras(self, names: Sequence[str], *, is_stored: bool) -> list[Column]:
        """`ROW_ID` and `ORDINAL`, of a scan with `PLACE` and, if rows may store their ids, `ROW_ID`."""
        by_place = f"{self.number([one.first_row_id for one in self._segments])} + {PLACE}"
        told = {
            ROW_ID: f"coalesce({quoted(ROW_ID)}, {by_place}, {NO_PLACE})" if is_stored else by_place,
            ORDINAL: self.number([one.ordinal for one in self._segments]),
        }
        return [F.expr(told[name]).alias(name) for name in names]


def told_scan(
    session: SparkSession,
    schema: pa.Schema,
    segments: Sequence[Segment],
    files: Mapping[str, Path],
    where: Sequence[str],
    extras: Sequence[str],
) -> DataFrame:
    """The rows that pass conditions with `ROW_ID` and `ORDINAL`, of a few files: no join, and no job before it."""
    added = pa.schema([(ROW_ID, pa.int64()), (PLACE, pa.int64())])
    frame = scan(session, pa.schema([*schema, *added]), segments, files)
    by_file = ByFile(frame, segments, files)
    for condition in where:
        frame = frame.where(F.expr(condition))
    return frame.select(*(F.col(quoted(name)) for name in schema.names), *by_file.extras(extras, is_stored=True))


def placed_scan(
    session: SparkSession, schema: pa.Schema, segments: Sequence[Segment], files: Mapping[str, Path]
) -> DataFrame:
    """The rows of any number of files with `ROW_ID` and `ORDINAL`, joined: later filters are pushed into the scan.

    A row's id is that which its file stores, else the segment's first one and the row's place.
    """
    frame = scan(session, schema.append(pa.field(ROW_ID, pa.int64())), segments, files)
    known = [(name, one.first_row_id, one.ordinal) for name, one in names_in_rows(frame, segments, files)]
    fields = pa.schema([("_file", pa.string()), ("_first", pa.int64()), (ORDINAL, pa.int64())])
    # As an Arrow table: a list of rows would be read by a job in a Python worker.
    rows = pa.Table.from_arrays([pa.array(column) for column in zip(*known, strict=True)], schema=fields)
    starts = F.broadcast(session.createDataFrame(rows))
    columns = [F.col(quoted(name)) for name in schema.names]
    placed = frame.select(
        *columns,
        F.col(ROW_ID),
        F.col("_metadata.file_path").alias("_file"),
        F.col("_metadata.row_index").alias("_place"),
    )
    missing = F.raise_error(F.lit("a file of the scan is none of the plan's")).cast("bigint")
    row_id = F.coalesce(F.col(ROW_ID), F.col("_first") + F.col("_place"), missing)
    return placed.join(starts, "_file", "left").select(*columns, row_id.alias(ROW_ID), F.col(ORDINAL))
