"""Segments as one Spark frame over explicit files, with the row ids and ordinals that are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.core.segment import Segment
from lakehouse.core.spec import ROW_ID
from lakehouse.engine import ORDINAL
from lakehouse.engine.spark.columns import quoted
from lakehouse.engine.spark.relations import frame_over
from lakehouse.engine.spark.types import to_spark_type

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


def placed_scan(
    session: SparkSession, schema: pa.Schema, segments: Sequence[Segment], files: Mapping[str, Path]
) -> DataFrame:
    """The same with `ROW_ID`, the segment's first id and the row's place where the file stores none, and `ORDINAL`."""
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
