"""Tables as a Spark data source."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

import lakehouse
from lakehouse.testing.rows import DDL, KEYED, arrow, order, plain

ROWS = [("2013-01-05T01:00", "a", 1), ("2013-01-05T02:00", None, 2), ("2013-01-06", "b", 3)]


@pytest.fixture
def options(spark: Any, sqlite_url: str, warehouse: Any) -> dict[str, str]:
    lakehouse.register(spark)
    return {"table": "flights", "catalog": sqlite_url, "warehouse": str(warehouse)}


@pytest.fixture
def flights(options: dict[str, str]) -> Any:
    with lakehouse.connect(options["catalog"], options["warehouse"]) as lake:
        yield lake.create_table("flights", DDL, time="time", cluster_by=["client"])


def read(spark: Any, options: dict[str, str], **more: Any) -> Any:
    return spark.read.format("lakehouse").options(**options, **more).load()


def rows(frame: Any) -> list[Any]:
    return sorted((one.time.replace(tzinfo=UTC), one.client, one.value) for one in frame.collect())


def test_the_format_reads_what_is_visible_at_a_version(spark: Any, options: dict[str, str], flights: Any) -> None:
    first = flights.append(arrow(ROWS))
    flights.replace(None, ("2013-01-05T00:30", "2013-01-05T01:30"))
    assert read(spark, options).count() == 2
    assert read(spark, options, as_of=str(first.version)).count() == 3
    assert read(spark, options, interval="2013-01-06").count() == 1


def test_rows_hidden_by_tombstones_of_every_kind_are_not_read(
    spark: Any, options: dict[str, str], flights: Any
) -> None:
    with lakehouse.connect(options["catalog"], options["warehouse"]) as lake:
        keyed = lake.create_table("keyed", KEYED, time="time", primary_key=("value",))
        keyed.append(arrow([(f"2013-01-05T{hour:02d}:00", "a", hour) for hour in range(20)]))
        first = keyed.version
        keyed.delete("value % 5 = 1")
        keyed.upsert(arrow([("2013-01-05T02:00", "b", 2)]))
        keyed.replace(None, ("2013-01-05T09:00", "2013-01-05T11:00"))
        assert {one.kind for one in keyed.tombstones()} == {"row", "key", "interval"}
        mine = {**options, "table": "keyed"}
        assert rows(read(spark, mine)) == plain(keyed.scan().to_arrow())
        assert read(spark, mine, as_of=str(first)).count() == 20
        assert read(spark, mine).where("value > 15 AND client = 'a'").count() == 3
        keyed.erase("value = 17")
        assert rows(read(spark, mine)) == plain(keyed.scan().to_arrow())


def test_a_failing_task_leaves_nothing_and_a_write_after_it_counts_once(
    spark: Any, options: dict[str, str], flights: Any
) -> None:
    bad = "SELECT TIMESTAMP '2013-01-05 01:00:00' AS time, 'a' AS client, raise_error('broken') AS value"
    frame = spark.sql(f"SELECT time, client, CAST(value AS BIGINT) AS value FROM ({bad})")
    with pytest.raises(Exception, match="broken"):
        frame.write.format("lakehouse").options(**options).mode("append").save()
    good = spark.range(1000).selectExpr("TIMESTAMP '2013-01-05 01:00:00' AS time", "'a' AS client", "id AS value")
    good.repartition(4).write.format("lakehouse").options(**options).mode("append").save()
    assert flights.scan().count() == 1000
    with lakehouse.connect(options["catalog"], options["warehouse"]) as lake:
        assert lake.check().findings == []
        assert list(lake.operations()) == []


def test_filters_leave_out_segments_and_no_row(spark: Any, options: dict[str, str], flights: Any) -> None:
    flights.append(arrow(ROWS))
    frame = read(spark, options)
    assert [one.value for one in frame.where("value > 2").collect()] == [3]
    assert frame.where("client is null").count() == 1
    assert frame.where("time >= TIMESTAMP '2013-01-06'").count() == 1


def test_writing_appends_one_version(spark: Any, options: dict[str, str], flights: Any) -> None:
    flights.append(arrow(ROWS))
    frame = read(spark, options).repartition(3)
    head = flights.version
    frame.write.format("lakehouse").options(**options, message="again").mode("append").save()
    assert plain(flights.scan().to_arrow()) == sorted([*plain(arrow(ROWS)), *plain(arrow(ROWS))], key=order)
    assert [(commit.operation, commit.rows_added, commit.message) for commit in flights.log(1)] == [
        ("append", 3, "again")
    ]
    assert len([commit for commit in flights.log() if commit.version > head]) == 1


def test_a_write_that_fails_shows_nothing(spark: Any, options: dict[str, str], flights: Any) -> None:
    frame = spark.sql("SELECT CAST(NULL AS TIMESTAMP) AS time, 'a' AS client, 1L AS value")
    with pytest.raises(Exception, match="time"):
        frame.write.format("lakehouse").options(**options).mode("append").save()
    assert flights.scan().count() == 0


def test_writing_gives_the_table_the_columns_of_the_rows_or_leaves_them_out(
    spark: Any, options: dict[str, str], flights: Any
) -> None:
    frame = spark.sql("SELECT TIMESTAMP '2013-01-05' AS time, 'a' AS client, 1L AS value, id AS more FROM range(4)")
    wider = frame.repartition(3).write.format("lakehouse").mode("append")
    with pytest.raises(Exception, match="more"):
        wider.options(**options).save()
    wider.options(**options, schema="ignore").save()
    version = flights.version
    wider.options(**options, schema="merge").save()
    assert flights.version == version + 1
    found = flights.scan(columns=["more"]).to_arrow()["more"].to_pylist()
    assert sorted(found, key=str) == [0, 1, 2, 3, None, None, None, None]


def test_overwriting_names_the_remedy(spark: Any, options: dict[str, str], flights: Any) -> None:
    with pytest.raises(Exception, match="replace"):
        read(spark, options).write.format("lakehouse").options(**options).mode("overwrite").save()
