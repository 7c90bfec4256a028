"""Segments as one Spark frame over explicit files, with the row ids and ordinals that are asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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


def placed_scan(
    session: SparkSession, schema: pa.Schema, segments: Sequence[Segment], files: Mapping[str, Path]
) -> DataFrame:
    """The same with `ROW_ID`, the segment's first id and the row's place where the file stores none, and `ORDINAL`."""
    frame = scan(session, schema.append(pa.field(ROW_ID, pa.int64())), segments, files)
    numbers = {str(files[segment.path]): (segment.first_row_id, segment.ordinal) for segment in segments}
    # Spark encodes a path alike in both places, but writes file:/// here and file:/ in a row.
    paths = [uri.removeprefix("file:").lstrip("/") for uri in frame.inputFiles()]
    known = [(f"{scheme}{path}", *numbers["/" + unquote(path)]) for path in paths for scheme in ("file:/", "file:///")]
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
