"""Both engines read each other's files row for row, and answer filters and tombstones alike."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from lakehouse.core.chunk import DIVIDING, Grain
from lakehouse.core.interval import Interval
from lakehouse.core.plan import ReadGroup
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.engine.spark import SparkEngine
from lakehouse.errors import InvalidInput
from lakehouse.predicate import parse
from tests.unit.engine.harness import HOSTILE, Store, comparable, hostile_rows, spec_of
from tests.unit.engine.test_duckdb import MASKS, SCHEMA, UTC, events
from tests.unit.predicate.filters import FILTERS

Framed = Callable[[pa.Table], Any]


def arrow(frame: Any, schema: pa.Schema) -> pa.Table:
    return frame.toArrow().cast(schema)


@pytest.fixture
def zoned(spark: Any) -> Any:
    """The session in another time zone, on which nothing may depend."""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("grain", DIVIDING)
def test_every_type_crosses_over_in_both_directions(
    zoned: Any, store: Store, engine: SparkEngine, duck: DuckDBEngine, frame: Framed, grain: Grain
) -> None:
    spec = spec_of(HOSTILE, grain=grain)
    rows = hostile_rows()
    by_spark, by_duck = store.write(engine, frame(rows), spec), store.write(duck, rows, spec)
    expected = comparable(rows)
    for segments in (by_spark, by_duck):
        query = store.query(spec, segments)
        assert comparable(arrow(engine.read(query), spec.schema)) == expected
        assert comparable(duck.read(query).to_arrow()) == expected
    bounds = [sorted((one.start, one.end, one.rows) for one in segments) for segments in (by_spark, by_duck)]
    assert bounds[0] == bounds[1]
    for one, other in zip(*(sorted(segments, key=lambda x: x.start) for segments in (by_spark, by_duck)), strict=True):
        assert one.min == other.min
        assert one.max == other.max


def test_filters_let_the_same_rows_through(
    zoned: Any, store: Store, engine: SparkEngine, duck: DuckDBEngine, frame: Framed
) -> None:
    spec = spec_of(HOSTILE, properties={"ragged": True})
    segments = store.write(duck, hostile_rows(), spec) + store.write(engine, frame(hostile_rows()), spec)
    differing = {}
    for start in range(0, len(FILTERS), 30):
        some = FILTERS[start : start + 30]
        parsed = [parse(where, spec.schema) for where in some]
        frames = [
            engine.read(store.query(spec, segments, where=one.spark, columns=("id",))).withColumn("n", F.lit(number))
            for number, one in enumerate(parsed)
        ]
        by_spark = functools.reduce(lambda one, other: one.unionAll(other), frames).collect()
        for number, one in enumerate(parsed):
            by_duck = duck.read(store.query(spec, segments, where=one.duckdb, columns=("id",))).to_arrow()
            found = sorted(row["id"] for row in by_spark if row["n"] == number)
            if found != sorted(by_duck["id"].to_pylist()):
                differing[one.text] = (found, sorted(by_duck["id"].to_pylist()))
    assert differing == {}


@pytest.mark.parametrize("masks", [[], MASKS[1:2], MASKS])
@pytest.mark.parametrize("interval", [None, Interval("1970-01-02T06:00", "1970-01-05T01:00")])
def test_plans_give_the_same_rows(
    store: Store,
    engine: SparkEngine,
    duck: DuckDBEngine,
    frame: Framed,
    masks: list[Any],
    interval: Interval | None,
) -> None:
    spec = spec_of(SCHEMA, cluster_by=["client", "id"])
    old = store.write(duck, events(1000), spec) + store.write(engine, frame(events(1000, seed=8)), spec)
    new = store.write(duck, events(100, seed=9), spec)
    groups = [ReadGroup(tuple(new)), ReadGroup(tuple(old), tuple(masks))]
    query = store.query(spec, [], groups=groups, interval=interval, row_ids=True)
    by_spark, by_duck = engine.read(query).toArrow(), duck.read(query).to_arrow()
    assert by_spark.schema.names == by_duck.schema.names
    order = [(name, "ascending") for name in ("_row_id", "id")]
    one, other = by_spark.cast(by_duck.schema).sort_by(order), by_duck.sort_by(order)
    assert one.equals(other)
    assert len(set(one["_row_id"].to_pylist())) == one.num_rows


def test_stored_row_ids_are_read_by_both(store: Store, engine: SparkEngine, duck: DuckDBEngine, frame: Framed) -> None:
    spec = spec_of(SCHEMA)
    ids = pa.array([None if number % 10 == 0 else 5_000_000_000 + number for number in range(500)], pa.int64())
    rows = events(500, ordered=True).append_column("_row_id", ids)
    segments = [
        *store.write(engine, frame(rows), spec, row_ids=True),
        *store.write(duck, rows, spec, row_ids=True),
        *store.write(duck, events(50), spec),
    ]
    query = store.query(spec, segments, row_ids=True, columns=("id",))
    found = sorted(tuple(row) for row in engine.read(query).select("_row_id", "id").collect())
    assert found == sorted((row["_row_id"], row["id"]) for row in duck.read(query).to_arrow().to_pylist())


def test_a_frame_of_100_columns_one_row_and_no_row(
    store: Store, engine: SparkEngine, duck: DuckDBEngine, frame: Framed
) -> None:
    columns = {f"c{number}": pa.array([number]) for number in range(100)}
    rows = pa.table({"ts": pa.array([0]).cast(UTC), "id": [1], **columns})
    spec = spec_of(rows.schema)
    segments = store.write(engine, frame(rows), spec)
    assert duck.read(store.query(spec, segments)).to_arrow().to_pylist() == rows.to_pylist()
    assert store.write(engine, frame(rows).where("id > 1"), spec) == []
    nothing = engine.read(store.query(spec, []))
    assert (nothing.columns, nothing.count()) == (rows.schema.names, 0)


def test_each_grain_splits_alike(store: Store, engine: SparkEngine, duck: DuckDBEngine, frame: Framed) -> None:
    chance = np.random.default_rng(3)
    times = np.sort(chance.integers(-62_135_596_800_000_000, 253_402_300_799_000_000, 60))
    rows = pa.table({"ts": pa.array(times).cast(UTC), "id": np.arange(60)})
    for grain in DIVIDING:
        spec = spec_of(rows.schema, grain=grain)
        for segments in (store.write(engine, frame(rows).coalesce(1), spec), store.write(duck, rows, spec)):
            assert len(segments) == len(set(grain.floor_us(times).tolist()))
            assert all(grain.chunk(segment.start).contains(segment.interval) for segment in segments)


def test_a_sum_beyond_64_bits_fails_in_both(
    store: Store, engine: SparkEngine, duck: DuckDBEngine, frame: Framed
) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(duck, events(10), spec)
    where = parse("(id + 9000000000000000000) * (id + 2) > 0", spec.schema)
    with pytest.raises(InvalidInput):
        duck.read(store.query(spec, segments, where=where.duckdb)).to_arrow()
    overflowing = engine.read(store.query(spec, segments, where=where.spark))
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        overflowing.collect()
