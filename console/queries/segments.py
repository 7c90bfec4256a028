"""Queries of the Segments page: segments that pass a filter, a page at a time, and details of one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.core import Interval, Segment
from lakehouse.core.checksum import shown as checksum_text
from lakehouse.core.plan import plan_read
from lakehouse.core.prune import matching
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import Skyline, bounds
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine import Query
from lakehouse.engine.frames import first_rows
from lakehouse.errors import SegmentUnreadable
from lakehouse.predicate import parse
from lakehouse.reading.scan import sets_of
from lakehouse.storage.checksums import check_plain
from lakehouse.storage.footer import DAMAGE
from lakehouse.storage.verify import verified
from queries.words import framed, size_text, text_of
from shown import shown

ORDERS = {"newest write": "ordinal", "time": "start_us", "most rows": "rows", "most bytes": "bytes"}
ORDERS_ELSEWHERE = {
    "newest write": ("ordinal", True),
    "time": ("start", False),
    "most rows": ("rows", True),
    "most bytes": ("bytes", True),
}
"""The same by what a segment calls them, and whether the greatest comes first."""
SEEN, OVERSHADOWED = "visible", "overshadowed"
PREVIEW_ROWS = 100


@dataclass(frozen=True, slots=True)
class Found:
    """Segments that pass a filter, in order, the overshadowed ones among them, and what lies over these."""

    segments: Segments
    overshadowed: frozenset[int]
    tombstones: tuple[Tombstone, ...]


def find_segments(
    lake: Any,
    name: str,
    version: int,
    interval: Interval | None,
    *,
    where: str = "",
    order: str = "newest write",
    state: str | None = None,
) -> Found:
    """Segments of an interval that may hold rows for which a SQL predicate is true; decided by bounds, in columns.

    Raises `InvalidInput` for a predicate that cannot be read.
    """
    table = lake.table(name)
    segments, tombstones = lake.catalog.live(table.spec, version, interval)
    if interval is not None:
        segments = segments.within(interval)
    if where.strip():
        segments = segments.where(matching(parse(where, table.schema).tree, segments))
    starts, ends, ordinals = segments.bounds
    hidden = Skyline.of(*bounds([one for one in tombstones if one.hides_interval])).least(starts, ends) > ordinals
    if state is not None:
        kept = hidden if state == OVERSHADOWED else ~hidden
        segments, hidden = segments.where(kept), hidden[kept]
    places = np.argsort(segments.numbers(ORDERS[order]), kind="stable")
    if order != "time":
        places = places[::-1]
    return Found(segments.take(places), frozenset(segments.ids[hidden].tolist()), tuple(tombstones))


def describe_segments(lake: Any, name: str, found: Found, part: Segments) -> pd.DataFrame:
    """One row for each segment of a page."""
    origins = lake.catalog.origins(lake.table(name).spec, part.ids.tolist())
    rows = []
    for one in part:
        origin = origins.get(one.id)
        rows.append(
            {
                "segment": str(one.id),
                "from": one.start,
                "until": one.end,
                "rows": one.rows,
                "size": one.bytes,
                "ordinal": one.ordinal,
                "state": OVERSHADOWED if one.id in found.overshadowed else SEEN,
                "made by": f"{origin.operation} at {origin.version}" if origin else "",
                "codec": one.codec or "not known",
                "rewrites": one.rewrites,
                "row ids": "stored" if one.has_row_ids else f"from {one.first_row_id:,}",
                "file": one.path,
            }
        )
    return framed(rows, "from", "until")


@dataclass(frozen=True, slots=True)
class File:
    """A segment's file: facts, and a row for each column of its schema and for each row group."""

    facts: Mapping[str, str]
    schema: pd.DataFrame
    row_groups: pd.DataFrame


def statistics_of(table: Any, segment: Segment) -> pd.DataFrame:
    """The catalog's statistics of each column: minimum, maximum, nulls, and key coordinates."""
    rows = []
    for field in table.schema:
        buckets = segment.buckets.get(field.name)
        rows.append(
            {
                "column": field.name,
                "least": shown(segment.min.get(field.name, ""), 200),
                "greatest": shown(segment.max.get(field.name, ""), 200),
                "nulls": str(segment.nulls.get(field.name, "")),
                "key coordinate": "" if buckets is None else _buckets_text(buckets),
            }
        )
    return pd.DataFrame(rows)


def _buckets_text(buckets: bytes) -> str:
    """In how many hash buckets the values lie, and the first of these."""
    held = [place for place in range(8 * len(buckets)) if buckets[place // 8] >> place % 8 & 1]
    listed = ", ".join(map(str, held[:8])) + (", …" if len(held) > 8 else "")
    return f"{len(held)} of {8 * len(buckets)} buckets: {listed}"


def read_file(lake: Any, segment: Segment) -> File:
    """The file's Parquet schema and row groups. Cost: its footer. Raises `SegmentUnreadable`."""
    (path,) = verified(lake.session.warehouse, [segment]).values()
    size = check_plain(path, segment.bytes).st_size
    try:
        with pq.ParquetFile(path) as file:
            held = file.metadata
            groups = [held.row_group(place) for place in range(held.num_row_groups)]
            schema = [file.schema.column(place) for place in range(len(file.schema))]
    except DAMAGE as error:
        raise SegmentUnreadable(
            "data file is malformed; restore it from a copy", path=segment.path, cause=error
        ) from error
    facts = {
        "Format": f"Parquet {held.format_version}",
        "Rows": f"{held.num_rows:,}",
        "Size": size_text(size),
        "Footer": size_text(held.serialized_size),
        "Checksum": checksum_text(segment.checksum),
        "Written by": shown(held.created_by or "", 100),
    }
    columns = [
        {"column": shown(one.path, 100), "type": one.physical_type, "meaning": str(one.logical_type)} for one in schema
    ]
    properties = [
        {
            "row group": place,
            "rows": group.num_rows,
            "size": group.total_byte_size,
            "compressed": sum(group.column(one).total_compressed_size for one in range(group.num_columns)),
            "compression": ", ".join(sorted({group.column(one).compression for one in range(group.num_columns)})),
        }
        for place, group in enumerate(groups)
    ]
    return File(facts, pd.DataFrame(columns), pd.DataFrame(properties))


def preview(lake: Any, name: str, version: int, segment: Segment, tombstones: tuple[Tombstone, ...]) -> pa.Table:
    """The first rows of a segment that are visible at a version, by the in-process engine."""
    table = lake.table(name)
    plan = plan_read([segment], tombstones, version=version)
    query = Query(plan, table.spec, lake.session.warehouse, tuple(table.schema.names), sets=sets_of(lake.session, plan))
    return first_rows(lake.session.local_engine.read(query).reader(), PREVIEW_ROWS)


def histogram(segments: Segments) -> pd.DataFrame:
    """How many segments there are of each size, by powers of two."""
    sizes = segments.numbers("bytes")
    if not len(sizes):
        return pd.DataFrame()
    power = np.floor(np.log2(np.maximum(sizes, 1))).astype(int)
    counts = np.bincount(power)
    listed = range(int(power.min()), int(power.max()) + 1)
    return pd.DataFrame([{"from size": size_text(2**one), "segments": int(counts[one])} for one in listed])


def span(segment: Segment) -> str:
    """When a segment begins and ends."""
    return f"{text_of(segment.start)} – {text_of(segment.end)}"
