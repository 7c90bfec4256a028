"""Compares a segment's rows with the catalog: decodes every page and recomputes every statistic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse.core.bucket import BucketSet
from lakehouse.core.interval import ALL_TIME, to_us, to_utc
from lakehouse.core.segment import Segment
from lakehouse.core.spec import ROW_ID, TableSpec
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.footer import DAMAGE, codec_of, primitive_columns
from lakehouse.storage.verify import file_of
from lakehouse.storage.warehouse import Warehouse

_Problem = tuple[str, str]
"""The kind of a finding, and the problem."""


def examine(warehouse: Warehouse, segment: Segment, spec: TableSpec) -> list[_Problem]:
    """Problems with the rows of a segment's file, or with its statistics in the catalog and the footer.

    Kinds: *rows*, *statistics*. Raises `SegmentUnreadable` for a file that does not decode. Cost: the file, a row group
    in memory.
    """
    try:
        with file_of(warehouse, segment) as path, pq.ParquetFile(path) as file:
            return list(_problems(file, segment, spec))
    except DAMAGE as error:
        raise SegmentUnreadable(
            "data file is malformed; restore it from a copy",
            path=segment.path,
            cause=repr(error),
        ) from error


def _problems(file: pq.ParquetFile, segment: Segment, spec: TableSpec) -> Iterator[_Problem]:
    yield from _identity(file.metadata.metadata or {}, segment)
    leaves = primitive_columns(file.schema_arrow)
    seen = {name: _Seen(file.schema_arrow.field(name).type) for name in leaves}
    stored = spec.stored_names
    buckets = {name: BucketSet(8 * len(held)) for name, held in segment.buckets.items()}
    row_ids = []
    rows = 0
    for group in range(file.metadata.num_row_groups):
        table = file.read_row_group(group)
        table.validate(full=True)
        rows += table.num_rows
        chunks = file.metadata.row_group(group)
        if chunks.num_rows != table.num_rows:
            yield "rows", f"a row group holds another number: expected={chunks.num_rows} found={table.num_rows}"
        for name, leaf in leaves.items():
            here = _Seen(seen[name].type)
            here.add(table.column(name))
            seen[name].join(here)
            yield from _footer_lies(name, here, chunks.column(leaf).statistics)
        for name, held in buckets.items():
            if stored.get(name, name) in leaves:
                held.add(pc.unique(table.column(stored.get(name, name))).to_pylist())
        if ROW_ID in leaves:
            row_ids.append(table.column(ROW_ID).combine_chunks())
    if rows != segment.rows:
        yield "rows", f"the file holds another number: expected={segment.rows} found={rows}"
        return
    yield from _known_lies(seen, segment, spec)
    for name, held in buckets.items():
        if int.from_bytes(held.to_bytes(), "little") & ~int.from_bytes(segment.buckets[name], "little"):
            yield "statistics", f"values are in hash buckets that the catalog does not list: column={name}"
    yield from _row_id_lies(row_ids, segment)
    codec = codec_of(file.metadata)
    if segment.codec and segment.codec != codec:
        yield "statistics", f"the catalog names another codec: expected={segment.codec} found={codec or 'others'}"


def _known_lies(seen: dict[str, _Seen], segment: Segment, spec: TableSpec) -> Iterator[_Problem]:
    """Problems in what the catalog knows of a segment's interval and of the columns that the table still has."""
    current = {spec.history(column).stored: column.name for column in spec.schema}
    if not spec.time and segment.interval != ALL_TIME:
        yield "statistics", f"the table is timeless, and the catalog has an interval: found={segment.interval}"
    for stored, name in current.items():
        if name == spec.time:
            yield from _interval_lies(seen.get(stored), segment)
    for name, one in seen.items():
        if name in current or name == ROW_ID:
            yield from _catalog_lies(current.get(name, name), one, segment)


def _identity(held: dict[bytes, bytes], segment: Segment) -> Iterator[_Problem]:
    """Whether the footer names the path of the file; older footers name only the operation."""
    folder, operation, name = segment.path.split("/", 2)
    expected = {"table": folder, "operation": operation, "file": name}
    for what, value in expected.items():
        found = held.get(f"lakehouse.{what}".encode())
        if found is not None and found.decode(errors="replace") != value:
            yield "rows", f"the file is another one: its footer names {what}={found.decode(errors='replace')}"


@dataclass(slots=True)
class _Seen:
    """Statistics of a column's values: extremes as the type of `_plain`, nulls, and whether any is NaN."""

    type: pa.DataType
    least: Any = None
    greatest: Any = None
    nulls: int = 0
    has_nan: bool = False
    plain: Callable[[Any], Any] = field(init=False)

    def __post_init__(self) -> None:
        self.plain = _instant if pa.types.is_timestamp(self.type) else _day if pa.types.is_date(self.type) else _same

    def add(self, values: pa.ChunkedArray) -> None:
        """Count values."""
        self.nulls += values.null_count
        if pa.types.is_floating(values.type):
            self.has_nan = bool(pc.any(pc.is_nan(values)).as_py())
            values = values.filter(pc.invert(pc.is_nan(values)))
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        if pa.types.is_null(values.type) or len(values) == values.null_count:
            return
        found = pc.min_max(values)
        self.least, self.greatest = found["min"].as_py(), found["max"].as_py()

    def join(self, other: _Seen) -> None:
        """Add the statistics of another."""
        self.nulls += other.nulls
        self.has_nan |= other.has_nan
        if other.least is not None:
            self.least = other.least if self.least is None else min(self.least, other.least)
            self.greatest = other.greatest if self.greatest is None else max(self.greatest, other.greatest)

    def exceeds(self, low: Any, high: Any) -> bool:
        """Whether a value lies outside bounds, of which either may be None."""
        if self.has_nan and not (low is None and high is None):
            return True
        if self.least is None:
            return False
        return (low is not None and self.least < self.plain(low)) or (
            high is not None and self.greatest > self.plain(high)
        )


def _instant(value: Any) -> int:
    return value if isinstance(value, int) else to_us(to_utc(value))


def _day(value: Any) -> Any:
    """A date, as which a file may hold what was widened to times."""
    return value.date() if isinstance(value, datetime) else value


def _same(value: Any) -> Any:
    return value


def _footer_lies(name: str, seen: _Seen, footer: Any) -> Iterator[_Problem]:
    """Problems in the footer's statistics of a row group's column, by which engines prune row groups."""
    if footer is None:
        return
    if footer.has_null_count and footer.null_count != seen.nulls:
        yield (
            "statistics",
            f"the footer counts nulls wrong: column={name} expected={footer.null_count} found={seen.nulls}",
        )
    if footer.has_min_max:
        low, high = (footer.min_raw, footer.max_raw) if pa.types.is_timestamp(seen.type) else (footer.min, footer.max)
        if seen.exceeds(low, high):
            yield "statistics", f"values lie outside the footer's bounds: column={name}"


def _catalog_lies(name: str, seen: _Seen, segment: Segment) -> Iterator[_Problem]:
    nulls = segment.nulls.get(name)
    if nulls is not None and nulls != seen.nulls:
        yield "statistics", f"the catalog counts nulls wrong: column={name} expected={nulls} found={seen.nulls}"
    if seen.exceeds(segment.min.get(name), segment.max.get(name)):
        yield "statistics", f"values lie outside the catalog's bounds: column={name}"


def _interval_lies(seen: _Seen | None, segment: Segment) -> Iterator[_Problem]:
    """Rows outside the interval, which may be wider than the rows only after a rewrite."""
    if seen is None or seen.least is None:
        return
    start_us, end_us = segment.interval.start_us, segment.interval.end_us
    if seen.least < start_us or seen.greatest >= end_us:
        yield "rows", f"rows lie outside {segment.interval}: found={seen.least}..{seen.greatest} microseconds"


def _row_id_lies(parts: list[pa.Array], segment: Segment) -> Iterator[_Problem]:
    if bool(parts) != segment.has_row_ids:
        yield "statistics", f"the catalog says otherwise whether rows store their ids: found={bool(parts)}"
        return
    if parts:
        stored = pa.chunked_array(parts)
        if pc.count_distinct(stored, mode="only_valid").as_py() != len(stored) - stored.null_count:
            yield "rows", "a row id is there twice"
