"""A deep check finds what the catalog or a footer says of rows and is not so, though every byte is what was written."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import delete, update

import lakehouse
from lakehouse.catalog.store.models import bin as bins
from lakehouse.catalog.store.models import key_frame, segment, segment_summary
from lakehouse.core.codec import codec_number
from lakehouse.core.summary import SummaryKind
from lakehouse.operations.summarize import build_indexes, build_statistics
from lakehouse.storage.blocks import found_checksum
from lakehouse.testing import behind

SCHEMA = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", "UTC"), nullable=False),
        ("client", pa.string()),
        ("value", pa.int64()),
        ("ratio", pa.float64()),
        ("money", pa.decimal128(12, 2)),
        ("local", pa.timestamp("us")),
    ]
)
START = datetime(2013, 1, 5, tzinfo=UTC)
ROWS = [
    {
        "ts": START + timedelta(minutes=n),
        "client": None if n % 5 == 0 else f"c{n}",
        "value": n,
        "ratio": n / 8,
        "money": Decimal(n),
        "local": datetime(2000, 1, 1) + timedelta(days=n),  # noqa: DTZ001
    }
    for n in range(40)
]


@pytest.fixture
def lake(tmp_path):
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as opened:
        yield opened


@pytest.fixture
def table(lake):
    made = lake.create_table(
        "flights", SCHEMA, time="ts", cluster_by={"client": 64}, properties={"index": "client", "statistics": "on"}
    )
    made.append(pa.Table.from_pylist(ROWS, SCHEMA))
    made.update({"money": "1"}, "value = 7")
    return made


def put(lake, of=None, **values):
    """Let the catalog say something else of a segment, or of all, and of what its key frames hold."""

    def work(connection):
        mine = segment.c.id > 0 if of is None else segment.c.id == of
        connection.execute(update(segment).where(mine).values(**values))
        connection.execute(delete(key_frame))
        connection.execute(update(bins).values(frame_version=None, frame_entries=0, chain=0))

    behind.change_by(lake.catalog, work)
    lake.check(rebuild_key_frames=True)


def lie(lake, change):
    """Let the catalog say something else of columns."""
    for row in behind.rows_of(lake.catalog, segment.select()):
        held = json.loads(row.statistics)
        change(held)
        put(lake, row.id, statistics=json.dumps(held))


def findings(tmp_path):
    """What a deep check by another process finds, but for key frames."""
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as other:
        return {(one.kind, one.problem.split(":")[0]) for one in other.check(deep=True).findings}


def test_a_sound_table_has_no_findings(lake, table, tmp_path):
    build_indexes(lake.session, table.spec, [one.id for one in table.segments()])
    build_statistics(lake.session, table.spec, [one.id for one in table.segments()])
    assert findings(tmp_path) == set()


@pytest.mark.parametrize(
    ("column", "place"),
    [("client", 0), ("value", 1), ("ratio", 0), ("money", 1), ("local", 0), ("local", 1), ("ts", 1)],
)
def test_bounds_that_leave_a_value_out(lake, table, tmp_path, column, place):
    def swap(held):
        held[column][place] = held[column][1 - place]

    lie(lake, swap)
    assert ("statistics", "values lie outside the catalog's bounds") in findings(tmp_path)


def test_nulls_that_are_counted_wrong(lake, table, tmp_path):
    lie(lake, lambda held: held["client"].__setitem__(2, 0))
    assert findings(tmp_path) == {("statistics", "the catalog counts nulls wrong")}


def test_a_codec_that_is_another_one(lake, table, tmp_path):
    put(lake, codec=codec_number("lz4"))
    assert findings(tmp_path) == {("statistics", "the catalog names another codec")}
    put(lake, codec=None)
    assert findings(tmp_path) == set()


def test_hash_buckets_that_leave_a_value_out(lake, table, tmp_path):
    lie(lake, lambda held: held["client"].__setitem__(3, "00" * 8))
    assert findings(tmp_path) == {("statistics", "values are in hash buckets that the catalog does not list")}


def test_an_interval_that_leaves_rows_out(lake, table, tmp_path):
    one = table.segments()[0]
    put(lake, one.id, end_us=one.interval.start_us + 60_000_000)
    assert any(kind == "rows" and "rows lie outside" in problem for kind, problem in findings(tmp_path))


@pytest.mark.parametrize(("values", "problem"), [
    ({"rows": 39}, ("rows", "the file holds another number")),
    ({"has_row_ids": True}, ("statistics", "the catalog says otherwise whether rows store their ids")),
    ({"has_row_ids": False}, ("statistics", "the catalog says otherwise whether rows store their ids")),
])  # fmt: skip
def test_fields_that_are_wrong(lake, table, tmp_path, values, problem):
    put(lake, **values)
    assert problem in findings(tmp_path)


def test_not_a_number_under_bounds(lake, tmp_path):
    made = lake.create_table("ratios", SCHEMA, time="ts")
    made.append(pa.Table.from_pylist([{**ROWS[0], "ratio": float("nan")}, ROWS[1]], SCHEMA))
    assert findings(tmp_path) == set()
    lie(lake, lambda held: held.__setitem__("ratio", [0.0, 0.5, 0]))
    assert findings(tmp_path) == {("statistics", "values lie outside the catalog's bounds")}


@pytest.mark.parametrize("kind", SummaryKind)
def test_an_index_or_sketch_of_other_rows(lake, table, tmp_path, kind):
    ids = [one.id for one in table.segments()]
    build_indexes(lake.session, table.spec, ids)
    build_statistics(lake.session, table.spec, ids)
    found = lake.catalog.summaries.read(kind, ids)
    other = next(one for one in found if one.content != found[0].content)
    wrong = (segment_summary.c.segment == found[0].segment) & (segment_summary.c.kind == kind.value)
    mine = segment_summary.c.field == found[0].field_id
    behind.change(lake.catalog, update(segment_summary).where(wrong, mine).values(content=other.content))
    assert {one for one, _ in findings(tmp_path)} == {"summary"}


def test_a_footer_that_says_otherwise_than_its_pages(lake, table, tmp_path):
    """As a faulty writer would leave it: its checksum is that of what it wrote, and the catalog believed its footer."""
    one = table.segments()[0]
    path = lake.warehouse / one.path
    held = pq.read_metadata(path).metadata
    rows = pq.read_table(path, partitioning=None)
    lies = rows.set_column(2, "value", pa.array(range(100, 100 + len(rows)), pa.int64()))
    for content, place in ((rows, "true"), (lies, "false")):
        with pq.ParquetWriter(
            tmp_path / place, rows.schema, compression="none", use_dictionary=False, store_schema=False
        ) as to:
            to.add_key_value_metadata({name: value for name, value in held.items() if b"blocks" not in name})
            to.write_table(content)
    true, false = ((tmp_path / place).read_bytes() for place in ("true", "false"))
    assert len(true) == len(false)
    start = len(true) - 8 - int.from_bytes(true[-8:-4], "little")
    path.write_bytes(false[:start] + true[start:])
    put(lake, one.id, bytes=len(true), checksum=found_checksum(path))
    found = findings(tmp_path)
    assert ("statistics", "values lie outside the footer's bounds") in found
    assert ("statistics", "values lie outside the catalog's bounds") in found
