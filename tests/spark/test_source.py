"""Tables as a Spark data source."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

import lakehouse
from lakehouse.testing.rows import DDL, arrow, order, plain

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


def test_overwriting_names_the_remedy(spark: Any, options: dict[str, str], flights: Any) -> None:
    with pytest.raises(Exception, match="replace"):
        read(spark, options).write.format("lakehouse").options(**options).mode("overwrite").save()
