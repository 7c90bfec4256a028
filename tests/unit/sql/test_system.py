"""System tables: what the catalog knows, read by queries."""

from __future__ import annotations

from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, TableNotFound, VersionNotFound
from lakehouse.sql.system import OF_LAKE, OF_TABLES, schema_of
from tests.unit.sql.conftest import rows_of


def test_what_a_table_tells_of_itself_can_be_queried(lake: lakehouse.Lake) -> None:
    lake.sql("DELETE FROM trips WHERE id = 1")
    lake.sql("INSERT INTO trips SELECT * FROM trips WHERE id = 4", engine="duckdb")
    table = lake.table("trips")
    assert rows_of(lake, "SELECT id, `rows`, path, start, `end` FROM trips.segments ORDER BY id") == [
        (one.id, one.rows, one.path, one.start, one.end) for one in table.segments()
    ]
    assert rows_of(lake, "SELECT id, kind, rows, ordinal, keys FROM Trips.TOMBSTONES") == [
        (one.id, one.kind, one.rows, one.ordinal, None) for one in table.tombstones()
    ]
    assert rows_of(
        lake, "SELECT version, operation, rows_deleted FROM default.trips.history ORDER BY version DESC"
    ) == [(one.version, one.operation, one.rows_deleted) for one in table.log()]
    assert rows_of(lake, "SELECT sum(c.rows), count(*) FROM trips.chunks c") == [
        (sum(one.rows for one in table.chunks()), len(table.chunks()))
    ]
    assert len(rows_of(lake, "SELECT * FROM trips.key_frames")) == len(table.key_frames())


def test_they_join_with_rows_and_with_each_other_and_have_versions(lake: lakehouse.Lake) -> None:
    before = lake.table("trips").version
    lake.sql("DELETE FROM trips WHERE id < 3")
    text = f"SELECT (SELECT count(*) FROM trips.segments VERSION AS OF {before}), (SELECT count(*) FROM trips.segments)"
    assert rows_of(lake, text) == [(len(lake.table("trips").segments(before)), len(lake.table("trips").segments()))]
    assert rows_of(lake, "SELECT count(*) FROM trips.tombstones", as_of=before) == [(0,)]
    assert rows_of(lake, f"SELECT count(*) FROM trips.tombstones VERSION AS OF {lake.head}") != [(0,)]
    joined = """
    WITH s AS (SELECT start, `end`, rows FROM trips.segments WHERE rows > ?)
    SELECT t.id FROM trips t JOIN s ON t.at >= s.start AND t.at < s.`end` JOIN trips.history h ON h.operation = 'append'
    WHERE t.client IN (SELECT table_name FROM information_schema.tables) OR t.client IS NULL OR t.id = 4 ORDER BY 1
    """
    assert rows_of(lake, joined, args=[0]) == [(3,), (4,)]
    assert lake.query(joined, args=[0]).rows["id"].to_pylist() == [3, 4]
    lake.sql("CREATE TABLE kept PARTITIONED BY (days(committed_at)) AS SELECT committed_at, version FROM trips.history",
             engine="duckdb")  # fmt: skip
    assert lake.table("kept").count() == len(lake.table("trips").log())
    assert "from the catalog: " in lake.sql("EXPLAIN SELECT * FROM trips.history", engine="duckdb")


def test_every_system_table_has_its_columns_even_where_it_is_empty(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE void (at TIMESTAMP) PARTITIONED BY (days(at))")
    for name in OF_TABLES:
        for table in ("void", "trips"):
            found = lake.sql(f"SELECT * FROM {table}.{name}", engine="duckdb").to_arrow_table()
            assert found.schema.equals(schema_of(name))
    for name in OF_LAKE:
        found = lake.sql(f"SELECT * FROM information_schema.{name}", engine="duckdb").to_arrow_table()
        assert found.schema.equals(schema_of(f"information_schema.{name}"))


def test_the_lake_tells_its_tables_and_columns(still_lake: lakehouse.Lake) -> None:
    assert rows_of(still_lake, "SELECT table_schema, table_name, table_type FROM information_schema.tables") == [
        ("default", "Clients", "BASE TABLE"), ("default", "trips", "BASE TABLE")
    ]  # fmt: skip
    assert rows_of(still_lake, "SELECT schema_name FROM INFORMATION_SCHEMA.SCHEMATA") == [("default",)]
    assert rows_of(
        still_lake,
        "SELECT column_name, ordinal_position, is_nullable, data_type FROM information_schema.columns "
        "WHERE table_name = 'Clients' ORDER BY ordinal_position",
    ) == [("since", 1, "NO", "TIMESTAMP"), ("name", 2, "YES", "STRING"), ("score", 3, "YES", "INT")]


def test_the_lake_tells_its_versions_and_their_tags(lake: lakehouse.Lake) -> None:
    for tag in ("b", "a"):
        lake.tag(tag)
    lake.sql("DELETE FROM trips WHERE id = 1")
    text = (
        "SELECT version, operation, tables, tags, rows_deleted FROM information_schema.versions ORDER BY version DESC"
    )
    tags = {version: ["a", "b"] for version in lake.tags().values()}
    assert rows_of(lake, text) == [
        (one.version, one.operation, list(one.tables), tags.get(one.version, []), one.rows_deleted)
        for one in lake.log()
    ]


def test_a_table_of_such_a_name_is_itself(lake: lakehouse.Lake) -> None:
    for name in ("segments", "default", "information_schema"):
        lake.create_table(name, "at TIMESTAMP, n INT", time="at")
    lake.sql("INSERT INTO segments VALUES ('2013-01-01', 7)")
    assert rows_of(lake, "SELECT n FROM segments") == [(7,)]
    assert rows_of(lake, "SELECT n FROM default.segments") == [(7,)]
    assert rows_of(lake, "SELECT count(*) FROM default.default.segments") == [(0,)]
    assert rows_of(lake, "SELECT count(*) FROM segments.segments") == [(1,)]
    assert rows_of(lake, "SELECT count(*) FROM information_schema.segments") == [(0,)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM trips.nothing",
        "SELECT * FROM nowhere.segments",
        "SELECT * FROM other.trips.segments",
        "SELECT * FROM default.default.trips.segments",
        "SELECT * FROM trips.segments.x",
        "SELECT * FROM information_schema.nothing",
        "SELECT * FROM information_schema",
        "SELECT * FROM trips.history VERSION AS OF 3",
        "SELECT * FROM information_schema.tables VERSION AS OF 3",
        "SELECT * FROM trips.segments VERSION AS OF 'nowhere'",
        "SELECT * FROM trips.segments VERSION AS OF 99999",
        "SELECT nothing FROM trips.segments",
        "SELECT id FROM trips.segments JOIN trips ON true",
        "SELECT trips.segments.id FROM trips.segments",
        "INSERT INTO trips.segments VALUES (1)",
        "DELETE FROM trips.segments",
        "UPDATE trips.segments SET id = 1",
        "MERGE INTO trips.segments USING trips ON true WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE trips.history",
        "DROP TABLE trips.history",
        "CREATE TABLE trips.segments (at TIMESTAMP) PARTITIONED BY (days(at))",
        "DESCRIBE trips.segments",
        "SELECT * FROM lake_relation_0",
    ],
)
def test_what_is_none_or_would_change_one_is_refused(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises((InvalidInput, TableNotFound, VersionNotFound)):
        still_lake.sql(text, engine="duckdb")
    assert still_lake.head == head


def test_rows_in_memory_are_seen_by_their_own_query_alone(still_lake: lakehouse.Lake) -> None:
    first: Any = still_lake.sql("SELECT count(*) FROM trips.segments", engine="duckdb")
    second: Any = still_lake.sql("SELECT count(*) FROM clients.segments", engine="duckdb")
    assert first.fetchall() == [(len(still_lake.table("trips").segments()),)]
    assert second.fetchall() == [(len(still_lake.table("Clients").segments()),)]
