"""Altered tables by Spark: every version as the in-process engine and as rows in a list have it, and Spark's writes."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from lakehouse.testing.columns import Altered

DAY = datetime(2013, 1, 5, tzinfo=UTC)


@pytest.fixture
def altered(lake):
    """A table after changes of every kind among writes, and what it has to be."""
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT", time="at", primary_key=["id"])
    model = Altered(random.Random(7))
    for _ in range(6):
        column, place = model.add()
        after = model.columns[place - 1].name if place else "id"
        table.add_column(column.name, column.type, default=column.default, default_for_new=column.for_new, after=after)
        table.append(model.append(3))
        wider = model.widen()
        if wider is not None:
            table.widen_column(wider.name, wider.type)
        table.rename_column(*model.rename())
        model.note(lake.head)
    return table, model


def rows(frame):
    return sorted(frame.toArrow().to_pylist(), key=lambda row: row["id"])


def test_every_version_reads_by_spark_as_it_has_to_be(lake, altered):
    table, model = altered
    for version in model.versions:
        assert rows(table.scan(as_of=version).to_spark()) == model.seen(version), version
        current = table.scan(as_of=version, schema="current").to_spark()
        assert rows(current) == model.seen(version, current=True), version
    table.drop_column(model.drop().name)
    assert rows(table.read()) == model.seen()


def test_spark_deletes_updates_and_compacts_across_schemas(lake, spark, altered):
    table, model = altered
    model.delete(lambda number: number % 3 == 0)
    table.delete("id % 3 = 0", engine="spark")
    assert rows(table.read()) == model.seen()
    name = model.columns[0].name
    table.update({name: "NULL"}, "id % 2 = 0", engine="spark")
    for number in model.rows:
        if number % 2 == 0:
            model.rows[number][model.columns[0].key] = None
    assert rows(table.read()) == model.seen()
    table.compact(engine="spark")
    assert rows(table.read()) == model.seen() == sorted(
        table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]
    )  # fmt: skip
    assert not lake.check(deep=True).findings


def test_frames_that_lack_columns_get_their_defaults_and_new_columns_are_made(lake, spark):
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT", time="at")
    table.add_column("gate", "STRING", default="A1")
    table.add_column("day", "DATE", default=date(2013, 1, 5))
    table.append(spark.createDataFrame([(DAY, 1)], "at TIMESTAMP, id BIGINT"))
    frame = spark.createDataFrame([(DAY, 2, 3)], "at TIMESTAMP, id BIGINT, extra INT")
    table.append(frame, schema="ignore")
    table.append(frame.withColumnRenamed("extra", "more"), schema="merge")
    found = table.scan().to_arrow().to_pylist()
    assert sorted(map(str, table.read().toArrow().to_pylist())) == sorted(map(str, found))
    assert [(row["gate"], row["day"], row["more"]) for row in found] == [
        ("A1", date(2013, 1, 5), None), ("A1", date(2013, 1, 5), None), ("A1", date(2013, 1, 5), 3),
    ]  # fmt: skip


def test_parts_of_columns_read_by_spark_as_in_process(lake, spark):
    table = lake.create_table(
        "t",
        "at TIMESTAMP, s STRUCT<a: INT, b: DATE>, l ARRAY<STRUCT<p: INT>>, m MAP<STRING, STRUCT<x: INT>>",
        time="at",
    )
    bare = pa.schema([(field.name, field.type) for field in table.schema])
    made = [
        {"at": DAY, "s": {"a": 1, "b": date(2013, 1, 5)}, "l": [{"p": 1}, None], "m": [("k", {"x": 1})]},
        {"at": DAY, "s": None, "l": [], "m": []},
        {"at": DAY, "s": {"a": None, "b": None}, "l": None, "m": None},
    ]
    table.append(pa.Table.from_pylist(made, schema=bare))
    table.rename_column(("s", "a"), "first")
    table.widen_column(("s", "b"), "TIMESTAMP")
    table.add_column(("s", "c"), "DECIMAL(5, 2)", default="1.5")
    table.widen_column(("l", "element", "p"), "BIGINT")
    table.add_column(("m", "value", "y"), "STRING", default="z")
    found = table.scan().to_arrow()
    assert sorted(map(str, table.read().toArrow().to_pylist())) == sorted(map(str, found.to_pylist()))
    first = next(row for row in found.to_pylist() if row["m"])
    assert first["m"] == [("k", {"x": 1, "y": "z"})]
    assert first["s"]["b"] == DAY
