"""Random segments under tombstones of every kind, and which of their rows are visible, row by row."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from lakehouse.core.interval import Interval
from lakehouse.core.plan import plan_read
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.visibility import is_visible
from lakehouse.engine import Query
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.schema import define_table
from lakehouse.storage.files import Folder
from tests.unit.engine.harness import FOLDER, Store

UTC = pa.timestamp("us", "UTC")
START = dt.datetime(2013, 1, 5, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
TEXTS = ["", "a", "é", "e\u0301", "it's", "100% \U0001d4b3", "line\nbreak", '"', "\\", "NULL", "[1, 2]", "A"]
KEYS: dict[str, list[tuple[pa.DataType, list[Any]]]] = {
    "number": [(pa.int64(), [*range(40), -1, (1 << 63) - 1, -(1 << 63)])],
    "text": [(pa.string(), TEXTS)],
    "several": [(pa.string(), TEXTS), (pa.int8(), [-128, 0, 127]), (pa.date32(), [dt.date(1, 1, 1), START.date()])],
    "others": [
        (pa.binary(), [b"", b"\x00", b"\xff'"]),
        (UTC, [START, START + dt.timedelta(microseconds=1)]),
        (pa.decimal128(20, 4), [Decimal("0.0001"), Decimal(-5), Decimal("1e15")]),
    ],
}
"""Primary keys: the type and possible values of each of their columns."""


@dataclass
class Case:
    """A query and the rows that it must find: number, row id and ordinal of each."""

    query: Query
    seen: list[tuple[int, int, int]]

    def rows(self, **rest: Any) -> Query:
        """The query with row ids and ordinals, or what else is asked for."""
        return replace(self.query, **({"row_ids": True, "ordinals": True} | rest))


def found(table: pa.Table) -> list[tuple[int, int, int]]:
    """A result of `Case.rows` in the form of `Case.seen`."""
    columns = (table.column(name).to_pylist() for name in ("number", "_row_id", "_ordinal"))
    return sorted(zip(*columns, strict=True))


def random_case(store: Store, engine: DuckDBEngine, chosen: random.Random, key: str) -> Case:
    """Up to a dozen segments in three days, with fresh and stored row ids, under up to ten tombstones."""
    columns = {f"k{place}": kind for place, (kind, _) in enumerate(KEYS[key])}
    schema = pa.schema([("number", pa.int64()), ("ts", UTC), *columns.items(), ("client", pa.string())])
    spec = define_table(
        "t", schema, time="ts", folder=FOLDER, primary_key=tuple(columns), cluster_by=("client",),
        properties={"ragged": chosen.random() < 0.3},
    )  # fmt: skip
    segments: list[Segment] = []
    held: list[dict[str, Any]] = []
    for batch in range(chosen.randrange(1, 6)):
        rows = [_row(chosen, key, 100 * batch + place) for place in range(chosen.randrange(1, 40))]
        table = pa.Table.from_pylist(rows, schema=spec.schema)
        stores = bool(held) and chosen.random() < 0.5
        if stores:
            ids = [one["_row_id"] for one in held] + [None]
            table = table.append_column("_row_id", pa.array([chosen.choice(ids) for _ in rows], pa.int64()))
        for one in store.write(engine, table, spec, row_ids=stores):
            segment = replace(one, ordinal=chosen.randrange(1, 6))
            if chosen.random() < 0.2:
                segment = replace(segment, min={}, max={}, nulls={})
            segments.append(segment)
            held += _held(store, segment)
    tombstones, sets = _tombstones(chosen, spec, held)
    interval = Interval(*_span(chosen)) if chosen.random() < 0.3 else None
    plan = plan_read(
        segments, [replace(one, primary_keys=None, row_ids=None) for one in tombstones], version=1,
        interval=interval, max_groups=chosen.choice([1, 24]),
    )  # fmt: skip
    seen = [
        (row["number"], row["_row_id"], row["_ordinal"])
        for row in held
        if (interval is None or interval.contains(row["ts"]))
        and is_visible(row["ts"], row, row["_row_id"], _key(row, spec), row["_ordinal"], tombstones)
    ]
    return Case(Query(plan, spec, Folder(store.warehouse), sets=sets), sorted(seen))


def _row(chosen: random.Random, key: str, number: int) -> dict[str, Any]:
    values = {f"k{place}": chosen.choice(values) for place, (_, values) in enumerate(KEYS[key])}
    time = START + chosen.randrange(72) * HOUR
    return {"number": number, "ts": time, **values, "client": chosen.choice([None, "a", "b"])}


def _key(row: dict[str, Any], spec: TableSpec) -> tuple[Any, ...]:
    return tuple(row[name] for name in spec.primary_key)


def _held(store: Store, segment: Segment) -> list[dict[str, Any]]:
    """A segment's rows with their row ids and its ordinal."""
    rows = pq.read_table(store.warehouse / segment.path, partitioning=None).to_pylist()
    for place, row in enumerate(rows):
        row["_ordinal"] = segment.ordinal
        if row.get("_row_id") is None:
            row["_row_id"] = segment.first_row_id + place
    return rows


def _span(chosen: random.Random) -> tuple[dt.datetime, dt.datetime]:
    first, last = sorted(chosen.sample(range(13), 2))
    return START + 6 * first * HOUR, START + 6 * last * HOUR


def _tombstones(
    chosen: random.Random, spec: TableSpec, held: list[dict[str, Any]]
) -> tuple[list[Tombstone], dict[int, BitMap64 | pa.Table]]:
    tombstones: list[Tombstone] = []
    sets: dict[int, BitMap64 | pa.Table] = {}
    for number in range(chosen.randrange(1, 11)):
        kind = chosen.choice(["interval", "key", "key", "row", "row", "row"])
        is_wide = kind != "interval" and chosen.random() < 0.6
        start, end = (None, None) if is_wide else _span(chosen)
        known = {"id": number, "start": start, "end": end, "ordinal": chosen.randrange(1, 8)}
        picked = chosen.sample(held, chosen.randrange(len(held) // 3 + 1))
        # The interval of a tombstone of keys or rows is where the rows with them are.
        outside = [] if is_wide else [row for row in held if not start <= row["ts"] < end]
        match kind:
            case "interval":
                keys = {"client": chosen.sample([None, "a", "b"], 1)} if chosen.random() < 0.5 else None
                tombstones.append(Tombstone(**known, keys=keys))
            case "row":
                ids = {row["_row_id"] for row in picked} | {chosen.randrange(1 << 62)}
                ids -= {row["_row_id"] for row in outside}
                sets[number] = BitMap64(ids if picked else ())
                tombstones.append(Tombstone(**known, kind="row", row_ids=ids if picked else ()))
            case _:
                values = {_key(row, spec) for row in picked} - {_key(row, spec) for row in outside}
                fields = [spec.schema.field(name) for name in spec.primary_key]
                rows = [dict(zip(spec.primary_key, one, strict=True)) for one in sorted(values, key=repr)]
                sets[number] = pa.Table.from_pylist(rows, schema=pa.schema(fields))
                bounds = chosen.random() < 0.5 and values
                least = {name: min(row[name] for row in rows) for name in spec.primary_key} if bounds else {}
                greatest = {name: max(row[name] for row in rows) for name in spec.primary_key} if bounds else {}
                tombstones.append(Tombstone(**known, kind="key", primary_keys=values, min=least, max=greatest))
    return tombstones, sets
