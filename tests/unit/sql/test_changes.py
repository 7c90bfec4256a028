"""INSERT, DELETE, UPDATE and MERGE: what they ask of a table."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, TableNotFound
from tests.unit.sql.conftest import rows_of


def test_values_take_the_types_of_their_columns(still_lake: lakehouse.Lake) -> None:
    first, second, third, fourth = rows_of(still_lake, "SELECT * FROM trips ORDER BY id")
    assert first == (datetime(2013, 1, 5, 7, tzinfo=UTC), 1, "UA", 1.5, 7, date(2013, 1, 5))
    assert second == (datetime(2013, 1, 5, 23, tzinfo=UTC), 2, "it's", 2.0, None, None)
    assert third[2:4] == (None, None)
    assert fourth[3] == -4.0


def test_columns_that_are_not_named_become_null(lake: lakehouse.Lake) -> None:
    commit = lake.sql("INSERT INTO TRIPS (`Seats Free`, at, id) VALUES (1 + 1, TIMESTAMP '2013-03-01', -5)")
    assert (commit.operation, commit.rows_added) == ("append", 1)
    assert rows_of(lake, "SELECT `seats free`, client FROM trips WHERE id = -5") == [(2, None)]


def test_a_query_is_inserted_by_place_or_by_name(lake: lakehouse.Lake) -> None:
    lake.sql("INSERT INTO clients SELECT at, client, 1 FROM trips WHERE id = 1", engine="duckdb")
    lake.sql("INSERT INTO clients BY NAME SELECT 2 AS score, at AS since FROM trips WHERE id = 2", engine="duckdb")
    lake.sql(
        "INSERT INTO clients (score, since) WITH c AS (SELECT at FROM trips) SELECT 3, at FROM c LIMIT 1",
        engine="duckdb",
    )
    lake.sql(
        """WITH c AS (SELECT * FROM trips WHERE id = 4)
        INSERT INTO clients WITH d AS (SELECT * FROM c) SELECT at, 'd', 4 FROM d""",
        engine="duckdb",
    )
    assert rows_of(lake, "SELECT name, score FROM clients WHERE score < 5 ORDER BY score") == [
        ("UA", 1),
        (None, 2),
        (None, 3),
        ("d", 4),
    ]


def test_a_table_is_inserted_into_itself_as_it_was(lake: lakehouse.Lake) -> None:
    assert lake.sql("INSERT INTO trips SELECT * FROM trips", engine="duckdb").rows_added == 4
    assert lake.sql("INSERT INTO trips SELECT * FROM trips", as_of=3, engine="duckdb").rows_added == 4
    assert rows_of(lake, "SELECT count(*) FROM trips") == [(12,)]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO trips VALUES (1)",
        "INSERT INTO trips (at, id) VALUES ('2013-01-01')",
        "INSERT INTO trips (at, id) VALUES ('2013-01-01', 1), ('2013-01-01')",
        "INSERT INTO trips (at, nothing) VALUES ('2013-01-01', 1)",
        "INSERT INTO trips (at, at) VALUES ('2013-01-01', '2013-01-01')",
        "INSERT INTO trips (at, id) VALUES ('2013-01-01', 1.5)",
        "INSERT INTO trips (at, id) VALUES ('2013-01-01', 'x')",
        "INSERT INTO trips (at, id) VALUES ('noon', 1)",
        "INSERT INTO trips (at, id) VALUES (NULL, 1)",
        "INSERT INTO trips (at, id) VALUES ('2013-01-01', DEFAULT)",
        "INSERT INTO trips (at, id) SELECT at FROM trips",
        "INSERT INTO trips VERSION AS OF 1 VALUES (1)",
    ],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_committed(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises(InvalidInput):
        still_lake.sql(text, engine="duckdb")
    assert still_lake.head == head


TRIPS = [(1, "UA", 1.5), (2, "it's", 2.0), (3, None, None), (4, "UA", -4.0)]


def trips(lake: lakehouse.Lake) -> list[tuple[Any, ...]]:
    return rows_of(lake, "SELECT id, client, price FROM trips ORDER BY id, price")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("DELETE FROM trips WHERE id = 1", [2, 3, 4]),
        ("DELETE FROM Trips AS t WHERE T.ID > 1 AND client IS NULL", [1, 2, 4]),
        ("DELETE FROM trips WHERE client = 'it''s' OR trips.at >= DATE '2013-02-01' -- both", [1, 3]),
        ("DELETE FROM trips WHERE `seats free` BETWEEN 1 AND 7", [2, 3]),
        ("DELETE FROM trips WHERE price < 0 OR price IS NULL;", [1, 2]),
        ("DELETE FROM trips", []),
    ],
)
def test_delete_removes_rows_that_pass(lake: lakehouse.Lake, text: str, left: list[int]) -> None:
    assert lake.sql(text).version == lake.head
    assert [row[0] for row in trips(lake)] == left
    assert rows_of(lake, "SELECT count(*) FROM trips", as_of=3) == [(4,)]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("UPDATE trips SET price = price * 2, client = 'it''s' WHERE trips.id = 1", {1: (1, "it's", 3.0)}),
        ("UPDATE trips t SET t.Client = NULL WHERE t.id > 2", {4: (4, None, -4.0)}),
        ("UPDATE trips SET price = CASE WHEN price IS NULL THEN 0.5 ELSE 7 END WHERE id IN (3, 4)",
         {3: (3, None, 0.5), 4: (4, "UA", 7.0)}),
        ("UPDATE trips SET id = id + 10", {one: (one + 10, *rest) for one, *rest in TRIPS}),
    ],
)  # fmt: skip
def test_update_changes_rows_that_pass(lake: lakehouse.Lake, text: str, changed: dict[int, Any]) -> None:
    lake.sql(text)
    assert trips(lake) == [changed.get(row[0], row) for row in TRIPS]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("WHEN MATCHED THEN DELETE", TRIPS[1:3]),
        ("WHEN MATCHED AND t.id > 2 THEN DELETE", TRIPS[:3]),
        ("WHEN NOT MATCHED THEN INSERT (at, ID, client) VALUES (c.since, score + 1, name)", [*TRIPS, (21, "B6", None)]),
        ("WHEN MATCHED THEN UPDATE SET t.id = t.id + c.score, price = 9",
         [*TRIPS[1:3], (11, "UA", 9.0), (14, "UA", 9.0)]),
        ("""WHEN MATCHED AND price < 0 THEN DELETE WHEN MATCHED THEN UPDATE SET price = 8
            WHEN NOT MATCHED THEN INSERT (id, at) VALUES (99, since)""",
         [(1, "UA", 8.0), *TRIPS[1:3], (99, None, None)]),
        ("WHEN MATCHED AND price < 0 THEN UPDATE SET price = 8 WHEN MATCHED THEN DELETE",
         [*TRIPS[1:3], (4, "UA", 8.0)]),
        ("""WHEN MATCHED AND id = 1 THEN UPDATE SET price = 8 WHEN MATCHED AND price < 0 THEN DELETE
            WHEN NOT MATCHED AND c.score > 99 THEN INSERT (id, at) VALUES (98, since)
            WHEN NOT MATCHED AND c.score > 9 THEN INSERT (id, at) VALUES (99, since)
            WHEN NOT MATCHED THEN INSERT (id, at) VALUES (97, since)""",
         [(1, "UA", 8.0), *TRIPS[1:3], (99, None, None)]),
        ("WHEN MATCHED AND price < 0 THEN UPDATE SET price = 8", [*TRIPS[:3], (4, "UA", 8.0)]),
        ("WHEN MATCHED AND price > 0 THEN UPDATE SET price = 8 WHEN MATCHED AND score > 5 THEN DELETE",
         [(1, "UA", 8.0), *TRIPS[1:3]]),
    ],
)  # fmt: skip
def test_merge_puts_rows_to_those_they_match(lake: lakehouse.Lake, clauses: str, expected: list[Any]) -> None:
    lake.sql(f"MERGE INTO trips t USING clients c ON t.client = c.name {clauses}", engine="duckdb")
    assert trips(lake) == expected


def test_sides_of_a_merge_may_be_called_as_one_likes(lake: lakehouse.Lake) -> None:
    swapped = "MERGE INTO trips AS source USING clients AS target ON source.client = target.name"
    lake.sql(f"{swapped} WHEN MATCHED AND target.score = 10 THEN UPDATE SET price = target.score", engine="duckdb")
    assert [row[2] for row in trips(lake)] == [10.0, 2.0, None, 10.0]


def test_merge_takes_queries_versions_and_stars(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE late (at TIMESTAMP, id BIGINT, client STRING, price DOUBLE) PARTITIONED BY (days(at))")
    lake.sql("INSERT INTO late VALUES ('2013-01-05 07:00', 1, 'new', 0), ('2013-04-01', 9, 'new', 0)")
    merge = "MERGE INTO trips USING {} ON trips.id = s.id {}"
    both = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    lake.sql(merge.format("(SELECT at, id, client, price FROM late WHERE id > 0) AS s", both), engine="duckdb")
    assert trips(lake) == [(1, "new", 0.0), *TRIPS[1:], (9, "new", 0.0)]
    gone = merge.format("late VERSION AS OF 6 AS s", "WHEN MATCHED AND s.client = 'new' THEN DELETE")
    lake.sql(gone, engine="duckdb")
    assert trips(lake) == TRIPS[1:]
    lake.sql("WITH l AS (SELECT id FROM late) " + merge.format("l AS s", "WHEN MATCHED THEN DELETE"), engine="duckdb")
    assert trips(lake) == TRIPS[1:]


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM trips WHERE reflect('a', 'b') = 1 AND clients.id = 1",
        "DELETE FROM trips VERSION AS OF 1 WHERE id = 1",
        "DELETE FROM trips WHERE other.id = 1",
        "UPDATE trips SET nothing = 1",
        "UPDATE trips SET id = 1, ID = 2",
        "UPDATE trips SET id = other.id",
        "MERGE INTO trips USING clients ON client = name WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
        "MERGE INTO trips USING clients ON client = name WHEN NOT MATCHED BY SOURCE AND name = 1 THEN DELETE",
        "MERGE INTO trips USING clients ON client = name WHEN NOT MATCHED BY SOURCE THEN INSERT *",
        "MERGE INTO trips USING clients ON client = name WHEN MATCHED BY SOURCE THEN DELETE",
        "MERGE INTO trips USING clients ON client = name WHEN NOT MATCHED AND score > 1 THEN INSERT *",
        "MERGE INTO trips USING clients ON client = name WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET *",
        "MERGE INTO trips USING clients ON client = name WHEN MATCHED THEN UPDATE SET * WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING clients ON client = name WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING clients ON client = name WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)",
        "MERGE INTO trips USING trips ON id = id WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING trips AS s ON id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING range(10000000) AS s ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING (SELECT reflect('a', 'b') AS x) AS s ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO trips AS t USING trips AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = std()",
        "UPDATE trips SET price = std() OVER (ORDER BY id)",
        "UPDATE trips SET price = isnull(price, 1)",
        "DELETE FROM trips WHERE now(1) > at",
    ],
)
def test_changes_that_cannot_be_are_refused(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises(InvalidInput):
        still_lake.sql(text, engine="duckdb")
    assert still_lake.head == head


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM nowhere",
        "UPDATE a.b SET c = 1",
        "INSERT INTO nowhere VALUES (1)",
        "MERGE INTO trips USING x ON true WHEN MATCHED THEN DELETE",
    ],
)
def test_only_tables_of_the_lake_are_changed(still_lake: lakehouse.Lake, text: str) -> None:
    with pytest.raises(TableNotFound):
        still_lake.sql(text, engine="duckdb")


def test_what_changes_rows_is_not_run_as_of_a_version(still_lake: lakehouse.Lake) -> None:
    with pytest.raises(InvalidInput, match="as_of"):
        still_lake.sql("DELETE FROM trips", as_of=1)
