"""Erasing rows from segments' files one by one: what is left of each, in a file of its own.

Tasks of Spark's run the same code, so that a filter means the same whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from lakehouse.core.checksum import Checksum
from lakehouse.core.plan import plan_read
from lakehouse.core.segment import NewSegment, Segment
from lakehouse.core.sets import encode_set, row_id_array, row_ids_of
from lakehouse.core.spec import ROW_ID, TableSpec, field_id_of
from lakehouse.core.widening import is_held
from lakehouse.engine import Query, WriteTarget
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.engine.write import write_segment
from lakehouse.schema import table_column
from lakehouse.storage.footer import read_definition, read_footers
from lakehouse.storage.verify import file_of, verify_file
from lakehouse.storage.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Left:
    """What an erasure leaves of a segment, by id, whose file was at ``path``.

    ``written`` is the stored path of the new file; empty where nothing is left, or nothing erased. ``row_ids`` are
    those of the erased rows, as `encode_set` has them.
    """

    segment: int
    path: str
    rows_erased: int
    row_ids: bytes = field(default=b"", repr=False)
    written: str = ""
    checksum: Checksum = b""
    found: NewSegment | None = None
    """What the new file's footer says, of one in an object store."""
    keys: pa.Table | None = field(default=None, repr=False)
    """The keys of the erased rows, if they were asked for."""


@dataclass(frozen=True, slots=True)
class Erasing:
    """Writes segments without the rows that a filter, in DuckDB's dialect, lets through, below an own ``folder``."""

    spec: TableSpec
    warehouse: Warehouse
    folder: str
    operation_id: str
    where: str
    now_us: int
    """When it is done, by which files get the codec for their age."""
    keys: tuple[str, ...] = ()
    """Columns of which the erased rows' values are wanted."""

    def below(self, name: str) -> Erasing:
        """The same with its files in a folder below its own."""
        return replace(self, folder=f"{self.folder}/{name}")

    def __call__(self, segment: Segment, attempt: str = "") -> Left:
        """What is left of a segment. Every row that is stored counts, whether a version shows it or not.

        Cost: the filter's columns, where they may match, and if a row does once more, with a copy of the segment. What
        is read is compared with what was written. Raises `SegmentUnreadable`, `InvalidInput` for a filter that fails on
        a row, `OSError` for a disk that does.
        """
        plan = plan_read([segment], (), version=segment.ordinal)
        query = Query(plan, self._seen_in(segment), self.warehouse, where=self.where, row_ids=True, verify="pages")
        erased = _engine().read(query).count()
        if not erased:
            return Left(segment.id, segment.path, erased)
        row_ids = encode_set(self._row_ids(query))
        keys = _engine().read(replace(query, columns=self.keys)).to_arrow().select(self.keys) if self.keys else None
        if erased == segment.rows:
            return Left(segment.id, segment.path, erased, row_ids, keys=keys)
        verify_file(self.warehouse, segment)
        query = replace(query, verify="size")
        own = self._spec_of(segment)
        kept = self._kept(query) if own is query.spec else self._kept_as(own, query)
        folder = self.warehouse.root / self.folder
        target = WriteTarget(own, folder, self.operation_id, row_ids=True, now_us=self.now_us)
        name = f"{segment.id}{attempt}.parquet"
        checksum = write_segment(kept, target, name, _not_numbers(own, segment), segment.interval.end_us - 1)
        found = None if self.warehouse.cache is None else read_footers(folder, [name], self.spec)[0]
        return Left(segment.id, segment.path, erased, row_ids, f"{self.folder}/{name}", checksum, found, keys)

    def _seen_in(self, segment: Segment) -> TableSpec:
        """The table's columns with the types of the file where these are wider, as before a restore."""
        if not self.spec.columns:
            return self.spec
        wider = {
            one.name: one.type
            for one in self.spec.layout(segment.schema_number)
            if one.type is not None and not is_held(one.type, one.wanted)
        }
        fields = [
            table_column(one.name, wider[one.name], one.nullable, field_id_of(one)) if one.name in wider else one
            for one in self.spec.schema
        ]
        return replace(self.spec, schema=pa.schema(fields)) if wider else self.spec

    def _spec_of(self, segment: Segment) -> TableSpec:
        """The definition that the file was written with: versions that have its columns still read it."""
        if segment.schema_number == self.spec.schema_number:
            return self.spec
        with file_of(self.warehouse, segment) as path:
            return read_definition(path, self.spec.folder)

    def _kept(self, query: Query) -> Iterator[pa.Table]:
        kept = _engine().read(replace(query, where=f"({self.where}) IS NOT TRUE")).reader()
        return (pa.Table.from_batches([one]) for one in kept)

    def _kept_as(self, own: TableSpec, query: Query) -> Iterator[pa.Table]:
        """The same with all columns of the file, when the filter is about those of the table."""
        erased = pa.array(row_id_array(self._row_ids(query)))
        for batch in _engine().read(replace(query, spec=own, where=None)).reader():
            rows = pa.Table.from_batches([batch])
            yield rows.filter(pc.invert(pc.is_in(rows.column(ROW_ID), erased)))

    def _row_ids(self, query: Query) -> BitMap64:
        """The ids of the rows that a query finds."""
        return row_ids_of(_engine().read(replace(query, columns=(self.spec.lean_column,))).to_arrow().column(ROW_ID))

    def sync(self, made: Iterable[Left]) -> None:
        """Make files durable."""
        self.warehouse.publish(self.warehouse.root / path for one in made for path in self.files(one))

    def files(self, made: Left) -> list[str]:
        """The stored path of a file that was written."""
        return [made.written] if made.written else []


def _not_numbers(spec: TableSpec, segment: Segment) -> set[str]:
    """Columns that may hold a NaN, as a segment without bounds of theirs was written with one."""
    return {one.name for one in spec.schema if pa.types.is_floating(one.type) and one.name not in segment.min}


@cache
def _engine() -> DuckDBEngine:
    """One for a process: its tasks are many."""
    return DuckDBEngine()
