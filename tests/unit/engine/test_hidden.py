"""Row and key tombstones, in process: every form of a read sees what the rule says row by row."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from lakehouse.core.plan import ReadGroup
from lakehouse.core.segment import Segment
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.engine.hidden import plan_parts
from tests.unit.engine.harness import Store, spec_of
from tests.unit.engine.masked import KEYS, found, random_case
from tests.unit.engine.test_duckdb import SCHEMA, events


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine()
    yield engine
    engine.close()


@pytest.mark.parametrize("first", [0, (1 << 40) - 50, 1 << 60])
@pytest.mark.parametrize("key", list(KEYS))
def test_random_segments_and_tombstones_read_as_the_rule_says(
    tmp_path: Path, engine: DuckDBEngine, key: str, first: int
) -> None:
    for seed in range(5):
        store = Store(tmp_path / str(seed), itertools.count(first, 1000))
        case = random_case(store, engine, random.Random(f"{seed} {key} {first}"), key)
        rows = engine.read(case.rows())
        assert found(rows.to_arrow()) == case.seen
        assert found(rows.reader(batch_rows=7).read_all()) == case.seen
        plain = engine.read(case.query)
        numbers = [one[0] for one in case.seen]
        assert sorted(plain.to_arrow()["number"].to_pylist()) == numbers
        assert plain.count() == rows.count() == len(numbers)
        assert plain.to_arrow().schema.equals(case.query.spec.schema, check_metadata=True)
        where = replace(case.query, where='("number" % 3 = 0)', columns=("number",))
        assert sorted(engine.read(where).to_arrow()["number"].to_pylist()) == [one for one in numbers if one % 3 == 0]
        with duckdb.connect() as connection:
            assert sorted(connection.sql(plain.sql()).fetchnumpy()["number"].tolist()) == numbers
            relation = plain.relation(connection)
            assert sorted(row[0] for row in relation.project("number").fetchall()) == numbers
            assert connection.sql("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]
            assert connection.sql("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchall() == [(0,)]


def test_segments_that_no_tombstone_touches_are_read_as_if_there_were_none(
    tmp_path: Path, engine: DuckDBEngine
) -> None:
    store, spec = Store(tmp_path), spec_of(SCHEMA, primary_key="id")
    segments = store.write(engine, events(100), spec)
    tombstones = (
        Tombstone(id=1, kind="row", ordinal=1),
        Tombstone(id=2, kind="row", ordinal=2),
        Tombstone(id=3, kind="key", ordinal=1),
        Tombstone(id=4, kind="key", ordinal=2, min={"id": 1000}, max={"id": 2000}),
    )
    keys = pa.table({"id": pa.array(range(2000))})
    ids = {1: BitMap64([segments[0].first_row_id]), 2: BitMap64([segments[0].first_row_id + 999])}
    masked = store.query(spec, segments, tombstones, sets={**ids, 3: keys, 4: keys.slice(1000)})
    assert engine.read(masked).sql() == engine.read(store.query(spec, segments)).sql()


def test_rows_under_row_tombstones_are_counted_without_opening_a_file(tmp_path: Path, engine: DuckDBEngine) -> None:
    store, spec = Store(tmp_path), spec_of(SCHEMA)
    segments = store.write(engine, events(1000), spec)
    for segment in segments:
        (store.warehouse / segment.path).write_bytes(b"x" * segment.bytes)
    ids = [segment.first_row_id + place for segment in segments for place in (0, 7, segment.rows - 1, segment.rows)]
    tombstones = [Tombstone(id=1, kind="row", ordinal=2), Tombstone(id=2, kind="row", ordinal=3)]
    query = store.query(spec, segments, tombstones, sets={1: BitMap64(ids), 2: BitMap64(ids[:2])})
    assert engine.read(query).count() == 1000 - 3 * len(segments)


def test_an_updated_row_is_hidden_where_it_was_and_seen_where_it_is(tmp_path: Path, engine: DuckDBEngine) -> None:
    store, spec = Store(tmp_path), spec_of(SCHEMA)
    rows = events(10, days=1)
    (old,) = store.write(engine, rows, spec)
    moved = rows.slice(3, 2).append_column("_row_id", pa.array([old.first_row_id + 3, old.first_row_id + 4]))
    (new,) = store.write(engine, moved, spec, row_ids=True)
    segments = [old, replace(new, ordinal=2)]
    update, later = Tombstone(id=1, kind="row", ordinal=2), Tombstone(id=2, kind="row", ordinal=3)
    ids = BitMap64([old.first_row_id + 3, old.first_row_id + 4])
    for tombstones, expected in (((update,), 10), ((update, later), 9)):
        query = store.query(spec, segments, tombstones, sets={1: ids, 2: ids[:1]}, row_ids=True)
        seen = engine.read(query).to_arrow()["_row_id"].to_pylist()
        assert len(seen) == len(set(seen)) == engine.read(query).count() == expected


def test_thousands_of_tombstones_and_segments_make_few_parts(tmp_path: Path) -> None:
    spec = spec_of(SCHEMA, primary_key="id")
    segments = [
        Segment(n, "1970-01-01", "1970-01-02", n, rows=10, path=f"{n}", first_row_id=10 * n, has_row_ids=n > 1500)
        for n in range(2000)
    ]
    rows = [Tombstone(id=5000 + n, kind="row", ordinal=2 * n) for n in range(1000)]
    keys = [Tombstone(id=9000 + n, kind="key", ordinal=2 * n, min={"id": n}, max={"id": n}) for n in range(10)]
    sets = {one.id: BitMap64(range(7 * place, 20_000, 777)) for place, one in enumerate(rows)}
    sets |= {one.id: pa.table({"id": [place]}) for place, one in enumerate(keys)}
    query = Store(tmp_path).query(spec, [], groups=[ReadGroup(tuple(segments), (*rows, *keys))], sets=sets)
    parts = plan_parts(query)
    assert len(parts) <= 3
    assert sorted(one.id for part in parts for one in part.segments) == [one.id for one in segments]
    for part in parts:
        for segment, places in zip(part.segments, part.places, strict=bool(part.places)):
            newer = BitMap64().union(*(sets[one.id] for one in rows if one.ordinal > segment.ordinal))
            inside = [number - segment.first_row_id for number in newer]
            assert places.tolist() == [place for place in inside if 0 <= place < segment.rows]


@pytest.mark.parametrize("name", ["file_row_number", "File_Index"])
def test_a_column_may_have_the_name_by_which_places_are_asked_for(
    tmp_path: Path, engine: DuckDBEngine, name: str
) -> None:
    store, spec = Store(tmp_path), spec_of(SCHEMA.append(pa.field(name, pa.int64())), cluster_by=name)
    (segment,) = store.write(engine, events(9, days=1).append_column(name, pa.array([5] * 8 + [6])), spec)
    tombstones = [Tombstone(id=1, kind="row", ordinal=2), Tombstone(id=2, ordinal=2, keys={name: 6})]
    query = store.query(spec, [segment], tombstones, sets={1: BitMap64([segment.first_row_id + 3])}, row_ids=True)
    found = engine.read(query).to_arrow()
    assert found["_row_id"].to_pylist() == [segment.first_row_id + place for place in range(8) if place != 3]
    assert found[name].to_pylist() == [5] * 7
