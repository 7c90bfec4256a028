"""Structs of Spark frames with other fields than the table's, against plain Python; and what else Spark reads alike."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.engine.spark.types import to_spark_type
from lakehouse.errors import InvalidRows, SchemaMismatch
from tests.unit.engine import grown

DAY = datetime(2013, 1, 5, tzinfo=UTC)
AT = pa.timestamp("us", "UTC")
A = "0f8fad5b-d9cb-469f-a165-70867728950a"


@pytest.fixture
def catalog_url(sqlite_url):
    """One catalog is enough: nothing here depends on it."""
    return sqlite_url


def frame(spark, ids, values, kind):
    table = pa.table(
        {"at": pa.array([DAY] * len(ids), AT), "id": pa.array(ids, pa.int64()), "x": pa.array(values, kind)}
    )
    rows = [tuple(one.values()) for one in table.to_pylist(maps_as_pydicts="strict")]
    return spark.createDataFrame(rows, to_spark_type(table.schema))


def ordered(held):
    """A value with the keys of its maps in one order: frames are made of Python's dicts, whose order Java loses."""
    match held:
        case dict():
            return {name: ordered(part) for name, part in held.items()}
        case [(_, _), *_]:
            return sorted((key, ordered(part)) for key, part in held)
        case list():
            return [ordered(part) for part in held]
    return held


def seen(rows):
    return {row["id"]: ordered(row["x"]) for row in rows.to_pylist()}


def test_structs_of_frames_are_merged_and_fitted_as_those_of_arrow(lake, spark):
    chance = random.Random(5)
    kind = {"p": ("list", {"q": 8, "r": "text"}), "q": ("map", {"s": 8}), "r": {"p": 16}}
    columns = [("at", AT), ("id", pa.int64()), ("x", grown.arrow(kind))]
    table = lake.create_table("t", pa.schema(columns), time="at", primary_key=["id"])
    lakehouse.register(spark)
    options = {"catalog": lake.catalog.url, "warehouse": str(lake.warehouse), "table": "t"}
    held = {}
    for step, how in enumerate(["append", "ignore", "upsert", "format"]):
        found = grown.changed(chance, kind, is_wider=how != "ignore")
        ids = list(range(3 * step, 3 * step + 3))
        values = [None, *(grown.value(chance, found) for _ in ids[1:])]
        given = frame(spark, ids, values, grown.arrow(found))
        match how:
            case "format":
                given.write.format("lakehouse").options(**options, schema="merge").mode("append").save()
                table.refresh()
            case "ignore":
                table.append(given, schema="ignore")
            case _:
                getattr(table, how)(given, schema="merge")
        kind = kind if how == "ignore" else grown.merged(kind, found)
        held |= {one: grown.fitted(value, kind) for one, value in zip(ids, values, strict=True)}
        assert table.schema.field("x").type == grown.arrow(kind)
    expected = {one: ordered(grown.fitted(value, kind)) for one, value in held.items()}
    assert seen(table.scan().to_arrow()) == seen(table.scan().to_spark().toArrow()) == expected
    table.add_column(("x", "gate"), "STRING", default="A1")
    given = frame(spark, [100, 101], [{"r": {"p": 1}}, None], pa.struct([("r", pa.struct([("p", pa.int16())]))]))
    with pytest.raises(InvalidRows, match="column=x"):
        table.append(given)
    table.append(given, schema="ignore")
    found = seen(table.scan().to_arrow())
    assert (found[100]["gate"], found[101]) == ("A1", None)


def test_a_merge_in_process_takes_a_frame_with_times(lake, spark):
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT, day DATE, local TIMESTAMP_NTZ", time="at")
    local = DAY.replace(tzinfo=None)
    table.append(pa.table({"at": pa.array([DAY], AT), "id": [1], "day": [local.date()], "local": [local]}))
    rows = [(DAY.replace(hour=3), 1, local.date(), local.replace(hour=4)), (DAY.replace(hour=5), 2, None, None)]
    source = spark.createDataFrame(rows, "at TIMESTAMP, id BIGINT, day DATE, local TIMESTAMP_NTZ")
    table.merge(source, on=["id"], when_matched_update=True, engine="duckdb")
    assert [tuple(row.values()) for row in table.scan().to_arrow().sort_by("id").to_pylist()] == rows


def test_spark_refuses_versions_in_which_a_column_of_uuids_was_any_text(lake, spark):
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT, u UUID, n INT", time="at")

    def rows(number, uuid):
        return pa.table(
            {"at": pa.array([DAY], AT), "id": [number], "u": pa.array([uuid]), "n": pa.array([1], pa.int32())}
        )

    table.append(rows(1, A))
    as_uuids = table.version
    table.widen_column("u", "STRING")
    table.append(rows(2, "any text"))
    as_text = table.version
    table.restore(as_uuids)
    table.append(rows(3, str(UUID(int=7))))
    assert sorted(row["u"] for row in table.scan().to_spark().collect()) == sorted([A, str(UUID(int=7))])
    assert sorted(row["u"] for row in table.scan(as_of=as_text).to_spark().collect()) == [A, "any text"]
    with pytest.raises(SchemaMismatch, match="column=u"):
        table.scan(as_of=as_text, schema="current").to_spark().collect()


def test_spark_reads_rows_that_are_hidden_by_a_cluster_column_under_its_new_name(lake, spark):
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT, a STRING", time="at", cluster_by=["a"])

    def rows(name):
        return pa.table({"at": pa.array([DAY] * 2, AT), "id": [1, 2], name: ["x", "y"]})

    table.append(rows("a"))
    table.replace(None, "2013-01-05", keys={"a": "x"})
    before = table.version
    table.rename_column("a", "b")
    table.append(rows("b"))
    table.replace(None, "2013-01-05", keys={"b": "y"})
    assert [row["b"] for row in table.scan().to_spark().collect()] == ["x"]
    assert [row["b"] for row in table.scan(as_of=before, schema="current").to_spark().collect()] == ["y"]
    assert [row["a"] for row in table.scan(as_of=before).to_spark().collect()] == ["y"]
