"""Looking by SQL: nothing that could change a table runs, cost is limited, and what is left out is reported."""

from __future__ import annotations

import pytest

import lakehouse
from lakehouse.core.pruned import Reason
from lakehouse.errors import InvalidInput
from lakehouse.testing.rows import many

CHANGES = (
    "INSERT INTO trips VALUES ('2013-01-05 07:00', 9, 'UA', 1.5, 7, '2013-01-05')",
    "DELETE FROM trips WHERE id = 1",
    "UPDATE trips SET id = 2 WHERE id = 1",
    "MERGE INTO trips USING clients ON trips.client = clients.name WHEN MATCHED THEN DELETE",
    "CREATE TABLE other (at TIMESTAMP) PARTITIONED BY (days(at))",
    "DROP TABLE trips",
    "EXPLAIN DELETE FROM trips WHERE id = 1",
    "WITH gone AS (SELECT 1) DELETE FROM trips",
    "/* SELECT */ DROP TABLE trips",
    "-- SELECT 1\nDROP TABLE trips",
    "TRUNCATE TABLE trips",
    "INSERT OVERWRITE trips SELECT * FROM trips",
    "INSERT INTO trips REPLACE WHERE at < '2013-01-06' SELECT * FROM trips",
    "CREATE TABLE other PARTITIONED BY (days(at)) AS SELECT * FROM trips",
    "DELETE FROM trips WHERE id IN (SELECT 1)",
    "BEGIN; DELETE FROM trips; COMMIT",
    "USE default",
)
ENDLESS = "SELECT count(*) FROM " + ", ".join(f"numbers AS n{place}" for place in range(4))


@pytest.mark.parametrize("text", CHANGES)
def test_what_could_change_a_table_is_refused_by_its_tree(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises(InvalidInput):
        still_lake.query(text)
    assert still_lake.head == head
    assert still_lake.tables() == ["Clients", "trips"]


@pytest.mark.parametrize("text", [*CHANGES[:7], *CHANGES[8:]])
def test_a_change_is_named_as_such(still_lake: lakehouse.Lake, text: str) -> None:
    with pytest.raises(InvalidInput, match="only statements that change nothing"):
        still_lake.query(text)


def test_queries_and_looks_give_rows(still_lake: lakehouse.Lake) -> None:
    assert still_lake.query("SELECT id FROM trips ORDER BY id").rows["id"].to_pylist() == [1, 2, 3, 4]
    assert still_lake.query("VALUES (1), (2)").rows.num_rows == 2
    assert still_lake.query("SHOW TABLES").rows["table"].to_pylist() == ["Clients", "trips"]
    assert still_lake.query("DESCRIBE trips").rows["column"].to_pylist()[0] == "at"
    assert "trips at version" in still_lake.query("EXPLAIN SELECT id FROM trips").rows["plan"][0].as_py()


def test_rows_beyond_the_limit_are_left_out_and_that_is_said(still_lake: lakehouse.Lake) -> None:
    found = still_lake.query("SELECT id FROM trips ORDER BY id", most_rows=3)
    assert (found.rows["id"].to_pylist(), found.is_cut) == ([1, 2, 3], True)
    assert not still_lake.query("SELECT id FROM trips", most_rows=4).is_cut
    assert still_lake.query("SHOW TABLES", most_rows=1).is_cut
    assert still_lake.query("SELECT id FROM trips", most_rows=0).rows.num_rows == 0


def test_bytes_beyond_the_limit_are_left_out(still_lake: lakehouse.Lake) -> None:
    found = still_lake.query("SELECT a.id FROM trips a, trips b, trips c, trips d, trips e", most_bytes=800)
    assert found.is_cut
    assert 0 < found.rows.num_rows <= 100


def test_a_query_that_takes_too_long_is_stopped(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE numbers (at TIMESTAMP, n BIGINT) PARTITIONED BY (days(at))")
    numbers = many(100_000, step_us=1000).rename_columns(["at", "client", "n"])
    lake.table("numbers").append(numbers.select(["at", "n"]))
    with pytest.raises(InvalidInput, match="took too long"):
        lake.query(ENDLESS, most_seconds=0.2)
    assert lake.query("SELECT count(*) AS n FROM numbers").rows["n"].to_pylist() == [100_000]


def test_a_query_at_a_version_reads_that_version(lake: lakehouse.Lake) -> None:
    before = lake.table("trips").version
    lake.sql("DELETE FROM trips WHERE id = 1")
    assert lake.query("SELECT id FROM trips", as_of=before).rows.num_rows == 4
    assert lake.query("SELECT id FROM trips").rows.num_rows == 3
    assert lake.query(f"SELECT id FROM trips VERSION AS OF {before}").reads[0].version == before


def test_what_is_read_and_left_out_is_reported_for_each_table(lake: lakehouse.Lake) -> None:
    found = lake.query("SELECT price FROM trips WHERE at >= '2013-01-07' AND id < 4 AND client IS NULL")
    [read] = found.reads
    everything = lake.table("trips").segments()
    pruned = read.pruned()
    assert len(read.segments) + sum(len(one.segments) for one in pruned) == len(everything)
    assert [one.reason for one in pruned] == [Reason.TIME, Reason.BOUNDS]
    assert pruned[1].condition == "id < 4"
    assert read.where is not None
    assert "id" in read.where
    assert found.rows["price"].to_pylist() == [None]


def test_conditions_that_exclude_each_other_leave_out_all(still_lake: lakehouse.Lake) -> None:
    scan = still_lake.table("trips").scan(where="at < '2013-01-05'", interval="2014")
    [only] = scan.pruned()
    assert (only.reason, len(only.segments)) == (Reason.TIME, len(still_lake.table("trips").segments()))
    assert scan.plan().files == []


def test_a_limit_is_a_number(still_lake: lakehouse.Lake) -> None:
    for bad in ({"most_rows": None}, {"most_rows": -1}, {"most_seconds": float("nan")}, {"most_bytes": "x"}):
        with pytest.raises(InvalidInput):
            still_lake.query("SELECT 1", **bad)
