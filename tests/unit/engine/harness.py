"""A warehouse without a catalog: write by one engine, read by another, plans made by hand."""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse.core.interval import MAX_TIME, MIN_TIME, Interval
from lakehouse.core.plan import ReadGroup, ReadPlan
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine import Engine, Query, WriteTarget
from lakehouse.schema import define_table
from lakehouse.storage.files import Folder
from lakehouse.storage.footer import read_footers

FOLDER = "table-1"


@dataclass
class Store:
    """A warehouse, and row ids handed out as the catalog would."""

    warehouse: Path
    row_ids: Iterable[int] = field(default_factory=lambda: itertools.count(0, 1_000_000))

    def write(
        self, engine: Engine, rows: Any, spec: TableSpec, *, batch: int = 0, row_ids: bool = False
    ) -> list[Segment]:
        """Write rows as an operation of their own; return its segments."""
        operation = uuid.uuid4().hex
        folder = self.warehouse / spec.folder / operation
        written = engine.write(rows, WriteTarget(spec, folder, operation, batch, row_ids))
        checksums = {one.name: one.checksum for one in written}
        files = [
            replace(one, path=f"{spec.folder}/{operation}/{one.path}", checksum=checksums[one.path])
            for one in read_footers(folder, list(checksums), spec)
        ]
        # Files that store row ids count some by position here, too.
        return [
            replace(one.added(one.path, ordinal=1, first_row_id=0), first_row_id=next(iter(self.row_ids)))
            for one in files
        ]

    def query(
        self,
        spec: TableSpec,
        segments: Sequence[Segment],
        tombstones: Sequence[Tombstone] = (),
        *,
        groups: Sequence[ReadGroup] | None = None,
        interval: Interval | None = None,
        **rest: Any,
    ) -> Query:
        """A query over segments that all tombstones mask, or over groups."""
        listed = (ReadGroup(tuple(segments), tuple(tombstones)),) if groups is None else tuple(groups)
        return Query(ReadPlan(1, interval, listed), spec, Folder(self.warehouse), **rest)


def spec_of(schema: Any, **rest: Any) -> TableSpec:
    """A table's definition with its folder; time column ``ts``."""
    return define_table("hostile", schema, time="ts", folder=FOLDER, **rest)


HOSTILE = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("id", pa.int64()),
        ("tiny", pa.int8()),
        ("short", pa.int16()),
        ("int", pa.int32()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("local", pa.timestamp("us")),
        ("money", pa.decimal128(10, 2)),
        ("huge", pa.decimal128(38, 10)),
        ("Verspätung in %.of day", pa.int32()),
        ("list", pa.list_(pa.int64())),
        ("struct", pa.struct([("x", pa.int32()), ("y z", pa.list_(pa.string()))])),
        ("map", pa.map_(pa.string(), pa.float64())),
        ("structs", pa.list_(pa.struct([("when", pa.timestamp("us", "UTC"))]))),
    ]
)
"""Every type that a table can hold, under names that break careless code."""


def hostile_rows() -> pa.Table:
    """Edges of every type, nulls everywhere they may be, time from the year 1 to the year 9999."""
    nan, inf = float("nan"), float("inf")
    utc = dt.UTC
    first = {
        "ts": dt.datetime(1, 1, 1, tzinfo=utc),
        "tiny": -128,
        "short": -32768,
        "int": -(1 << 31),
        "single": nan,
        "double": nan,
        "flag": True,
        "text": "",
        "bytes": b"",
        "day": dt.date(1, 1, 1),
        "local": MIN_TIME.replace(tzinfo=None),
        "money": Decimal("-99999999.99"),
        "huge": Decimal("-9999999999999999999999999999.9999999999"),
        "Verspätung in %.of day": 1,
        "list": [],
        "struct": {"x": None, "y z": None},
        "map": [],
        "structs": [],
    }
    last = {
        "ts": dt.datetime(9999, 12, 31, 23, 59, 59, 999998, tzinfo=utc),
        "tiny": 127,
        "short": 32767,
        "int": (1 << 31) - 1,
        "single": -inf,
        "double": inf,
        "flag": False,
        "text": 'it\'s \\ "quoted" `x` % \U0001d4b3 \u00e9 \n\t${HOME}',
        "bytes": bytes(range(256)),
        "day": dt.date(9999, 12, 31),
        "local": MAX_TIME.replace(tzinfo=None),
        "money": Decimal("99999999.99"),
        "huge": Decimal("0.0000000001"),
        "Verspätung in %.of day": None,
        "list": [1, None, -(1 << 63)],
        "struct": {"x": 1, "y z": ["a", None, ""]},
        "map": [("k", nan), ("", None)],
        "structs": [{"when": dt.datetime(1582, 10, 10, tzinfo=utc)}, None, {"when": None}],
    }
    times = [
        dt.datetime(1582, 10, 4, 23, 59, tzinfo=utc),
        dt.datetime(1582, 10, 15, tzinfo=utc),
        dt.datetime(1899, 12, 31, 12, tzinfo=utc),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=utc),
        dt.datetime(2000, 2, 29, 12, tzinfo=utc),
        dt.datetime(2012, 2, 29, 23, 59, 59, tzinfo=utc),
        dt.datetime(2013, 3, 10, 7, 30, tzinfo=utc),
        dt.datetime(2012, 12, 31, tzinfo=utc),
    ]
    middle = [
        {"ts": time, "double": -0.0 if number % 2 else 0.5, "day": time.date()} for number, time in enumerate(times)
    ]
    rows = [first, last, *middle]
    return pa.Table.from_pylist([{**row, "id": number} for number, row in enumerate(rows)], schema=HOSTILE)


def comparable(table: pa.Table) -> list[str]:
    """Rows in the order of ``id``, as text: NaN equals NaN, and 0.0 is not -0.0."""
    return [repr(row) for row in sorted(table.to_pylist(), key=lambda row: row["id"])]
