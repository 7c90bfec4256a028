"""BEGIN; ...; COMMIT: several statements that are one commit, or none."""

from __future__ import annotations

from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, TableNotFound, WriteConflict
from lakehouse.testing.faults import armed
from tests.unit.sql.conftest import rows_of


def held(lake: lakehouse.Lake) -> list[Any]:
    return [
        rows_of(lake, "SELECT id, client FROM trips ORDER BY id"),
        rows_of(lake, "SELECT score FROM clients ORDER BY 1"),
    ]


BEFORE = [[(1, "UA"), (2, "it's"), (3, None), (4, "UA")], [(10,), (20,)]]


def test_statements_become_one_version(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE other (at TIMESTAMP, id BIGINT) PARTITIONED BY (days(at))")
    lake.sql("CREATE TABLE late (at TIMESTAMP, id BIGINT) PARTITIONED BY (days(at))")
    head = lake.head
    commit = lake.sql(
        """
        begin transaction; -- of everything
        UPDATE trips SET client = ? WHERE id IN (SELECT 1);
        INSERT INTO trips (at, id) VALUES ('2014-01-01', ?);
        MERGE INTO clients USING (SELECT 10 AS score) s ON clients.score = s.score WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED THEN INSERT (since, score) VALUES (TIMESTAMP '2014-01-01', s.score);
        INSERT INTO clients VALUES ('2015-01-01', 'x;--', 3);
        INSERT INTO default.other REPLACE WHERE at < '2015-01-01' SELECT since, 7 FROM late JOIN late l ON true
            JOIN (SELECT TIMESTAMP '2013-01-01' AS since) ON true;
        INSERT INTO other REPLACE WHERE at >= '2015-01-01' VALUES ('2015-01-01', 8);
        TRUNCATE TABLE late;
        COMMIT;
        """,
        args=["new", 9],
        engine="duckdb",
    )
    assert sorted(commit.tables) == ["Clients", "late", "other", "trips"]
    assert commit.version == lake.head
    assert lake.log()[0].version == commit.version
    assert lake.log()[1].version <= head
    assert held(lake) == [[(1, "new"), (2, "it's"), (3, None), (4, "UA"), (9, None)], [(3,), (20,)]]
    assert rows_of(lake, "SELECT id FROM other") == [(8,)]
    assert rows_of(lake, "SELECT count(*) FROM trips", as_of=head) == [(4,)]


def test_queries_read_the_head_when_it_begins(lake: lakehouse.Lake) -> None:
    text = "INSERT INTO trips SELECT * FROM trips; INSERT INTO clients SELECT since, name, 1 FROM clients"
    lake.sql(f"BEGIN; {text}; COMMIT", engine="duckdb")
    assert rows_of(lake, "SELECT count(*) FROM trips") == [(8,)]
    assert rows_of(lake, "SELECT count(*) FROM clients") == [(4,)]


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN",
        "BEGIN; COMMIT",
        "BEGIN;; COMMIT",
        "COMMIT",
        "BEGIN; DELETE FROM trips",
        "BEGIN; DELETE FROM trips; ROLLBACK",
        "BEGIN; DELETE FROM trips; END",
        "BEGIN DELETE FROM trips; COMMIT",
        "BEGIN WORK; DELETE FROM trips; COMMIT",
        "BEGIN; DELETE FROM trips; ; COMMIT",
        "BEGIN; DELETE FROM trips; COMMIT; DELETE FROM clients",
        "BEGIN; DELETE FROM trips; COMMIT; COMMIT",
        "BEGIN; BEGIN; DELETE FROM trips; COMMIT; COMMIT",
        "DELETE FROM trips; DELETE FROM clients",
        "DELETE FROM trips; COMMIT",
        "EXPLAIN SELECT 1; SELECT 2",
        "EXPLAIN BEGIN; DELETE FROM trips; COMMIT",
        "BEGIN; DELETE FROM trips; DROP TABLE clients; COMMIT",
        "BEGIN; DELETE FROM trips; SELECT 1; COMMIT",
        "BEGIN; DELETE FROM trips; SHOW TABLES; COMMIT",
        "BEGIN; DELETE FROM trips; EXPLAIN SELECT 1; COMMIT",
        "BEGIN; DELETE FROM trips; DESCRIBE trips; COMMIT",
        "BEGIN; DELETE FROM trips; USE default; COMMIT",
        "BEGIN; DELETE FROM trips; SET a = 1; COMMIT",
        "BEGIN; DELETE FROM trips; TRUNCATE TABLE clients, trips; COMMIT",
        "BEGIN; CREATE TABLE t (at TIMESTAMP) PARTITIONED BY (days(at)); DELETE FROM trips; COMMIT",
        "BEGIN; CREATE TABLE t PARTITIONED BY (days(at)) AS SELECT at FROM trips; COMMIT",
        "BEGIN; DELETE FROM trips; DELETE FROM trips WHERE id = 1; COMMIT",
        "BEGIN; INSERT INTO trips (at) VALUES ('2013-01-01'); DELETE FROM default.TRIPS; COMMIT",
        "BEGIN; TRUNCATE TABLE trips; UPDATE trips SET id = 1; COMMIT",
        "BEGIN; INSERT INTO trips (at) VALUES ('2013-01-01'); INSERT OVERWRITE trips (at) VALUES ('2014'); COMMIT",
        "BEGIN; DELETE FROM trips; INSERT INTO clients SELECT at, client, 1 FROM trips; COMMIT",
        "BEGIN; DELETE FROM trips; DELETE FROM clients WHERE name IN (SELECT client FROM Trips); COMMIT",
        "BEGIN; DELETE FROM trips; MERGE INTO clients USING trips ON client = name WHEN MATCHED THEN DELETE; COMMIT",
        "BEGIN; INSERT OVERWRITE trips SELECT * FROM trips; COMMIT",
        "BEGIN; DELETE FROM trips; DELETE FROM nowhere; COMMIT",
        "BEGIN; DELETE FROM trips; DELETE FROM clients WHERE nothing = 1; COMMIT",
        "BEGIN; DELETE FROM trips; DELETE FROM clients WHERE reflect('a', 'b') = 1; COMMIT",
        "BEGIN; DELETE FROM trips; INSERT INTO clients SELECT since, CAST(name AS INT), 1 FROM clients; COMMIT",
        "BEGIN; DELETE FROM trips; UPDATE clients SET score = (SELECT score FROM clients); COMMIT",
        "BEGIN; DELETE FROM trips; INSERT INTO clients REPLACE WHERE since < '2013' VALUES ('2014', 'x', 1); COMMIT",
        "BEGIN; DELETE FROM trips WHERE id = ?; COMMIT",
        "BEGIN; " + "DELETE FROM trips; " * 1001 + "COMMIT",
    ],
)
def test_what_cannot_be_one_commit_is_none(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises((InvalidInput, TableNotFound)):
        still_lake.sql(text, engine="duckdb")
    assert (still_lake.head, still_lake.operations(), held(still_lake)) == (head, [], BEFORE)


def test_a_transaction_is_no_query_and_has_no_version(still_lake: lakehouse.Lake) -> None:
    text = "BEGIN; DELETE FROM trips; COMMIT"
    with pytest.raises(InvalidInput, match="change nothing"):
        still_lake.query(text)
    with pytest.raises(InvalidInput, match="leave as_of out"):
        still_lake.sql(text, as_of=3)
    assert held(still_lake) == BEFORE


def test_a_transaction_in_whose_way_others_come_changes_nothing(lake: lakehouse.Lake) -> None:
    waiting = ["UPDATE trips SET client = 'other' WHERE id = 1"]

    def other() -> None:
        if waiting:
            lake.sql(waiting.pop())

    with armed({"commit.before": other}), pytest.raises(WriteConflict):
        lake.sql(
            "BEGIN; DELETE FROM trips WHERE id IN (SELECT 1); INSERT INTO clients (since) VALUES ('2013-01-01'); COMMIT"
        )
    assert lake.operations() == []
    assert held(lake) == [[(1, "other"), *BEFORE[0][1:]], BEFORE[1]]
