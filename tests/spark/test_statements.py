"""Statements of which Spark runs the query: values, replaces, tables as queries, system tables, transactions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from tests.unit.sql.conftest import ROWS, TRIPS, rows_of


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[lakehouse.Lake]:
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse", spark=spark) as lake:
        lake.sql(TRIPS)
        lake.sql(ROWS)
        yield lake


def found(lake: lakehouse.Lake, text: str, **options: Any) -> list[tuple[Any, ...]]:
    """Rows of a query that Spark runs."""
    table = lake.sql(text, engine="spark", **options).toArrow()
    return [tuple(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def test_values_are_the_same_by_spark(lake: lakehouse.Lake) -> None:
    values = [
        None, True, -7, -(2**63), 0.1, -1e300, Decimal("-1.50"), Decimal("9" * 38), "'; DROP TABLE trips; --",
        "\\'", "${x} {y}",
        b"\x00'", date(2013, 1, 5), datetime(2013, 1, 5, 7, tzinfo=UTC), datetime(2013, 1, 5, 7),  # noqa: DTZ001
    ]  # fmt: skip
    listed = ", ".join(f"? AS v{place}" for place in range(len(values)))
    assert found(lake, f"SELECT {listed}", args=values) == [tuple(values)]
    text = "SELECT id FROM trips WHERE at = :at AND (client = :name OR price < :most)"
    assert found(lake, text, args={"at": values[-1], "name": "it's", "most": Decimal("1.75")}) == [(1,)]


def test_what_spark_writes_stands_in_the_place_of_rows(lake: lakehouse.Lake) -> None:
    made = lake.sql(
        "CREATE TABLE late PARTITIONED BY (days(at), bucket(4, id)) AS "
        "SELECT at, id, client, months_between(day, DATE '2013-01-01') AS months FROM trips WHERE id > ?",
        args=[1],
        engine="spark",
    )
    assert (made.time, made.cluster_by, made.count()) == ("at", {"id": 4}, 3)
    assert [field.nullable for field in made.schema] == [False, True, True, True]
    commit = lake.sql("INSERT INTO late REPLACE WHERE at >= '2013-01-06' AND id IN (3, 4) "
                      "SELECT at, id, 'new', 1 FROM late WHERE id = 3", engine="spark")  # fmt: skip
    assert commit.operation == "replace"
    assert rows_of(lake, "SELECT id, client FROM late ORDER BY id") == [(2, "it's"), (3, "new")]
    lake.sql("INSERT OVERWRITE late (at, id) SELECT at, id + 1 FROM late", engine="spark")
    assert rows_of(lake, "SELECT id, client FROM late ORDER BY id") == [(3, None), (4, None)]


def test_a_query_that_fails_while_spark_writes_leaves_no_table(lake: lakehouse.Lake) -> None:
    with pytest.raises(Exception, match=r"(?i)cast"):
        lake.sql(
            "CREATE TABLE t PARTITIONED BY (days(at)) AS SELECT at, CAST(client AS INT) AS n FROM trips", engine="spark"
        )
    assert lake.tables() == ["trips"]
    head = lake.head
    with pytest.raises(Exception, match=r"(?i)cast"):
        lake.sql("INSERT OVERWRITE trips (at, id) SELECT at, CAST(client AS INT) FROM trips", engine="spark")
    assert (lake.head, lake.operations(), lake.table("trips").count()) == (head, [], 4)


def test_system_tables_are_read_by_spark(lake: lakehouse.Lake) -> None:
    text = "SELECT s.id, s.rows, s.start FROM trips.segments s JOIN trips.history h ON true ORDER BY 1"
    assert found(lake, text) == rows_of(lake, text)
    assert found(lake, "SELECT * FROM trips.tombstones") == []
    text = "SELECT * FROM information_schema.columns ORDER BY ordinal_position"
    assert found(lake, text) == rows_of(lake, text)


def test_a_transaction_runs_its_queries_by_spark(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE other (at TIMESTAMP, id BIGINT) PARTITIONED BY (days(at))")
    commit = lake.sql(
        "BEGIN; INSERT INTO other SELECT at, id FROM trips; UPDATE trips SET id = 9 WHERE id IN (SELECT 1); COMMIT",
        engine="spark",
    )
    assert commit.tables == ("other", "trips")
    assert rows_of(lake, "SELECT sum(id) FROM other") == [(10,)]
    assert rows_of(lake, "SELECT sum(id) FROM trips") == [(18,)]
    with pytest.raises(InvalidInput):
        lake.sql("BEGIN; INSERT INTO other SELECT at, reflect('a', 'b') FROM trips; COMMIT", engine="spark")
