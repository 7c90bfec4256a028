"""A read plan as a Spark frame over explicit files. Unmasked files are one scan, no different from plain Parquet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.core.segment import Segment
from lakehouse.core.spec import ROW_ID
from lakehouse.engine import Query
from lakehouse.engine.masks import visible
from lakehouse.engine.spark.columns import quoted
from lakehouse.engine.spark.settings import held
from lakehouse.engine.spark.types import to_spark_type
from lakehouse.storage.paths import verify

_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_WILD = re.compile(r"([{}\[\]*?\\])")


def read_frame(session: SparkSession, query: Query) -> DataFrame:
    """The rows of a plan, lazily. Every file is checked to be there and whole first; none is opened.

    Raises `SegmentUnreadable` naming a file that is not. One that vanishes later fails the job, which names it.
    """
    files = verify(query.warehouse, query.plan.segments)
    schema = query.spec.schema
    if query.row_ids:
        schema = schema.append(pa.field(ROW_ID, pa.int64()))
    scans: dict[str | None, list[Segment]] = {}
    for group in query.plan.groups:
        mask = visible(query, group)
        scans.setdefault(None if mask is None else mask.spark, []).extend(group.segments)
    frames = []
    with held(session, _listing_settings(session, len(files))):
        for condition, segments in scans.items():
            if not segments:
                continue
            frame = _scan(session, query, schema, segments, files)
            frames.append(frame if condition is None else frame.where(F.expr(condition)))
    if not frames:
        frames = [session.createDataFrame([], to_spark_type(schema))]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionAll(frame)
    if query.where is not None:
        rows = rows.where(F.expr(query.where))
    if query.columns is None:
        return rows
    return rows.select(*(quoted(name) for name in (*query.columns, *([ROW_ID] if query.row_ids else []))))


def _listing_settings(session: SparkSession, files: int) -> dict[str, str]:
    """Keep Spark from starting a job to look at local files: it takes longer than looking."""
    return {_THRESHOLD: str(1 << 20)} if files > int(session.conf.get(_THRESHOLD) or 32) else {}


def _scan(
    session: SparkSession, query: Query, schema: pa.Schema, segments: Sequence[Segment], files: dict[str, Path]
) -> DataFrame:
    paths = [_WILD.sub(r"\\\1", str(files[segment.path])) for segment in segments]
    reader = session.read.schema(to_spark_type(schema))
    for option, value in {
        "datetimeRebaseMode": "CORRECTED",
        "ignoreCorruptFiles": "false",
        "ignoreMissingFiles": "false",
        "mergeSchema": "false",
        "recursiveFileLookup": "true",
    }.items():
        reader = reader.option(option, value)
    frame = reader.parquet(*paths)
    return _with_row_ids(session, frame, query, segments, files) if query.row_ids else frame


def _with_row_ids(
    session: SparkSession, frame: DataFrame, query: Query, segments: Sequence[Segment], files: dict[str, Path]
) -> DataFrame:
    """Fill in row ids that no file stores: the segment's first one and the row's place."""
    firsts = {str(files[segment.path]): segment.first_row_id for segment in segments}
    # Spark encodes a path alike in both places, but writes file:/// here and file:/ in a row.
    paths = [uri.removeprefix("file:").lstrip("/") for uri in frame.inputFiles()]
    known = [(f"{scheme}{path}", firsts["/" + unquote(path)]) for path in paths for scheme in ("file:/", "file:///")]
    starts = F.broadcast(session.createDataFrame(known, "_file STRING, _first BIGINT"))
    columns = [F.col(quoted(name)) for name in query.spec.schema.names]
    placed = frame.select(
        *columns,
        F.col(ROW_ID),
        F.col("_metadata.file_path").alias("_file"),
        F.col("_metadata.row_index").alias("_place"),
    )
    missing = F.raise_error(F.lit("a file of the scan is none of the plan's")).cast("bigint")
    row_id = F.coalesce(F.col(ROW_ID), F.col("_first") + F.col("_place"), missing)
    return placed.join(starts, "_file", "left").select(*columns, row_id.alias(ROW_ID))
