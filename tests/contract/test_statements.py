"""Statements that ask the catalog for more than rows, on each catalog."""

from __future__ import annotations

import lakehouse


def test_system_tables_sub_queries_and_transactions(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE trips (at TIMESTAMP, client BIGINT) PARTITIONED BY (days(at), bucket(4, client))")
    lake.sql("INSERT INTO trips VALUES (?, 1), (?, 2)", args=["2013-01-05", "2013-01-06"])
    lake.sql("CREATE TABLE rides PARTITIONED BY (days(at)) AS SELECT * FROM trips", engine="duckdb")
    lake.sql("DELETE FROM rides WHERE client IN (SELECT max(client) FROM trips)")
    lake.sql(
        "BEGIN; INSERT INTO trips REPLACE WHERE at >= '2013-01-06' AND client IN (2, 3) VALUES ('2013-01-07', 3); "
        "UPDATE rides SET client = (SELECT 7) WHERE client = 1; COMMIT"
    )
    found = lake.sql(
        "SELECT DISTINCT t.client, r.client AS ride, h.operation, s.rows, (SELECT count(*) FROM trips.tombstones) "
        "FROM trips t JOIN rides r ON true JOIN rides.history h ON h.version = :v JOIN rides.segments s ON s.rows = 1 "
        "JOIN information_schema.columns c ON c.column_name = 'at' AND c.table_name = 'rides' ORDER BY 1",
        args={"v": lake.head},
        engine="duckdb",
    ).fetchall()
    assert [(row[0], row[1], row[2]) for row in found] == [(1, 7, "transaction"), (3, 7, "transaction")]
    assert lake.query("SELECT count(*) AS n FROM trips.chunks").rows["n"].to_pylist() == [
        len(lake.table("trips").chunks())
    ]
