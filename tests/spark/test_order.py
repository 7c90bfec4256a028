"""Merges by Spark write in the order that merges in process write in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.engine.spark import SparkEngine
from tests.unit.engine.harness import HOSTILE, Store, comparable, hostile_rows, spec_of
from tests.unit.engine.test_order import BY, ROWS, opened, rewritten, rows_of, spec, visits

Framed = Callable[[pa.Table], Any]


@pytest.mark.timeout(300)
def test_both_engines_make_segments_with_the_same_statistics(
    store: Store, engine: SparkEngine, duck: DuckDBEngine
) -> None:
    given, held = visits(), spec(ROWS // 16)
    ours, theirs = rewritten(store, duck, held, given, BY), rewritten(store, engine, held, given, BY)
    assert comparable(rows_of(store, held, theirs)) == comparable(given)
    # Sizes of ranges vary; none becomes two segments, and none is nearly empty.
    assert len(ours) <= len(theirs) <= 1.5 * len(ours)
    assert min(one.rows for one in theirs) > held.target_rows / 4
    for column, value in (("client", 2), ("client", 3_000), ("name", "UA")):
        assert opened(theirs, column, value) / len(theirs) <= 0.15 + opened(ours, column, value) / len(ours)


@pytest.mark.timeout(300)
def test_by_time_segments_follow_each_other(store: Store, engine: SparkEngine) -> None:
    held = spec(ROWS // 4)
    made = sorted(rewritten(store, engine, held, visits(), ("ts",)), key=lambda one: one.start)
    assert len(made) >= 4
    assert all(sum(one.start <= other.start < one.end for one in made) <= 2 for other in made)


@pytest.mark.timeout(300)
def test_every_type_that_has_an_order_can_be_a_coordinate(
    store: Store, engine: SparkEngine, duck: DuckDBEngine
) -> None:
    held = spec_of(HOSTILE)
    by = ("ts", *(field.name for field in HOSTILE if field.name != "ts" and not pa.types.is_nested(field.type)))
    ordered = engine.ordered(store.query(held, store.write(duck, hostile_rows(), held)), by)
    made = store.write(engine, ordered, held, row_ids=True)
    assert comparable(duck.collect(store.query(held, made))) == comparable(hostile_rows())
