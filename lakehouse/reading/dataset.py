"""A read as an Arrow dataset over the segments' own files, where they hold its rows and no others."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
from pyarrow.fs import LocalFileSystem

from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableSpec
from lakehouse.engine import Query
from lakehouse.engine.hidden import Part, columns_read, plan_parts
from lakehouse.errors import NotWholeFiles
from lakehouse.storage.verify import verified


@dataclass(frozen=True, slots=True)
class Datasets:
    """Reads queries as an engine does, into datasets of a schema: each file a fragment, with a guarantee of its values.

    Arrow leaves out fragments whose guarantee contradicts a filter, without opening their files. Guarantees are what
    the catalog knows of the time, and of cluster and primary key columns.
    """

    schema: pa.Schema
    dialect: str = "duckdb"

    def read(self, query: Query) -> pads.FileSystemDataset:
        """The rows of a query. Raises `NotWholeFiles` if it leaves out some row of a file, `SegmentUnreadable`."""
        parts, spec = plan_parts(query), query.spec
        segments = [one for part in parts for one in part.segments]
        hidden = sum(len(part.segments) for part in parts if part.condition is not None or part.places or part.masks)
        if hidden or query.where is not None:
            raise NotWholeFiles(
                "a dataset of files would show rows that this scan leaves out; give the filter to the dataset, compact "
                "the table, or use to_reader(), to_duckdb() or to_polars(lazy=True)",
                table=spec.name,
                where=query.where,
                segments_with_hidden_rows=hidden,
                segments=len(segments),
            )
        if any(self._is_altered(part) for part in parts):
            raise NotWholeFiles(
                "files hold columns otherwise than the table does, which was altered since; use to_reader(), "
                "to_duckdb() or to_polars(lazy=True)",
                table=spec.name,
                segments=len(segments),
            )
        columns = None if query.verify != "pages" else columns_read(query, parts)
        files = verified(query.warehouse, segments, query.verify, columns, query)
        guaranteed = {spec.time, *spec.cluster_by, *spec.primary_key}.intersection(self.schema.names)
        parquet, system = pads.ParquetFileFormat(), LocalFileSystem()
        fragments = [
            parquet.make_fragment(
                str(files[one.path]), filesystem=system, partition_expression=_guarantee(one, spec, guaranteed)
            )
            for one in segments
        ]
        return pads.FileSystemDataset(fragments, self.schema, parquet, system)

    def _is_altered(self, part: Part) -> bool:
        """Whether files hold a column that is read under another name or type, or not at all."""
        layout = part.layout or ()
        return any(not one.is_plain for one in layout if one.name in self.schema.names)


def _guarantee(segment: Segment, spec: TableSpec, columns: Collection[str]) -> Any:
    """What is true of every row of a file, as an expression."""
    bounds = [bound for one in spec.schema if one.name in columns for bound in _bounds(segment, spec, one)]
    return reduce(and_, bounds) if bounds else pads.scalar(value=True)


def _bounds(segment: Segment, spec: TableSpec, column: pa.Field) -> Iterator[Any]:
    name, kind = column.name, column.type
    values = pads.field(name)
    if name == spec.time:
        yield values >= pa.scalar(segment.start, kind)
        yield values < pa.scalar(segment.end, kind)
        return
    if segment.rows and segment.nulls.get(name) == segment.rows:
        yield values.is_null()
        return
    if pa.types.is_floating(kind):
        return  # bounds say nothing of NaN
    least, greatest = segment.min.get(name), segment.max.get(name)
    may_be_null = segment.nulls.get(name) != 0
    for bound in (
        None if least is None else values >= pa.scalar(least, kind),
        None if greatest is None else values <= pa.scalar(greatest, kind),
    ):
        if bound is not None:
            yield bound | values.is_null() if may_be_null else bound
