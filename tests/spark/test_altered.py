"""Altered tables by Spark: every version as the in-process engine and as rows in a list have it, and Spark's writes."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.engine.spark.settings import held
from lakehouse.testing.columns import Altered

DAY = datetime(2013, 1, 5, tzinfo=UTC)


@pytest.fixture
def file_lake(sqlite_url, tmp_path, spark):
    with lakehouse.connect(sqlite_url, tmp_path / "warehouse", spark=spark) as opened:
        yield opened


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


def test_frames_of_other_columns_are_written_by_every_kind_as_rows_are(lake, spark):
    """What Spark's tasks write is what the in-process engine writes of the same rows, and what a list says."""
    ddl = "at TIMESTAMP, id BIGINT, price INT"
    ran = [("append", 1, {}), ("upsert", 2, {}), ("replace", 3, {"interval": ("2013-01-05", "2013-01-06")})]
    tables = [lake.create_table(name, ddl, time="at", primary_key=["id"]) for name in ("of_spark", "of_arrow")]
    for kind, number, options in ran:
        frame = spark.createDataFrame(
            [(DAY, number, 1 << 40, f"g{number}")], f"at TIMESTAMP, id BIGINT, price BIGINT, {kind} STRING"
        )
        for table, given in zip(tables, (frame.repartition(2), frame.toArrow()), strict=True):
            getattr(table, kind)(given, schema="merge", **options)
    found = [rows(table.read()) for table in tables]
    assert found[0] == found[1]
    assert [{name: value for name, value in row.items() if name != "at"} for row in found[0]] == [
        {"id": 3, "price": 1 << 40, "append": None, "upsert": None, "replace": "g3"}
    ]


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


SMALL = {
    "TINYINT": [-128, 127, 0, None], "SMALLINT": [-32768, 32767, 1, None], "INT": [-(2**31), 2**31 - 1, 2, None],
    "FLOAT": [1.5, float("inf"), -0.0, None], "DECIMAL(4, 2)": [Decimal("-99.99"), Decimal("0.01"), None],
    "DATE": [date(1, 1, 1), date(2024, 2, 29), None],
}  # fmt: skip
WIDER = {
    "TINYINT": ["SMALLINT", "INT", "BIGINT", "DECIMAL(6, 2)", "DECIMAL(20, 3)"], "SMALLINT": ["INT", "BIGINT"],
    "INT": ["BIGINT", "DECIMAL(10, 0)", "DECIMAL(38, 9)"], "FLOAT": ["DOUBLE"],
    "DECIMAL(4, 2)": ["DECIMAL(9, 2)", "DECIMAL(12, 5)", "DECIMAL(38, 10)"], "DATE": ["TIMESTAMP", "TIMESTAMP_NTZ"],
}  # fmt: skip
ADDED = {
    "BOOLEAN": True, "TINYINT": -5, "BIGINT": 2**62, "FLOAT": 0.25, "DOUBLE": float("-inf"),
    "DECIMAL(38, 9)": Decimal("1.000000001"), "STRING": "it's \\ `é` ${x}\n", "BINARY": b"\x00'\xff",
    "DATE": date(1, 1, 1),
    "TIMESTAMP": datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), "TIMESTAMP_NTZ": datetime(9999, 12, 31),  # noqa: DTZ001 - it has no zone
}  # fmt: skip


def test_files_of_every_older_type_and_without_columns_read_with_the_later_ones(file_lake, spark):
    pairs = [(old, new) for old, wider in WIDER.items() for new in wider]
    columns = ", ".join(f"c{number} {old}" for number, (old, _) in enumerate(pairs))
    table = file_lake.create_table("t", f"at TIMESTAMP, {columns}", time="at")
    old = [{"at": DAY, **{f"c{i}": SMALL[kind][k % len(SMALL[kind])] for i, (kind, _) in enumerate(pairs)}}
           for k in range(4)]  # fmt: skip
    bare = pa.schema([(field.name, field.type) for field in table.schema])
    table.append(pa.Table.from_pylist(old, schema=bare))
    kinds = [field.type for field in table.schema]
    for number, (_, new) in enumerate(pairs):
        table.widen_column(f"c{number}", new)
    for number, (kind, default) in enumerate(ADDED.items()):
        table.add_column(f"d{number}", kind, default=default)
    table.rename_column("c0", "renamed")
    added = {f"d{number}": default for number, default in enumerate(ADDED.values())}
    kinds = {field.name: field.type for field in table.schema}

    def widened(name, value):
        kind = kinds[name]
        if value is None or not isinstance(value, date) or isinstance(value, datetime):
            return Decimal(value) if value is not None and pa.types.is_decimal(kind) else value
        return datetime(value.year, value.month, value.day, tzinfo=UTC if kind.tz else None)

    expected = []
    for row in old:
        row["renamed"] = row.pop("c0")
        expected.append({name: widened(name, row[name]) for name in row} | added)
    new = [dict.fromkeys(kinds) | {"at": DAY}]
    table.append(pa.Table.from_pylist(new, schema=pa.schema([(field.name, field.type) for field in table.schema])))
    expected += new

    def bag(found):
        return Counter(tuple(sorted(row.items())) for row in found)

    assert bag(table.scan().to_arrow().to_pylist()) == bag(expected)
    for vectorized in ("true", "false"):
        with held(spark, {"spark.sql.parquet.enableVectorizedReader": vectorized}):
            assert bag(table.read().toArrow().to_pylist()) == bag(expected)
            for name in ("renamed", "c2", "c3", "d1", "d6", "d7"):
                one = table.scan(columns=[name], where=f"{name} IS NOT NULL").to_spark().toArrow().to_pylist()
                assert bag(one) == bag({name: row[name]} for row in expected if row[name] is not None), name
            assert table.read().where("d1 = -5 AND d6 LIKE 'it%' AND c3 IS NOT NULL").count() == 3
            assert table.read().where("c2 > 126").count() == 1


def test_a_table_that_is_laid_out_anew_reads_by_spark_and_is_rebuilt_by_it(file_lake, spark):
    table = file_lake.create_table(
        "t", "at TIMESTAMP, id BIGINT, a STRING", time="at", cluster_by={"a": 8}, primary_key=["id"]
    )
    rows = [{"at": datetime(2013, 1, 1 + n % 20, tzinfo=UTC), "id": n, "a": "xyz"[n % 3]} for n in range(60)]
    bare = pa.schema([(field.name, field.type) for field in table.schema])
    table.append(pa.Table.from_pylist(rows, schema=bare))
    table.replace(None, "2013-01-05", keys={"a": "x"})
    table.delete_keys(pa.table({"id": [7, 8]}))
    left = [row for row in rows if row["id"] not in (7, 8) and not (row["at"].day == 5 and row["a"] == "x")]
    before = table.version
    table.set_grain("month")
    table.set_cluster_by({"id": 16})
    table.replace(None, "2013-01-06", keys={"id": [5, 25]})
    left = [row for row in left if not (row["at"].day == 6 and row["id"] in (5, 25))]

    def seen(frame):
        return sorted((row["id"], row["a"]) for row in frame.toArrow().to_pylist())

    expected = sorted((row["id"], row["a"]) for row in left)
    assert seen(table.read()) == expected
    table.rebuild(cluster_by=["a"], engine="spark")
    assert len(table.segments()) == 1
    assert seen(table.read()) == expected
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [one for one, _ in expected]
    assert len(seen(table.scan(as_of=before).to_spark())) == len(expected) + 2
    assert not file_lake.check(deep=True).findings


def test_columns_that_files_lack_have_their_defaults_by_the_reader_of_rows_too(file_lake, spark):
    table = file_lake.create_table("t", "id INT, s STRING")
    bare = pa.schema([(field.name, field.type) for field in table.schema])
    table.append(pa.Table.from_pylist([{"id": 1, "s": "a"}, {"id": 2, "s": None}], schema=bare))
    table.add_column("n", "DOUBLE", default=0.5, first=True)
    table.append(pa.table({"n": [1.5, None], "id": pa.array([3, 4], pa.int32()), "s": ["b", "c"]}))
    with held(spark, {"spark.sql.parquet.enableVectorizedReader": "false"}):
        found = {row["id"]: row["n"] for row in table.read().toArrow().to_pylist()}
        assert found == {1: 0.5, 2: 0.5, 3: 1.5, 4: None}
        assert table.read().where("n = 0.5").count() == 2
