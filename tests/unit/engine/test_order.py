"""The order in which merges write: by time, or so that what is near in time and keys is near in the file."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableSpec
from lakehouse.engine import Engine
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.engine.duckdb.sort import sorted_batches
from lakehouse.engine.order import spread
from lakehouse.errors import SegmentUnreadable
from tests.unit.engine.harness import HOSTILE, Store, comparable, hostile_rows, spec_of

UTC = pa.timestamp("us", "UTC")
DAY_US = 86_400_000_000
MICROSECOND = timedelta(microseconds=1)
SCHEMA = pa.schema([("ts", UTC), ("client", pa.int64()), ("name", pa.string()), ("id", pa.int64())])
BY = ("ts", "client", "name")
ROWS = 40_000


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine()
    yield engine
    engine.close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "ware [h]ouse * % 'é")


def visits(rows: int = ROWS, *, days: int = 1, seed: int = 5) -> pa.Table:
    """Rows in no order, clients of very different frequency, some values null."""
    chosen = np.random.default_rng(seed)
    client = chosen.zipf(1.5, rows).clip(max=10_000)
    names = np.array(["AA", "it's", "\u00e9t\u00e9", "UA", "WN", "B6", "", "DL"])[chosen.integers(0, 8, rows)]
    is_null = chosen.random(rows) < 0.01
    columns = [
        pa.array(chosen.integers(0, days * DAY_US, rows), UTC),
        pa.array(client, mask=is_null),
        pa.array(names, mask=is_null),
        pa.array(np.arange(rows)),
    ]
    return pa.table(columns, schema=SCHEMA)


def rewritten(store: Store, engine: Engine, spec: TableSpec, rows: pa.Table, by: tuple[str, ...]) -> list[Segment]:
    """The segments of a merge of some rows."""
    parts = [segment for part in (rows[::2], rows[1::2]) for segment in store.write(DuckDBEngine(), part, spec)]
    ordered = engine.ordered(store.query(spec, parts), by)
    return store.write(engine, ordered, spec, row_ids=True)


def opened(segments: list[Segment], column: str, value: object) -> int:
    """How many segments a look for a value opens."""
    return sum(one.min[column] <= value <= one.max[column] for one in segments)


def spec(target_rows: int = ROWS // 64) -> TableSpec:
    return spec_of(SCHEMA, properties={"target_rows": str(target_rows)})


def no_cursor() -> duckdb.DuckDBPyConnection:
    raise AssertionError("the engine's own database has no bound of memory")


def rows_of(store: Store, spec: TableSpec, segments: list[Segment]) -> pa.Table:
    return DuckDBEngine().collect(store.query(spec, segments))


def test_by_time_each_segment_follows_the_one_before(store: Store, engine: DuckDBEngine) -> None:
    given = visits()
    made = sorted(rewritten(store, engine, spec(), given, ("ts",)), key=lambda one: one.start)
    assert len(made) == 64
    assert all(one.end - MICROSECOND <= other.start for one, other in itertools.pairwise(made))
    assert comparable(rows_of(store, spec(), made)) == comparable(given)


def test_along_the_curve_a_look_for_any_key_opens_few_segments(store: Store, engine: DuckDBEngine) -> None:
    given = visits()
    by_time = rewritten(store, engine, spec(), given, ("ts",))
    along = rewritten(store, engine, spec(), given, BY)
    assert comparable(rows_of(store, spec(), along)) == comparable(given)
    for column, value in (("client", 2), ("client", 3_000), ("name", "UA")):
        assert opened(along, column, value) < 0.7 * opened(by_time, column, value)
    moment = along[0].start
    assert sum(one.start <= moment < one.end for one in along) < 0.7 * len(along)


def test_chunks_come_one_after_the_other_along_the_curve_too(store: Store, engine: DuckDBEngine) -> None:
    held = spec(ROWS)
    parts = store.write(engine, visits(days=3), held)
    found = engine.ordered(store.query(held, parts), BY).read_all()
    days = found.column("ts").cast(pa.int64()).to_numpy() // DAY_US
    assert (np.diff(days) >= 0).all()
    assert len(set(days.tolist())) == 3


def test_what_does_not_fit_into_memory_is_sorted_on_disk_and_nothing_stays_there(
    store: Store, engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spilled = tmp_path / "spilled"
    spilled.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spilled))
    held = spec(10**7)
    query = store.query(held, store.write(engine, visits(600_000), held), row_ids=True)
    batches = sorted_batches(engine.read(query), query, ("ts",), no_cursor, memory="48MB", small_bytes=0)
    times = [next(batches).column("ts")]
    assert list(spilled.iterdir())
    times += [batch.column("ts") for batch in batches]
    values = pa.chunked_array(times).cast(pa.int64()).to_numpy()
    assert len(values) == 600_000
    assert (np.diff(values) >= 0).all()
    assert not list(spilled.iterdir())


@pytest.mark.parametrize("column", [field.name for field in HOSTILE if not pa.types.is_nested(field.type)])
def test_every_type_that_has_an_order_can_be_a_coordinate(store: Store, engine: DuckDBEngine, column: str) -> None:
    held = spec_of(HOSTILE)
    segments = store.write(engine, hostile_rows(), held)
    by = ("ts",) if column == "ts" else ("ts", column)
    found = engine.ordered(store.query(held, segments), by).read_all()
    assert comparable(found.drop_columns("_row_id")) == comparable(hostile_rows())


def test_a_broken_file_is_named(store: Store, engine: DuckDBEngine) -> None:
    held = spec()
    segments = store.write(engine, visits(1_000), held)
    path = store.warehouse / segments[0].path
    content = bytearray(path.read_bytes())
    content[100:400] = bytes(300)
    path.write_bytes(content)
    for by in (("ts",), BY):
        with pytest.raises(SegmentUnreadable, match=path.name):
            engine.ordered(store.query(held, segments), by).read_all()


def test_no_segments_give_no_rows(store: Store, engine: DuckDBEngine) -> None:
    assert engine.ordered(store.query(spec(), []), BY).read_all().num_rows == 0


def test_bits_are_spread() -> None:
    cells = [(spread(x, 2, 1) + spread(y, 2, 0)) for x in range(2) for y in range(2)]
    assert cells == [0, 1, 2, 3]
