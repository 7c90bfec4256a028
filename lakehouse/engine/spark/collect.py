"""Rows in memory, as a delete or an update finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from lakehouse.core.column import Layout
from lakehouse.core.segment import Segment
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import ORDINAL, ROW_ID
from lakehouse.engine import Query
from lakehouse.engine.hidden import Part, plan_parts
from lakehouse.engine.spark.columns import quoted
from lakehouse.engine.spark.failures import explaining_jobs
from lakehouse.engine.spark.layouts import joining
from lakehouse.engine.spark.read import conditions, listing_settings, read_frame, verified_files
from lakehouse.engine.spark.scan import PLACE, asked_of_rows, names_in_rows, scan
from lakehouse.engine.spark.settings import held
from lakehouse.errors import InternalError

_FILE = "_file"


def to_arrow(frame: DataFrame, query: Query) -> pa.Table:
    """A frame's rows in memory, in the types of the query's table. Raises `SegmentUnreadable`."""
    with explaining_jobs():
        return _typed(frame.toArrow(), query)


def collect_rows(session: SparkSession, query: Query) -> pa.Table:
    """The rows of a plan that pass, in memory.

    Where only places hide rows, Spark finds what passes the conditions, and ids, ordinals and what is hidden are found
    here: Spark compiles a scan anew for each condition, and to compile the expressions for these takes it longer than
    to run them.
    """
    parts = plan_parts(query, joining(session))
    if not parts or not (query.row_ids and query.ordinals) or any(part.masks for part in parts):
        return to_arrow(read_frame(session, query), query)
    rows, known = _found(session, query, parts)
    return _typed(_with_row_ids(rows, known, parts), query)


def _found(session: SparkSession, query: Query, parts: Sequence[Part]) -> tuple[pa.Table, Mapping[int | str, Segment]]:
    """Rows that pass, with `PLACE` and what they say of their file; and the segments by that."""
    files = verified_files(session, query, parts)
    schema = pa.schema([*query.spec.schema, (ROW_ID, pa.int64()), (PLACE, pa.int64())])
    alike: dict[tuple[tuple[str, ...], Layout | None], list[Segment]] = {}
    for part in parts:
        alike.setdefault((conditions(query, part), part.layout), []).extend(part.segments)
    with held(session, listing_settings(session, files)):
        frames = {one: scan(session, schema, segments, files, one[1]) for one, segments in alike.items()}
    names = {
        name: segment for one, frame in frames.items() for name, segment in names_in_rows(frame, alike[one], files)
    }
    asked, answers = asked_of_rows(list(names))
    chosen = query.spec.schema.names if query.columns is None else query.columns
    columns = [*map(quoted, chosen), ROW_ID, PLACE, f"{asked} AS {_FILE}"]
    passing = [reduce(DataFrame.where, where, frame).selectExpr(*columns) for (where, _), frame in frames.items()]
    return reduce(DataFrame.unionAll, passing).toArrow(), dict(zip(answers, names.values(), strict=True))


def _with_row_ids(rows: pa.Table, known: Mapping[int | str, Segment], parts: Sequence[Part]) -> pa.Table:
    """Rows that no place hides, with `ROW_ID` and `ORDINAL`."""
    segments = [segment for part in parts for segment in part.segments]
    numbers = {segment.path: number for number, segment in enumerate(segments)}
    answer = pc.index_in(rows.column(_FILE), value_set=pa.array(list(known)))
    if answer.null_count or rows.column(PLACE).null_count:
        raise InternalError("Spark tells no place or file of a row; use a version that this library was tested with")
    file = np.array([numbers[segment.path] for segment in known.values()])[answer.to_numpy()]
    place = rows.column(PLACE).to_numpy()
    first = np.array([segment.first_row_id for segment in segments])[file]
    ordinal = np.array([segment.ordinal for segment in segments])[file]
    row_id = pc.coalesce(rows.column(ROW_ID), pa.array(first + place))
    found = rows.drop_columns([ROW_ID, PLACE, _FILE]).append_column(ROW_ID, row_id).append_column(ORDINAL, [ordinal])
    starts = np.cumsum([segment.rows for segment in segments]) - [segment.rows for segment in segments]
    hidden = _hidden(parts, starts)
    return found.filter(pa.array(~np.isin(starts[file] + place, hidden))) if len(hidden) else found


def _hidden(parts: Sequence[Part], starts: IntArray) -> IntArray:
    """Numbers of hidden rows, where each segment's rows have numbers from its start."""
    places = [one for part in parts for one in part.places or [np.empty(0, dtype=np.int64)] * len(part.segments)]
    found: IntArray = np.concatenate([start + one for start, one in zip(starts.tolist(), places, strict=True)])
    return found


def _typed(rows: pa.Table, query: Query) -> pa.Table:
    known = {ROW_ID: pa.field(ROW_ID, pa.int64()), ORDINAL: pa.field(ORDINAL, pa.int64())}
    fields = [known[name] if name in known else query.spec.schema.field(name) for name in rows.column_names]
    return rows.cast(pa.schema(fields))
