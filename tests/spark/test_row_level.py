"""Row-level writes by Spark end in the rows that those in process end in, and each reads what the other left."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from lakehouse.testing.rows import arrow, many, visible

DAY, NEXT = "2013-01-05", "2013-01-06"
KEYED = "time TIMESTAMP NOT NULL, client STRING NOT NULL, value BIGINT"


@pytest.fixture
def lake(spark: Any, sqlite_url: str, warehouse: Any) -> Any:
    with lakehouse.connect(sqlite_url, str(warehouse), spark=spark) as opened:
        yield opened


def by_spark(table: Any) -> list[Any]:
    """What a reader sees through Spark."""
    rows = table.scan().to_spark().toArrow()
    return sorted(zip(*(rows.column(name).to_pylist() for name in ("client", "value")), strict=True), key=str)


def in_process(table: Any) -> list[Any]:
    return sorted(((client, value) for _, client, value in visible(table)), key=str)


def test_one_random_history_by_both_engines(spark: Any, lake: Any) -> None:
    chance = random.Random(7)
    tables = {
        name: lake.create_table(name, KEYED, time="time", primary_key=["client"], cluster_by=["client"])
        for name in ("duckdb", "spark")
    }

    def rows(count: int) -> pa.Table:
        clients = chance.sample("abcdefghijklmnop", count)
        return arrow([(chance.choice([DAY, NEXT]), client, chance.randrange(9)) for client in clients])

    for step in range(14):
        kind = chance.choice(["delete", "update", "upsert", "merge", "delete_keys", "compact", "resolve"])
        given, bound = rows(chance.randrange(1, 6)), chance.randrange(9)
        for engine, table in tables.items():
            data = spark.createDataFrame(given) if engine == "spark" else given
            match "upsert" if step == 0 else kind:
                case "delete":
                    table.delete(f"value = {bound} OR client = 'c'", engine=engine)
                case "update":
                    table.update(
                        {"value": "value + 1", "time": f"TIMESTAMP '{NEXT} 07:00:00'"},
                        f"value < {bound}",
                        engine=engine,
                    )
                case "upsert":
                    table.upsert(data)
                case "merge":
                    table.merge(
                        data,
                        "target.client = source.client AND source.value > 2",
                        when_matched_update={"value": "target.value + source.value"},
                        when_matched_delete="target.value = 1",
                        when_not_matched_insert={"time": "source.time", "client": "source.client", "value": "NULL"},
                        engine=engine,
                    )
                case "delete_keys":
                    table.delete_keys(data)
                case "compact":
                    table.compact()
                case "resolve":
                    table.resolve()
        expected = in_process(tables["duckdb"])
        assert in_process(tables["spark"]) == expected, (step, kind)
        for table in tables.values():
            assert by_spark(table) == expected, (step, kind)


def test_an_update_by_spark_keeps_the_rows_ids(lake: Any) -> None:
    table = lake.create_table("t", KEYED, time="time")
    start = table.append(many(50)).version
    table.update({"value": "value + 100"}, "value < 10", engine="spark")
    table.compact()
    changes = table.changes(start)
    assert changes.to_arrow().column("_change_type").to_pylist() == ["update_before", "update_after"] * 10
    assert changes.to_spark().count() == 20


def test_a_key_twice_in_a_spark_frame_is_refused_or_the_newest_chosen(spark: Any, lake: Any) -> None:
    table = lake.create_table("t", KEYED, time="time", primary_key=["client"])
    frame = spark.createDataFrame(arrow([(DAY, "a", 1), (NEXT, "a", 2), (DAY, "b", 3)]))
    with pytest.raises(InvalidInput, match="twice"):
        table.upsert(frame)
    table.upsert(frame, newest="value")
    assert in_process(table) == [("a", 2), ("b", 3)]


def test_an_engine_that_is_none_is_refused(lake: Any) -> None:
    table = lake.create_table("t", KEYED, time="time")
    with pytest.raises(InvalidInput, match="no such engine"):
        table.delete("TRUE", engine="flink")


def test_an_erasure_in_tasks_leaves_what_one_in_process_leaves(spark: Any, lake: Any, warehouse: Any) -> None:
    tables = {name: lake.create_table(name, KEYED, time="time", primary_key=["client"]) for name in ("duckdb", "spark")}
    found = {}
    for engine, table in tables.items():
        for start in (DAY, NEXT):
            table.append(many(40, start=start))
        old = table.delete("value = 3").version
        commit = table.erase("value % 7 = 3 OR value = 3", engine=engine)
        found[engine] = (
            commit.rows_deleted,
            [one.rewrites for one in table.segments()],
            in_process(table),
            by_spark(table),
        )
        assert len(in_process(table)) == len(table.scan(as_of=old).to_arrow())
    assert found["spark"] == found["duckdb"]
    assert found["spark"][0] == 12
    lake.collect(grace_seconds=0)
    assert lake.check(deep=True).findings == []
