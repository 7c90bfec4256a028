"""The in-process engine, from rows to files and back."""

from __future__ import annotations

import datetime as dt
import errno
import math
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse.core.chunk import DIVIDING, Grain
from lakehouse.core.interval import Interval
from lakehouse.core.plan import ReadGroup
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine import write as writing
from lakehouse.engine.duckdb import DuckDBEngine, DuckDBRows
from lakehouse.errors import InternalError, InvalidInput, SegmentUnreadable
from lakehouse.predicate import parse
from tests.unit.engine.harness import HOSTILE, Store, comparable, hostile_rows, spec_of

UTC = pa.timestamp("us", "UTC")
DAY_US = 86_400_000_000
SCHEMA = pa.schema([("ts", UTC), ("id", pa.int64()), ("client", pa.int64()), ("value", pa.float64())])


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine()
    yield engine
    engine.close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "ware [h]ouse * % 'é")


def events(rows: int, days: int = 5, seed: int = 7, ordered: bool = False) -> pa.Table:
    chance = np.random.default_rng(seed)
    times = chance.integers(0, days * DAY_US, rows)
    clients = [None if client == 0 else int(client) for client in chance.integers(0, 5, rows)]
    return pa.table(
        [pa.array(np.sort(times) if ordered else times).cast(UTC), np.arange(rows), clients, np.arange(rows) / 4],
        schema=SCHEMA,
    )


def read(store: Store, engine: DuckDBEngine, spec: TableSpec, segments: list[Segment], **rest: Any) -> pa.Table:
    return engine.read(store.query(spec, segments, **rest)).to_arrow()


@pytest.mark.parametrize("grain", DIVIDING)
def test_every_type_comes_back_as_it_was(store: Store, engine: DuckDBEngine, grain: Grain) -> None:
    spec = spec_of(HOSTILE, grain=grain)
    segments = store.write(engine, hostile_rows(), spec)
    found = read(store, engine, spec, segments)
    assert found.schema.equals(spec.schema, check_metadata=True)
    assert comparable(found) == comparable(hostile_rows())
    assert all(grain.chunk(segment.start).contains(segment.interval) for segment in segments)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("batch_rows", [7, 100_000])
def test_files_are_split_by_chunk_and_by_target_rows(
    store: Store, engine: DuckDBEngine, ordered: bool, batch_rows: int
) -> None:
    rows = events(5000, ordered=ordered)
    spec = spec_of(SCHEMA, properties={"target_rows": 400})
    source = pa.RecordBatchReader.from_batches(SCHEMA, rows.to_batches(max_chunksize=batch_rows))
    segments = store.write(engine, source, spec)
    by_day = [segment.start.date() for segment in segments]
    assert len(set(by_day)) == 5
    assert all(by_day.count(day) <= 4 and segment.rows <= 400 for day, segment in zip(by_day, segments, strict=True))
    assert comparable(read(store, engine, spec, segments)) == comparable(rows)


def test_a_ragged_table_fills_files_across_chunks(store: Store, engine: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA, properties={"target_rows": 1000, "ragged": True})
    segments = store.write(engine, events(2500), spec)
    assert [segment.rows for segment in segments] == [1000, 1000, 500]
    assert all(segment.end - segment.start > dt.timedelta(days=4) for segment in segments)


def test_a_long_stream_takes_little_memory_and_few_open_files(
    store: Store, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "BUFFER_BYTES", 20_000)
    monkeypatch.setattr(writing, "OPEN_FILES", 3)
    monkeypatch.setattr("lakehouse.engine.duckdb.source.SLICE_ROWS", 500)
    rows = events(20_000, days=12)
    spec = spec_of(SCHEMA)
    segments = store.write(engine, rows.to_reader(max_chunksize=100), spec)
    assert len(segments) > 12
    assert comparable(read(store, engine, spec, segments)) == comparable(rows)


class _Stream:
    """Anything that speaks Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "shape",
    [
        lambda table: table,
        lambda table: table.combine_chunks().to_batches()[0],
        lambda table: table.to_reader(),
        _Stream,
        lambda table: table.to_pandas(),
        lambda table: table.to_pandas().set_index("ts"),
        lambda table: table.to_pandas().sample(frac=1, random_state=1),
        pl.from_arrow,
        duckdb.from_arrow,
    ],
    ids=["table", "batch", "reader", "stream", "pandas", "indexed pandas", "shuffled pandas", "polars", "duckdb"],
)
def test_rows_of_every_kind_are_taken(store: Store, engine: DuckDBEngine, shape: Any) -> None:
    rows = events(300)
    spec = spec_of(SCHEMA)
    assert comparable(read(store, engine, spec, store.write(engine, shape(rows), spec))) == comparable(rows)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (None, "not rows"),
        (5, "not rows"),
        ("rows", "not rows"),
        ([1, 2], "not a row"),
        ({"ts": [1]}, "missing column"),
        (pl.LazyFrame({"ts": [1]}), "missing column"),
    ],
)
def test_what_is_no_rows_is_refused(store: Store, engine: DuckDBEngine, rows: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        store.write(engine, rows, spec_of(SCHEMA))


def test_a_pandas_column_of_mixed_types_is_refused(store: Store, engine: DuckDBEngine) -> None:
    frame = pd.DataFrame({"ts": [pd.Timestamp("2013-01-05", tz="UTC")] * 2, "id": [1, "x"], "client": 1, "value": 1.0})
    with pytest.raises(InvalidInput, match="no one type"):
        store.write(engine, frame, spec_of(SCHEMA))


def test_no_rows_make_no_files(store: Store, engine: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    assert store.write(engine, SCHEMA.empty_table(), spec) == []
    assert store.write(engine, events(10).slice(0, 0).to_reader(), spec) == []
    assert not store.warehouse.exists()
    for empty in ([], [ReadGroup(())]):
        found = engine.read(store.query(spec, [], groups=empty))
        assert found.to_arrow().equals(spec.schema.empty_table())
        assert (found.count(), found.reader().read_all().num_rows, found.relation().fetchall()) == (0, 0, [])
        assert found.relation().columns == spec.schema.names


def test_an_empty_frame_without_the_tables_columns_is_still_refused(store: Store, engine: DuckDBEngine) -> None:
    with pytest.raises(InvalidInput, match="missing column"):
        store.write(engine, pa.table({"ts": pa.array([], UTC)}), spec_of(SCHEMA))


@pytest.mark.parametrize("time", [None, dt.datetime(2013, 1, 5, tzinfo=dt.UTC)])
def test_a_null_time_anywhere_fails_the_write(store: Store, engine: DuckDBEngine, time: Any) -> None:
    rows = pa.table({"ts": pa.array([time, None], UTC), "id": [1, 2], "client": [1, 2], "value": [1.0, 2.0]})
    with pytest.raises(InvalidInput, match=r"column=ts count="):
        store.write(engine, rows, spec_of(SCHEMA))


@pytest.mark.parametrize("us", [-62_135_596_800_000_001, 253_402_300_800_000_000, (1 << 63) - 1])
def test_a_time_outside_the_calendar_fails_the_write(store: Store, engine: DuckDBEngine, us: int) -> None:
    rows = pa.table({"ts": pa.array([0, us]).cast(UTC), "id": [1, 2], "client": [1, 2], "value": [1.0, 2.0]})
    with pytest.raises(InvalidInput, match="years 1 to 9999"):
        store.write(engine, rows, spec_of(SCHEMA))


def test_footers_say_what_a_file_is(store: Store, engine: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    (segment,) = store.write(engine, events(10, days=1), spec)
    footer = pq.read_metadata(store.warehouse / segment.path)
    assert footer.metadata[b"lakehouse.table"].decode() == spec.folder
    assert footer.metadata[b"lakehouse.operation"].decode() == segment.path.split("/")[1]
    assert (
        footer.metadata[b"lakehouse.interval_us"].decode() == f"{segment.interval.start_us},{segment.interval.end_us}"
    )
    assert [field.metadata[b"PARQUET:field_id"] for field in footer.schema.to_arrow_schema()] == [
        b"1",
        b"2",
        b"3",
        b"4",
    ]


def test_a_nan_leaves_its_column_without_statistics_and_a_read_finds_it(store: Store, engine: DuckDBEngine) -> None:
    rows = events(3000, days=1)
    values = rows["value"].to_numpy().copy()
    values[[10, 2500]] = math.nan
    rows = rows.set_column(3, "value", pa.array(values))
    spec = spec_of(SCHEMA)
    segments = store.write(engine, rows, spec)
    for segment in segments:
        statistics = pq.read_metadata(store.warehouse / segment.path).row_group(0).column(3).statistics
        assert statistics is None or not statistics.has_min_max
    where = parse("value > 1e300", spec.schema).sql("duckdb")
    assert sorted(read(store, engine, spec, segments, where=where)["id"].to_pylist()) == [10, 2500]


def test_a_nan_that_comes_late_in_a_stream_begins_another_file(
    store: Store, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "BUFFER_BYTES", 1)
    monkeypatch.setattr("lakehouse.engine.duckdb.source.SLICE_ROWS", 10)
    rows = events(30, days=1)
    values = rows["value"].to_numpy().copy()
    values[25] = math.nan
    rows = rows.set_column(3, "value", pa.array(values))
    segments = store.write(engine, rows, spec_of(SCHEMA))
    assert [("value" in segment.max, segment.rows) for segment in segments] == [(True, 20), (False, 10)]


MASKS = [
    Tombstone(id=1, start="1970-01-02", end="1970-01-03T12:00", ordinal=2),
    Tombstone(id=2, start="1970-01-01", end="1970-01-06", ordinal=2, keys={"client": (1, None)}),
    Tombstone(id=3, start="1970-01-04", end="1970-01-05", ordinal=2, keys={"client": (2, 3)}),
    Tombstone(id=4, start="1970-01-05", end="1970-01-06", ordinal=2, keys={"client": (4,), "id": (1, 2, 3)}),
]


def hidden(row: dict[str, Any], tombstone: Tombstone) -> bool:
    keys = tombstone.keys or {}
    inside = tombstone.start <= row["ts"] < tombstone.end
    return inside and all(row[column] in values for column, values in keys.items())


@pytest.mark.parametrize("masks", [MASKS[:1], MASKS[1:2], MASKS[2:3], MASKS[3:], MASKS])
@pytest.mark.parametrize("interval", [None, Interval("1970-01-02T06:00", "1970-01-05T01:00")])
def test_tombstones_hide_exactly_what_they_match(
    store: Store, engine: DuckDBEngine, masks: list[Tombstone], interval: Interval | None
) -> None:
    rows = events(2000)
    spec = spec_of(SCHEMA, cluster_by=["client", "id"])
    segments = store.write(engine, rows, spec)
    result = engine.read(store.query(spec, segments, masks, interval=interval))
    expected = [
        row
        for row in rows.to_pylist()
        if not any(hidden(row, mask) for mask in masks) and (interval is None or interval.contains(row["ts"]))
    ]
    assert sorted(result.to_arrow()["id"].to_pylist()) == [row["id"] for row in expected]
    assert result.count() == len(expected)
    assert result.reader().read_all().num_rows == len(expected)
    assert result.relation().aggregate("count(*)").fetchall() == [(len(expected),)]


def test_groups_are_masked_each_by_its_own_tombstones(store: Store, engine: DuckDBEngine) -> None:
    rows = events(1000)
    spec = spec_of(SCHEMA)
    old, new = store.write(engine, rows, spec), store.write(engine, rows, spec)
    groups = [ReadGroup(tuple(new)), ReadGroup(tuple(old), (MASKS[0],))]
    result = engine.read(store.query(spec, [], groups=groups))
    seen = sum(not hidden(row, MASKS[0]) for row in rows.to_pylist())
    assert result.count() == 1000 + seen
    assert result.to_arrow().num_rows == 1000 + seen


def test_a_count_without_masks_opens_no_file_but_misses_none(store: Store, engine: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(engine, events(1000), spec)
    for segment in segments:
        path = store.warehouse / segment.path
        path.write_bytes(b"x" * segment.bytes)
    assert engine.read(store.query(spec, segments)).count() == 1000
    (store.warehouse / segments[2].path).unlink()
    with pytest.raises(SegmentUnreadable, match="missing"):
        engine.read(store.query(spec, segments)).count()


def test_row_ids_are_by_place_unless_stored(store: Store, engine: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    rows = events(500, ordered=True)
    placed = store.write(engine, rows, spec)
    ids = pa.array([None if number % 10 == 0 else 5_000_000_000 + number for number in range(500)], pa.int64())
    stored = store.write(engine, rows.append_column("_row_id", ids), spec, row_ids=True)
    assert [segment.has_row_ids for segment in (*placed, *stored)] == [False] * len(placed) + [True] * len(stored)
    found = read(store, engine, spec, [*stored, *placed], row_ids=True)
    assert found.schema.names == [*SCHEMA.names, "_row_id"]
    expected: list[int] = []
    for segments, held in ((placed, None), (stored, ids.to_pylist())):
        start = 0
        for segment in segments:
            for place in range(segment.rows):
                kept = held[start + place] if held else None
                expected.append(segment.first_row_id + place if kept is None else kept)
            start += segment.rows
    assert sorted(found["_row_id"].to_pylist()) == sorted(expected)
    assert len(set(expected)) == 1000


def test_columns_come_in_the_order_asked_for(store: Store, engine: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(engine, events(10), spec)
    found = read(store, engine, spec, segments, columns=("value", "ts"), where='("client" = 1)', row_ids=True)
    assert found.schema.names == ["value", "ts", "_row_id"]


def _damaged(path: Path, damage: str) -> None:
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    path.unlink()
    match damage:
        case "empty":
            path.write_bytes(b"")
        case "short":
            path.write_bytes(data[:-7])
        case "pages":
            path.write_bytes(data[:4] + b"\xff" * (len(data) - footer - 4) + data[-footer:])
        case "footer":
            path.write_bytes(data[:-footer] + b"\xff" * (footer - 8) + data[-8:])


@pytest.mark.parametrize("damage", ["gone", "empty", "short", "pages", "footer"])
@pytest.mark.parametrize(
    "fetch",
    [DuckDBRows.to_arrow, DuckDBRows.count, lambda rows: rows.reader().read_all()],
    ids=["table", "count", "reader"],
)
def test_a_damaged_file_fails_the_read_and_is_named(
    store: Store, engine: DuckDBEngine, damage: str, fetch: Callable[[DuckDBRows], Any]
) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(engine, events(1000), spec)
    victim = store.warehouse / segments[3].path
    result = engine.read(store.query(spec, segments, where='("value" + "id" >= 0)'))
    _damaged(victim, damage)
    with pytest.raises(SegmentUnreadable) as caught:
        fetch(result)
    assert caught.value.path == str(victim)


def test_a_file_that_vanishes_during_a_read_is_named(store: Store, engine: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA, grain="hour")
    segments = store.write(engine, events(600_000, days=15), spec)
    reader = engine.read(store.query(spec, segments)).reader(batch_rows=10)
    reader.read_next_batch()
    victim = store.warehouse / segments[-1].path
    for segment in segments:
        (store.warehouse / segment.path).unlink()
    with pytest.raises(SegmentUnreadable) as caught:
        reader.read_all()
    assert Path(caught.value.path).parent == victim.parent


def test_a_failed_fsync_fails_the_write(store: Store, engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    store.warehouse.mkdir()
    (store.warehouse / "table-1").mkdir()
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Input/output error"):
        store.write(engine, events(10), spec_of(SCHEMA))


def test_a_source_that_fails_leaves_no_open_file(store: Store, engine: DuckDBEngine) -> None:
    rows = events(100)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches()
        raise RuntimeError("the source broke")

    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(RuntimeError, match="the source broke"):
        store.write(engine, pa.RecordBatchReader.from_batches(SCHEMA, batches()), spec_of(SCHEMA))
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_threads_read_and_write_side_by_side(store: Store, engine: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    counts: list[int] = []

    def work(seed: int) -> None:
        for number in range(5):
            rows = events(200, seed=seed * 10 + number)
            segments = store.write(engine, rows, spec)
            counts.append(engine.read(store.query(spec, segments, where='("id" >= 100)')).to_arrow().num_rows)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [100] * 40


def test_a_relation_lives_on_the_users_own_connection(store: Store, engine: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(engine, events(100), spec)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    relation = engine.read(store.query(spec, segments, [MASKS[0]])).relation(connection)
    relation.create("copied")
    kept = sum(not hidden(row, MASKS[0]) for row in events(100).to_pylist())
    assert connection.sql("SELECT count(*) FROM copied").fetchall() == [(kept,)]


def test_a_tombstone_whose_set_is_missing_is_a_bug_and_says_so(store: Store, engine: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(engine, events(10), spec)
    row = Tombstone(id=1, kind="row", ordinal=2, row_ids=[1])
    with pytest.raises(InternalError, match=r"set was not loaded.*kind=row"):
        engine.read(store.query(spec, segments, [row])).to_arrow()


def test_a_hundred_columns_and_one_row(store: Store, engine: DuckDBEngine) -> None:
    columns = {f"c{number}": pa.array([number]) for number in range(100)}
    rows = pa.table({"ts": pa.array([0]).cast(UTC), "id": [1], **columns})
    spec = spec_of(rows.schema)
    segments = store.write(engine, rows, spec)
    assert read(store, engine, spec, segments).to_pylist() == rows.to_pylist()
    assert segments[0].max["c99"] == 99
