"""Timeless tables by Spark: the same rows as in process, and as a list of rows says."""

from __future__ import annotations

from typing import Any

import pytest

import lakehouse
from lakehouse.core.interval import ALL_TIME
from tests.contract.test_timeless import DDL, arrow, listed, ordered


@pytest.fixture
def lake(spark: Any, sqlite_url: str, warehouse: Any) -> Any:
    with lakehouse.connect(sqlite_url, str(warehouse), spark=spark) as opened:
        yield opened


def test_every_write_by_spark_comes_to_the_rows_of_a_list(lake: Any, spark: Any) -> None:
    table = lake.create_table("codes", DDL, primary_key="code", cluster_by="region")
    frame = lambda *rows: spark.createDataFrame(rows, "code STRING, region STRING, value BIGINT")  # noqa: E731
    steps: list[tuple[Any, list[Any]]] = [
        (lambda: table.append(frame(("UA", "west", 1), ("AA", None, 2), ("B6", "east", 3))),
         [("UA", "west", 1), ("AA", None, 2), ("B6", "east", 3)]),
        (lambda: table.replace(frame(("DL", "west", 4)), keys={"region": "west"}),
         [("DL", "west", 4), ("AA", None, 2), ("B6", "east", 3)]),
        (lambda: table.upsert(frame(("AA", "west", 6), ("WN", None, None))),
         [("DL", "west", 4), ("AA", "west", 6), ("B6", "east", 3), ("WN", None, None)]),
        (lambda: table.merge(frame(("WN", "west", 7), ("AS", "x", 8)), ["code"], when_matched_update=True),
         [("DL", "west", 4), ("AA", "west", 6), ("B6", "east", 3), ("WN", "west", 7), ("AS", "x", 8)]),
        (lambda: (table.resolve(engine="spark"), table.compact(engine="spark")),
         [("DL", "west", 4), ("AA", "west", 6), ("B6", "east", 3), ("WN", "west", 7), ("AS", "x", 8)]),
        (lambda: lake.sql("INSERT OVERWRITE codes SELECT code, 'y', 0L FROM codes WHERE value > 6", engine="spark"),
         [("WN", "y", 0), ("AS", "y", 0)]),
    ]  # fmt: skip
    versions = {}
    for place, (step, rows) in enumerate(steps):
        step()
        versions[table.version] = rows
        assert listed(table) == ordered(rows), place
    for version, rows in [*versions.items()][1::3]:
        assert ordered(map(tuple, table.read(as_of=version).collect())) == ordered(rows), version
    assert {one.interval for one in table.segments()} == {ALL_TIME}
    assert lake.check(deep=True).is_sound


def test_a_table_with_nothing_to_sort_by_is_compacted_by_both_engines(lake: Any, spark: Any) -> None:
    for engine in ("duckdb", "spark"):
        table = lake.create_table(engine, DDL)
        table.append(arrow(("UA", "west", 1), ("AA", None, 2)))
        table.append(spark.createDataFrame([("B6", None, 3)], table.scan().to_spark().schema))
        table.update({"region": "'x'"}, "value > 1", engine=engine)
        assert table.compact(engine=engine).dropped
        assert listed(table) == [("AA", "x", 2), ("B6", "x", 3), ("UA", "west", 1)]
        table.set_properties({"target_rows": 1})
        table.append(arrow(("C", None, 4)))
        table.compact(engine=engine)
        assert len(listed(table)) == table.read().count() == 4


def test_no_column_of_before_needs_to_stay_in_spark_either(lake: Any, spark: Any) -> None:
    table = lake.create_table("odd", DDL)
    table.append(arrow(("UA", "west", 1), ("AA", None, 2), ("B6", "east", 3)))
    table.delete("value = 2", engine="spark")
    before = table.version
    table.add_column("name", "STRING", default="new")
    for column in ("code", "region", "value"):
        table.drop_column(column)
    table.append(spark.createDataFrame([("z",)], "name STRING"))
    assert sorted(map(tuple, table.read().collect())) == [("new",), ("new",), ("z",)]
    assert (table.read().count(), table.read().filter("name = 'new'").count()) == (3, 2)
    assert sorted(map(tuple, table.read(as_of=before).collect())) == [("B6", "east", 3), ("UA", "west", 1)]
    assert table.update({"name": "'q'"}, "name = 'new'", engine="spark").rows_added == 2
    assert table.compact(engine="spark").dropped
    assert sorted(map(tuple, table.read().collect())) == [("q",), ("q",), ("z",)]
