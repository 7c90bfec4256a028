"""A read plan as a Spark frame over explicit files. Unmasked files are one scan, no different from plain Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.core.column import Layout
from lakehouse.core.segment import Segment
from lakehouse.core.spec import ROW_ID
from lakehouse.engine import ORDINAL, Query
from lakehouse.engine.hidden import Part, plan_parts, stored_columns_read
from lakehouse.engine.spark.columns import quoted
from lakehouse.engine.spark.each import each
from lakehouse.engine.spark.layouts import joining
from lakehouse.engine.spark.masked import masked_frame
from lakehouse.engine.spark.places import split_places, without_places
from lakehouse.engine.spark.scan import FILES_LOOKED_UP, placed_scan, scan, scan_with_row_ids
from lakehouse.engine.spark.settings import held
from lakehouse.engine.spark.stores import Files, files_in_store, reads_store
from lakehouse.engine.spark.types import to_spark_type
from lakehouse.storage.verify import Verifying, raised, verified

ALONE_BYTES = 64 << 20
"""Less than this the driver has looked through before a job has started."""
_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"


def read_frame(session: SparkSession, query: Query) -> DataFrame:
    """The rows of a plan, lazily. Every file is checked first, as much as the query wants to be sure of it.

    Raises `SegmentUnreadable` naming a file that is not. One that vanishes later fails the job, which names it.
    """
    parts = plan_parts(query, joining(session))
    files = verified_files(session, query, parts)
    extras = [name for name, is_wanted in ((ROW_ID, query.row_ids), (ORDINAL, query.ordinals)) if is_wanted]
    with held(session, listing_settings(session, files)):
        frames = [frame for part in _as_one(parts) for frame in _frames(session, query, part, files, extras)]
    if not frames:
        schema = pa.schema([*query.spec.schema, *(pa.field(name, pa.int64()) for name in extras)])
        frames = [session.createDataFrame([], to_spark_type(schema))]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionAll(frame)
    if query.columns is None or query.is_open:
        return rows
    return rows.select(*(quoted(name) for name in (*query.columns, *extras)))


def verified_files(session: SparkSession, query: Query, parts: Sequence[Part]) -> Files:
    """The plan's files, as sure as the query wants to be of them: many bytes are looked through in tasks."""
    segments, warehouse = query.plan.segments, query.warehouse
    is_remote = reads_store(session, warehouse)
    if query.verify != "size" and (is_remote or segments.bytes > ALONE_BYTES):
        work = Verifying(warehouse, query.verify, stored_columns_read(query, parts))
        for _ in raised(each(session, work, list(segments))):
            pass
        found = None if is_remote else verified(warehouse, segments, holder=query)
    else:
        columns = stored_columns_read(query, parts) if query.compares_columns else None
        found = None if is_remote else verified(warehouse, segments, query.verify, columns, query)
    if found is None:
        return files_in_store(session, warehouse, segments)
    return Files({stored: str(path) for stored, path in found.items()})


def _as_one(parts: list[Part]) -> list[Part]:
    """Parts without masks of one condition, of files that are read in one way, are one."""
    alike: dict[tuple[str | None, Layout | None], tuple[Part, list[Segment]]] = {}
    masked = []
    for part in parts:
        if part.places or part.masks:
            masked.append(part)
        else:
            text = None if part.condition is None else part.condition.spark
            alike.setdefault((text, part.layout), (part, []))[1].extend(part.segments)
    return [*(replace(part, segments=segments) for part, segments in alike.values()), *masked]


def listing_settings(session: SparkSession, files: Files) -> dict[str, str]:
    """Settings that keep Spark from starting a job to look at local files: it takes longer than looking."""
    is_many = len(files) > int(session.conf.get(_THRESHOLD) or 32)
    return {_THRESHOLD: str(1 << 20)} if is_many and not files.options else {}


def conditions(query: Query, part: Part) -> tuple[str, ...]:
    """What rows of a part have to pass."""
    visible = None if part.condition is None else part.condition.spark
    return tuple(one for one in (visible, query.where) if one is not None)


def _frames(session: SparkSession, query: Query, part: Part, files: Files, extras: list[str]) -> list[DataFrame]:
    schema = query.spec.schema
    where = conditions(query, part)
    layout = part.layout
    cut = split_places(part) if part.places else None
    if cut is not None:
        return [without_places(session, schema, one, files, where, extras, layout) for one in cut]
    if part.places or part.masks:
        frame = masked_frame(session, query, part, files, extras)
    elif extras and len(part.segments) <= FILES_LOOKED_UP:
        return [scan_with_row_ids(session, schema, part.segments, files, where, extras, layout)]
    elif extras:
        frame = placed_scan(session, schema, part.segments, files, layout)
        frame = frame.select(*(F.col(quoted(name)) for name in (*schema.names, *extras)))
    else:
        frame = scan(session, schema, part.segments, files, layout)
    for condition in where:
        frame = frame.where(F.expr(condition))
    return [frame]
