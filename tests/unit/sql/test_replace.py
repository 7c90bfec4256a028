"""INSERT OVERWRITE, REPLACE WHERE and TRUNCATE: rows in the place of others."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, InvalidStatement, RowsOutside
from lakehouse.testing.faults import armed
from tests.unit.sql.conftest import rows_of


@pytest.fixture
def rides(lake: lakehouse.Lake) -> lakehouse.Lake:
    """A table with cluster columns beside the others."""
    columns = "at TIMESTAMP, client BIGINT, name STRING"
    lake.sql(f"CREATE TABLE rides ({columns}) PARTITIONED BY (days(at), bucket(4, client)) CLUSTER BY (name)")
    lake.sql("INSERT INTO rides VALUES ('2013-01-05', 1, 'a'), ('2013-01-05 12:00', 2, 'b'), ('2013-01-06', 1, 'a')")
    return lake


def rows(lake: lakehouse.Lake) -> list[Any]:
    return rows_of(lake, "SELECT day(at), client, name FROM rides ORDER BY at, client, name")


REPLACE = "INSERT INTO rides REPLACE WHERE {} {}"


@pytest.mark.parametrize(
    ("condition", "query", "left"),
    [
        ("at >= '2013-01-05' AND at < '2013-01-06'", "VALUES ('2013-01-05', 9, 'x')", [(5, 9, "x"), (6, 1, "a")]),
        ("at >= '2013-01-05' AND client = 1 AND at < '2013-01-06'", "VALUES ('2013-01-05', 1, 'x')",
         [(5, 1, "x"), (5, 2, "b"), (6, 1, "a")]),
        ("client IN (1, 3)", "SELECT at, client, 'new' FROM rides WHERE client = 1",
         [(5, 1, "new"), (5, 2, "b"), (6, 1, "new")]),
        ("rides.name = 'a' AND CLIENT = 1", "SELECT * FROM rides WHERE 1 = 0", [(5, 2, "b")]),
        ("date(at) = '2013-01-05' AND client IN (1, NULL)", "VALUES ('2013-01-05', 1, 'x')",
         [(5, 1, "x"), (5, 2, "b"), (6, 1, "a")]),
        ("at BETWEEN '2013-01-05 12:00' AND '2013-01-06'", "WITH r AS (SELECT * FROM rides) SELECT * FROM r LIMIT 0",
         [(5, 1, "a")]),
        ("at > '2013-01-06'", "VALUES ('2013-01-07', 3, NULL)", [(5, 1, "a"), (5, 2, "b"), (6, 1, "a"), (7, 3, None)]),
    ],
)  # fmt: skip
def test_an_interval_and_keys_are_replaced(rides: lakehouse.Lake, condition: str, query: str, left: list[Any]) -> None:
    commit = rides.sql(REPLACE.format(condition, query), engine="duckdb")
    assert (commit.operation, commit.version) == ("replace", rides.head)
    assert rows(rides) == left


def test_values_may_stand_in_the_condition_and_columns_be_named(rides: lakehouse.Lake) -> None:
    rides.sql(
        "INSERT INTO rides (client, at) REPLACE WHERE at >= :day AND at < :next AND client = :c VALUES (:c, :day)",
        args={"day": "2013-01-05", "next": "2013-01-06", "c": 1},
    )
    assert rows(rides) == [(5, 1, None), (5, 2, "b"), (6, 1, "a")]


@pytest.mark.parametrize(
    "condition",
    [
        "TRUE", "FALSE", "client > 1", "client <> 1", "client IS NULL", "client = 1 OR client = 2", "NOT client = 1",
        "at <> '2013-01-05'", "day(at) = 5", "client = 1 AND client = 2", "client + 0 = 1",
        "client = 1.5", "client = '1'", "client = name", "name LIKE 'a%'", "at >= '2013-01-05' OR client = 1",
        "client IN (SELECT id FROM trips)", "other = 1", "trips.client = 1", "at IS NOT NULL",
        "EXISTS (SELECT 1)", "at >= '2013-01-06' AND at < '2013-01-05'", "client = ?", "coalesce(client, 1) = 1",
    ],
)  # fmt: skip
def test_a_condition_that_is_no_interval_and_keys_is_refused(rides: lakehouse.Lake, condition: str) -> None:
    head = rides.head
    with pytest.raises(InvalidInput):
        rides.sql(REPLACE.format(condition, "SELECT * FROM rides WHERE 1 = 0"), engine="duckdb")
    assert rides.head == head
    assert rides.operations() == []


def test_rows_outside_of_the_condition_are_refused(rides: lakehouse.Lake) -> None:
    head = rides.head
    for text in ("VALUES ('2013-01-06', 1, 'a')", "VALUES ('2013-01-05', 2, 'a')", "VALUES ('2013-01-05', NULL, 'a')"):
        with pytest.raises(RowsOutside):
            rides.sql(REPLACE.format("at < '2013-01-06' AND client = 1", text))
    assert (rides.head, rides.operations()) == (head, [])


def test_a_query_that_fails_changes_nothing_and_holds_nothing(rides: lakehouse.Lake) -> None:
    head = rides.head
    for text in (
        "INSERT OVERWRITE rides SELECT at, CAST(name AS INT), name FROM rides",
        "INSERT OVERWRITE rides SELECT at FROM rides",
        "INSERT OVERWRITE rides SELECT * FROM nowhere",
    ):
        with pytest.raises((InvalidInput, lakehouse.TableNotFound)):
            rides.sql(text, engine="duckdb")
    assert (rides.head, rides.operations()) == (head, [])


def test_overwrite_replaces_everything(rides: lakehouse.Lake) -> None:
    rides.sql("INSERT INTO rides VALUES ('0001-01-01', 7, 'first'), ('9999-12-31 23:59:59', 8, 'last')")
    commit = rides.sql("INSERT OVERWRITE TABLE rides SELECT at, client + 1, name FROM rides WHERE client < 3",
                       engine="duckdb")  # fmt: skip
    assert (commit.operation, rows(rides)) == ("replace", [(5, 2, "a"), (5, 3, "b"), (6, 2, "a")])
    rides.sql("INSERT OVERWRITE rides (at) VALUES ('2014-01-01')")
    assert rows(rides) == [(1, None, None)]
    rides.sql("WITH r AS (SELECT at, 'n' AS name FROM rides) INSERT OVERWRITE rides BY NAME SELECT * FROM r",
              engine="duckdb")  # fmt: skip
    assert rows(rides) == [(1, None, "n")]


def test_truncate_drops_every_row(rides: lakehouse.Lake) -> None:
    rides.sql("INSERT INTO rides VALUES ('0001-01-01', 7, 'first'), ('9999-12-31 23:59:59', 8, 'last')")
    assert rides.sql("TRUNCATE TABLE Rides;").rows_deleted == 5
    assert rows(rides) == []
    assert rows_of(rides, "SELECT count(*) FROM rides", as_of=rides.head - 1) == [(5,)]


@pytest.mark.parametrize(
    "text",
    [
        "TRUNCATE TABLE trips, clients",
        "TRUNCATE TABLE trips PARTITION (id = 1)",
        "TRUNCATE TABLE IF EXISTS trips",
        "TRUNCATE TABLE trips VERSION AS OF 1",
        "TRUNCATE DATABASE trips",
        "TRUNCATE trips",
        "TRUNCATE TABLE trips RESTART IDENTITY CASCADE",
        "TRUNCATE TABLE a.trips",
        "INSERT OVERWRITE trips PARTITION (id = 1) SELECT * FROM trips",
        "INSERT OVERWRITE trips IF NOT EXISTS SELECT * FROM trips",
        "INSERT OVERWRITE trips REPLACE WHERE id = 1 SELECT * FROM trips",
        "INSERT OVERWRITE trips VERSION AS OF 1 SELECT * FROM trips",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1",
        "INSERT OVERWRITE LOCAL DIRECTORY '/tmp/x' SELECT 1",
        "INSERT INTO trips REPLACE USING (id) SELECT * FROM trips",
        "INSERT INTO trips REPLACE ON id = 1 SELECT * FROM trips",
        "INSERT INTO trips REPLACE WHERE at > '2013-01-01'",
    ],
)
def test_other_forms_are_refused(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises((InvalidInput, lakehouse.TableNotFound)):
        still_lake.sql(text, engine="duckdb")
    assert still_lake.head == head


def test_what_overwrites_from_itself_waits_for_another_that_does(rides: lakehouse.Lake) -> None:
    """Each reads after it has the lock, so that neither's work is lost."""
    text = "INSERT OVERWRITE rides SELECT at, client + 1, name FROM rides"
    with rides.table("rides").begin_replace("2013") as operation:
        other = threading.Thread(target=lambda: rides.sql(text, engine="duckdb"))
        other.start()
        other.join(0.3)
        assert other.is_alive()
        operation.write(rides.table("rides").scan(where="client = 2").to_arrow())
        operation.commit()
    other.join()
    assert rows(rides) == [(5, 3, "b")]


def test_a_table_in_order_of_starts_says_what_it_cannot(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE t (at TIMESTAMP) PARTITIONED BY (days(at)) TBLPROPERTIES (write_order = 'start')")
    with pytest.raises(InvalidInput, match="replace shorter ones"):
        lake.sql("TRUNCATE TABLE t")
    with pytest.raises(InvalidStatement, match="REPLACE WHERE takes"):
        lake.sql("INSERT INTO t REPLACE WHERE day(at) = 1 VALUES ('2013-01-01')")


YEAR = "at >= '2013-01-01' AND at < '2014-01-01'"


@pytest.mark.parametrize("words", ["OVERWRITE rides", f"INTO rides REPLACE WHERE {YEAR}"])
def test_rows_that_are_appended_while_a_table_is_replaced_by_itself_are_there_once(
    rides: lakehouse.Lake, words: str
) -> None:
    before = rows_of(rides, "SELECT at, client FROM rides")
    waiting = ["INSERT INTO rides (at, client) VALUES ('2013-06-01', 77)"]

    def append() -> None:
        if waiting:
            rides.sql(waiting.pop())

    with armed({"begin.registered": append}):
        rides.sql(f"INSERT {words} SELECT * FROM rides WHERE {YEAR}", engine="duckdb")
    assert waiting == []
    assert len(rows_of(rides, "SELECT * FROM rides WHERE client = 77")) == 1
    assert len(rows_of(rides, "SELECT * FROM rides")) == len(before) + 1
