"""Two engines, one lake: the same random history through Spark and in process, compared row for row."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from lakehouse.testing.model import ModelLake
from lakehouse.testing.rows import COLUMNS, SCHEMA, arrow, plain, visible

START = datetime(2012, 2, 28, tzinfo=UTC)
CLIENTS = [None, "a", "b", "100% ü", "O'Hare"]
STEPS = 10


def random_rows(chosen, first, last, clients):
    """Up to six rows in [first, last), its ends likely."""
    span_us = (last - first) // timedelta(microseconds=1)
    offsets = [chosen.choice([0, span_us - 1, chosen.randrange(span_us)]) for _ in range(chosen.randrange(1, 7))]
    return [(first + timedelta(microseconds=at), chosen.choice(clients), chosen.randrange(-9, 10**6)) for at in offsets]


def random_span(chosen):
    """Half-day edges: whole chunks and parts."""
    first, last = sorted(chosen.sample(range(9), 2))
    return START + first * timedelta(hours=12), START + last * timedelta(hours=12)


class Beside:
    """One history on two tables, one written by Spark and one in process, and on the model."""

    def __init__(self, lake, spark, grain, ragged):
        properties = {"ragged": ragged, "target_rows": "3"}
        options = {"time": "time", "grain": grain, "cluster_by": ("client",), "properties": properties}
        self.tables = [lake.create_table(name, SCHEMA, **options) for name in ("by_spark", "in_process")]
        self.model = ModelLake()
        self.model.create_table("t", COLUMNS, time="time", grain=grain)
        self.frames = [lambda rows: spark.createDataFrame(arrow(rows)), arrow]
        self.versions = [([table.version for table in self.tables], self.model.newest)]

    def step(self, chosen):
        """Do one random thing to all three."""
        match chosen.choice(["append", "append", "replace", "replace", "keyed", "drop", "compact", "restore"]):
            case "append":
                rows = random_rows(chosen, START, START + timedelta(days=4), CLIENTS)
                made = [table.append(frame(rows)) for table, frame in zip(self.tables, self.frames, strict=True)]
                number = self.model.append("t", rows)
            case "compact":
                made = [table.compact() for table in self.tables]
                number = self.model.newest
            case "restore":
                versions, old = chosen.choice(self.versions)
                made = [table.restore(version) for table, version in zip(self.tables, versions, strict=True)]
                number = self.model.restore("t", old)
            case kind:
                span = random_span(chosen)
                clients = chosen.sample(CLIENTS, 2)
                keys = {"client": clients} if kind == "keyed" else None
                rows = [] if kind == "drop" else random_rows(chosen, *span, clients if keys else CLIENTS)
                made = [
                    table.replace(frame(rows) if rows else None, span, keys=keys)
                    for table, frame in zip(self.tables, self.frames, strict=True)
                ]
                number = self.model.replace("t", rows, span, keys=keys)
        if None not in made:
            self.versions.append(([commit.version for commit in made], number))

    def check(self, chosen):
        """Both engines read both tables as the model says; now, and one earlier version through one of them."""
        expected = self.model.rows("t")
        by_spark, in_process = self.tables
        assert visible(by_spark) == expected
        assert visible(in_process) == expected
        assert plain(in_process.scan().to_spark().toArrow()) == expected
        versions, number = chosen.choice(self.versions)
        span = random_span(chosen)
        options = {"as_of": versions[0], "interval": span, "where": "client <> 'a' OR client IS NULL"}
        wanted = [row for row in self.model.rows("t", number, span) if row[1] != "a"]
        assert plain(by_spark.scan(**options).to_spark().toArrow()) == wanted
        assert visible(by_spark, **options) == wanted


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("seed", "grain", "ragged"), [(1, "day", "false"), (2, "day", "true")])
def test_the_same_random_history_reads_the_same_through_both_engines(lake, spark, seed, grain, ragged):
    chosen = random.Random(seed)
    beside = Beside(lake, spark, grain, ragged)
    for _ in range(STEPS):
        beside.step(chosen)
        beside.check(chosen)


@pytest.mark.timeout(300)
def test_rows_written_by_one_engine_are_replaced_and_compacted_by_the_other(lake, spark):
    table = lake.create_table("t", SCHEMA, time="time", cluster_by=("client",))
    first = [(START + timedelta(hours=hour), "ab"[hour % 2], hour) for hour in range(48)]
    table.append(spark.createDataFrame(arrow(first)))
    table.append(arrow(first))
    table.replace(arrow([(START, "a", 100)]), (START, START + timedelta(hours=6)))
    table.replace(spark.createDataFrame(arrow([(START, "b", 101)])), "2012-02-28", keys={"client": "b"})
    expected = visible(table)
    table.compact()
    assert visible(table) == expected == plain(table.scan().to_spark().toArrow())
    assert table.scan().count() == table.scan().to_spark().count() == len(expected)
    assert sum(segment.rows for segment in table.segments()) == len(expected)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("compression", "codec"),
    [
        ("zstd", "ZSTD"),
        ("lz4", "LZ4"),
        ("snappy", "SNAPPY"),
        ("none", "UNCOMPRESSED"),
        ("lz4, snappy after 7d", "SNAPPY"),
        ("lz4, snappy after 99999d", "LZ4"),
    ],
)
def test_both_engines_write_and_read_every_compression_and_know_the_age(lake, spark, warehouse, compression, codec):
    table = lake.create_table("flights", SCHEMA, time="time", properties={"compression": compression})
    table.append(arrow([("2013-01-05", "a", 1)]))
    table.append(spark.createDataFrame(arrow([("2013-01-05", "ü", 2)])))
    for segment in table.segments():
        group = pq.ParquetFile(warehouse / segment.path).metadata.row_group(0)
        assert {group.column(place).compression for place in range(group.num_columns)} == {codec}
    assert plain(table.scan().to_spark().toArrow()) == visible(table)
    table.set_properties({"compression": None})
    assert table.compact() is not None
    (merged,) = table.segments()
    assert pq.ParquetFile(warehouse / merged.path).metadata.row_group(0).column(0).compression == "ZSTD"
    with pytest.raises(InvalidInput, match="compression is one of zstd, lz4"):
        table.set_properties({"compression": "gzip"})


@pytest.mark.timeout(300)
def test_spark_refuses_what_the_other_engine_refuses(lake, spark):
    table = lake.create_table("t", SCHEMA, time="time", cluster_by=("client",))
    table.append(arrow([(START, "a", 1)]))
    head = lake.head
    frame = spark.createDataFrame(arrow([(START, "a", 2)]))
    outside = spark.createDataFrame(arrow([(START, "a", 2), (START + timedelta(days=1), "a", 3)]))
    null_time = frame.selectExpr("CAST(NULL AS TIMESTAMP) AS time", "client", "value")
    for attempt in (
        lambda: table.append(null_time),
        lambda: table.append(frame.drop("value")),
        lambda: table.append(frame.withColumnRenamed("value", "other")),
        lambda: table.append(frame.selectExpr("*", "1 AS extra")),
        lambda: table.append(frame.selectExpr("time", "client", "'x' AS value")),
        lambda: table.replace(outside, "2012-02-28"),
        lambda: table.replace(frame, "2012-02-28", keys={"client": "b"}),
        lambda: table.replace(
            frame.selectExpr("time", "CAST(NULL AS STRING) AS client", "value"), "2012", keys={"client": "a"}
        ),
    ):
        with pytest.raises(lakehouse.InvalidInput):
            attempt()
        assert lake.head == head
        assert table.locks() == []
    assert visible(table) == [(START, "a", 1)]


@pytest.mark.timeout(300)
def test_a_missing_file_fails_a_spark_read_and_is_named(lake, spark, warehouse):
    table = lake.create_table("t", SCHEMA, time="time")
    table.append(arrow([(START, "a", 1), (START + timedelta(days=1), "a", 2)]))
    victim = warehouse / table.segments(interval="2012-02-29")[0].path
    kept = victim.read_bytes()
    for damage in (victim.unlink, lambda: victim.write_bytes(kept[:-10]), lambda: victim.write_bytes(b"garbage" * 100)):
        damage()
        with pytest.raises(lakehouse.SegmentUnreadable, match=victim.name):
            table.scan().to_spark().collect()
        scan = table.scan(best_effort=True)
        with pytest.warns(lakehouse.PartialRead, match=victim.name):
            frame = scan.to_spark()
        assert [one.value for one in frame.collect()] == [1]
    victim.write_bytes(kept)
    assert table.scan().to_spark().count() == 2
