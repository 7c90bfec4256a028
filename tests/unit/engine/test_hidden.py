"""Row and key tombstones, in process: every form of a read sees what the rule says row by row."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from lakehouse.engine.duckdb import DuckDBEngine
from tests.unit.engine.harness import Store
from tests.unit.engine.masked import KEYS, found, random_case


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
