"""How Spark reads: a plan like that of plain Parquet, no job to look at files, and no file missed."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64
from pyspark.errors import PySparkException

from lakehouse.core.plan import ReadGroup
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.engine.spark import SparkEngine, arrays, collect, places, scan, to_spark_type
from lakehouse.engine.spark.scan import names_in_rows
from lakehouse.errors import InternalError, SegmentUnreadable
from lakehouse.predicate import parse
from tests.unit.engine.harness import Store, spec_of
from tests.unit.engine.masked import KEYS, found, random_case
from tests.unit.engine.test_duckdb import MASKS, SCHEMA, events

Framed = Callable[[pa.Table], Any]


def plan_of(frame: Any) -> str:
    """A frame's physical plan without the numbers that differ between two of one form."""
    frame.sparkSession.conf.set("spark.sql.maxMetadataStringLength", "10000")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    frame.sparkSession.conf.unset("spark.sql.maxMetadataStringLength")
    return re.sub(r"plan_id=\d+|#\d+L?|\(\d+\)", "", plan)


def test_unmasked_files_are_one_scan_like_plain_parquet(
    spark: Any, store: Store, engine: SparkEngine, duck: DuckDBEngine, frame: Framed
) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(duck, events(500), spec) + store.write(engine, frame(events(500)), spec)
    groups = [ReadGroup(tuple(segments[:3])), ReadGroup(tuple(segments[3:]))]
    ours = engine.read(store.query(spec, [], groups=groups))
    paths = [re.sub(r"([{}\[\]*?\\])", r"\\\1", str(store.warehouse / segment.path)) for segment in segments]
    plain = spark.read.schema(to_spark_type(spec.schema)).parquet(*paths)
    assert plan_of(ours) == plan_of(plain)
    assert plan_of(ours.groupBy("client").sum("value")) == plan_of(plain.groupBy("client").sum("value"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", [0, 1 << 60])
@pytest.mark.parametrize("key", list(KEYS))
def test_random_segments_and_tombstones_read_as_the_rule_says(
    tmp_path: Path, engine: SparkEngine, duck: DuckDBEngine, key: str, first: int
) -> None:
    for seed in range(2):
        store = Store(tmp_path / f"w [h] % é {seed}", itertools.count(first, 1000))
        case = random_case(store, duck, random.Random(f"{seed} {key} {first}"), key)
        assert found(engine.read(case.rows()).toArrow()) == case.seen
        assert found(engine.collect(case.rows())) == case.seen
        numbers = [one[0] for one in case.seen]
        plain = engine.read(case.query)
        assert plain.columns == case.query.spec.schema.names
        assert sorted(plain.toArrow()["number"].to_pylist()) == numbers
        where = engine.read(replace(case.query, where="(number % 3 = 0)", columns=("number",)))
        assert sorted(where.toArrow()["number"].to_pylist()) == [one for one in numbers if one % 3 == 0]


def test_segments_that_no_tombstone_touches_are_read_like_plain_parquet(
    store: Store, engine: SparkEngine, duck: DuckDBEngine
) -> None:
    spec = spec_of(SCHEMA, primary_key="id")
    segments = store.write(duck, events(100), spec)
    tombstones = (Tombstone(id=1, kind="row", ordinal=2), Tombstone(id=2, kind="key", ordinal=1))
    masked = store.query(spec, segments, tombstones, sets={1: BitMap64([1 << 40]), 2: pa.table({"id": range(100)})})
    assert plan_of(engine.read(masked)) == plan_of(engine.read(store.query(spec, segments)))


@pytest.mark.parametrize("most", [1, 2, 9])
def test_places_in_many_files_are_hidden_in_few_scans(
    store: Store, engine: SparkEngine, duck: DuckDBEngine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(places, "FILES_LOOKED_UP", 2)
    monkeypatch.setattr(places, "MOST_FILES", most)
    monkeypatch.setattr(places, "LEAST_FOLD", 5)
    spec = spec_of(SCHEMA)
    segments = store.write(duck, events(1000), spec)
    ids = BitMap64(one.first_row_id + place for one in segments for place in (0, 1, 64, 130, one.rows - 1))
    tombstone = Tombstone(id=1, kind="row", ordinal=2)
    for where in (None, "(id % 2 = 0)"):
        query = store.query(spec, segments, [tombstone], sets={1: ids}, where=where, columns=("id",))
        rows = engine.read(query)
        expected = duck.read(replace(query, where=None if where is None else "(id % 2 = 0)")).to_arrow()
        assert sorted(one.id for one in rows.collect()) == sorted(expected["id"].to_pylist())
        assert ("BroadcastHashJoin" in plan_of(rows)) is (most < len(segments))


ALIKE = ("ff81d0f447.parquet", "69d19deb1c.parquet")
"""Names of one length and one CRC-32: whatever is written before both, their checksums stay equal."""


def test_places_are_right_where_the_names_of_two_files_have_one_checksum(
    store: Store, engine: SparkEngine, duck: DuckDBEngine
) -> None:
    assert len({crc32(name.encode()) for name in ALIKE}) == 1
    spec = spec_of(SCHEMA)
    segments = []
    for segment, name in zip(store.write(duck, events(1000), spec), ALIKE, strict=False):
        old = store.warehouse / segment.path
        old.rename(old.with_name(name))
        segments.append(replace(segment, path=str(old.with_name(name).relative_to(store.warehouse))))
    assert len(segments) == 2
    ids = BitMap64([segments[0].first_row_id + 3, *(segments[1].first_row_id + place for place in (0, 64))])
    query = store.query(spec, segments, [Tombstone(id=1, kind="row", ordinal=2)], sets={1: ids}, columns=("id",))
    expected = duck.read(query).to_arrow()["id"].to_pylist()
    rows = engine.read(query)
    assert "crc32" not in plan_of(rows)
    assert sorted(one.id for one in rows.collect()) == sorted(expected)
    collected = engine.collect(replace(query, row_ids=True, ordinals=True))
    assert sorted(collected["id"].to_pylist()) == sorted(expected)
    assert len(expected) == sum(one.rows for one in segments) - 3


def test_a_row_of_a_file_that_is_not_known_fails_the_read(
    store: Store, engine: SparkEngine, duck: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others(*given: Any) -> Iterator[tuple[str, Any]]:
        return ((f"{name}.other", segment) for name, segment in names_in_rows(*given))

    monkeypatch.setattr(scan, "names_in_rows", others)
    monkeypatch.setattr(collect, "names_in_rows", others)
    spec = spec_of(SCHEMA)
    segments = store.write(duck, events(1000), spec)
    ids = BitMap64([segments[0].first_row_id, segments[1].first_row_id + 3])
    query = store.query(spec, segments, [Tombstone(id=1, kind="row", ordinal=2)], sets={1: ids})
    for asked in (query, replace(query, row_ids=True), replace(query, ordinals=True)):
        with pytest.raises(PySparkException, match="Spark tells no place or file"):
            engine.read(asked).toArrow()
    with pytest.raises(InternalError, match="Spark tells no place or file"):
        engine.collect(replace(query, row_ids=True, ordinals=True))


def test_arrays_have_the_same_numbers_however_they_reach_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [0, 1, -1, 1 << 40, (1 << 63) - 1, -(1 << 63)]
    for _ in range(2):
        held = arrays.Arrays()
        names = [held.add(np.array(given[place:])) for place in (0, 3)]
        row = held.put_into(spark.range(1)).collect()[0]
        assert [row[name] for name in names] == [given, given[3:]]
        monkeypatch.setattr(arrays, "in_memory", arrays.as_text)


@pytest.mark.parametrize("setting", ["spark.sql.parquet.enableVectorizedReader", "spark.sql.codegen.wholeStage"])
def test_places_are_right_whatever_reader_spark_uses(
    spark: Any, store: Store, engine: SparkEngine, duck: DuckDBEngine, setting: str
) -> None:
    spec = spec_of(SCHEMA, properties={"ragged": True})
    segments = store.write(duck, events(300_000, ordered=True), spec)
    ids = BitMap64(segments[0].first_row_id + place for place in range(0, 300_000, 1009))
    query = store.query(spec, segments, [Tombstone(id=1, kind="row", ordinal=2)], sets={1: ids}, where="(id >= 140000)")
    for key in (setting, "spark.sql.files.maxPartitionBytes"):
        spark.conf.set(key, "false" if key == setting else "100000")
    try:
        found = engine.read(query).selectExpr("count(*)", "count_if(id % 1009 = 0)").collect()
    finally:
        for key in (setting, "spark.sql.files.maxPartitionBytes"):
            spark.conf.unset(key)
    hidden = len([place for place in range(0, 300_000, 1009) if place >= 140_000])
    assert [tuple(row) for row in found] == [(160_000 - hidden, 0)]


def test_a_filter_is_pushed_into_the_scan(store: Store, engine: SparkEngine, duck: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(duck, events(500), spec)
    where = parse("client = 3 AND ts >= '1970-01-02' AND value < 1.5", spec.schema).spark
    plan = plan_of(engine.read(store.query(spec, segments, where=where)))
    pushed = re.search(r"PushedFilters: \[(.*?)\], ReadSchema", plan)
    assert pushed is not None
    for part in ("EqualTo(client,3)", "GreaterThanOrEqual(ts,1970-01-02", "LessThan(value,1.5)"):
        assert part in pushed[1]


def test_columns_that_are_not_asked_for_are_not_read(store: Store, engine: SparkEngine, duck: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(duck, events(500), spec)
    masked = engine.read(store.query(spec, segments, MASKS[1:2], columns=("value",)))
    assert masked.columns == ["value"]
    assert "ReadSchema: struct<client:bigint,value:double>" in plan_of(masked)


def test_many_files_are_looked_at_without_a_job(
    spark: Any, store: Store, engine: SparkEngine, duck: DuckDBEngine
) -> None:
    spec = spec_of(SCHEMA, grain="hour")
    segments = store.write(duck, events(2000), spec)
    assert len(segments) > 100
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    rows = engine.read(store.query(spec, segments))
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == jobs
    assert spark.conf.get("lakehouse.settings.held", None) is None
    assert rows.count() == 2000


def test_the_scan_takes_its_schema_from_the_table(store: Store, engine: SparkEngine, duck: DuckDBEngine) -> None:
    spec = spec_of(SCHEMA)
    frame = engine.read(store.query(spec, store.write(duck, events(10), spec)))
    assert [(one.name, one.dataType) for one in frame.schema] == [
        (one.name, one.dataType) for one in to_spark_type(spec.schema)
    ]


@pytest.mark.parametrize("damage", ["gone", "short"])
def test_a_missing_or_short_file_is_named_before_any_job(
    store: Store, engine: SparkEngine, duck: DuckDBEngine, damage: str
) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(duck, events(100), spec)
    victim = store.warehouse / segments[2].path
    data = victim.read_bytes()
    victim.unlink()
    if damage == "short":
        victim.write_bytes(data[:-3])
    with pytest.raises(SegmentUnreadable) as caught:
        engine.read(store.query(spec, segments))
    assert caught.value.path == str(victim)


@pytest.mark.parametrize("ignore", ["spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"])
@pytest.mark.parametrize("damage", ["gone", "pages"])
def test_a_file_that_breaks_later_fails_the_job_whatever_the_session_says(
    spark: Any, store: Store, engine: SparkEngine, duck: DuckDBEngine, ignore: str, damage: str
) -> None:
    spec = spec_of(SCHEMA)
    segments = store.write(duck, events(100), spec)
    spark.conf.set(ignore, "true")
    try:
        rows = engine.read(store.query(spec, segments))
        victim = store.warehouse / segments[2].path
        data = victim.read_bytes()
        victim.unlink()
        if damage == "pages":
            victim.write_bytes(data[:4] + b"\xff" * 400 + data[404:])
        with pytest.raises(Exception, match=re.escape(victim.name)):
            rows.collect()
    finally:
        spark.conf.unset(ignore)
