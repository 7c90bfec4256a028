"""CREATE TABLE, DROP TABLE, SHOW TABLES and DESCRIBE."""

import pytest

import lakehouse
from lakehouse.errors import AlreadyExists, InvalidInput, TableNotFound
from tests.unit.sql.conftest import rows_of


def test_create_table_says_everything_that_a_table_has(lake: lakehouse.Lake) -> None:
    made = lake.sql("""
        CREATE TABLE IF NOT EXISTS visits (
            `Zeit in UTC` TIMESTAMP COMMENT 'when', id BIGINT NOT NULL,
            tags MAP<STRING, ARRAY<INT>>, price DECIMAL(8, 2),
            local TIMESTAMP_NTZ, PRIMARY KEY (ID)
        )
        USING lakehouse PARTITIONED BY (hours(`zeit IN utc`), bucket(16, id)) CLUSTER BY (Price) COMMENT 'of people'
        TBLPROPERTIES ('owner' = 'me', a.b = 5, write_order = 'start')
    """)
    assert (made.time, made.grain, made.primary_key) == ("Zeit in UTC", "hour", ("id",))
    assert made.cluster_by == {"id": 16, "price": 0}
    assert made.properties == {"comment": "of people", "owner": "me", "a.b": "5"}
    assert made.spec.write_order == "start"
    assert rows_of(lake, "DESCRIBE TABLE visits") == [
        ("Zeit in UTC", "TIMESTAMP", False, "time by hour"),
        ("id", "BIGINT", False, "primary key, cluster in 16 buckets"),
        ("tags", "MAP<STRING, ARRAY<INT>>", True, ""),
        ("price", "DECIMAL(8, 2)", True, "cluster"),
        ("local", "TIMESTAMP_NTZ", True, ""),
    ]


def test_without_partitions_a_table_is_timeless(lake: lakehouse.Lake) -> None:
    made = lake.sql("CREATE TABLE codes (`a b` INT, b STRING) CLUSTER BY (b)")
    assert (made.time, made.grain, made.cluster_by) == (None, "all", {"b": 0})
    lake.sql("INSERT INTO codes VALUES (1, 'x'), (2, 'y'), (3, NULL)")
    lake.sql("INSERT INTO codes REPLACE WHERE b = 'x' VALUES (7, 'x')")
    lake.sql("UPDATE codes SET `a b` = `a b` + 1 WHERE b IS NULL")
    lake.sql("UPDATE codes SET b = (SELECT max(name) FROM clients) WHERE `a b` IN (SELECT id + 1 FROM trips)")
    insert = "WHEN NOT MATCHED THEN INSERT (`a b`, b) VALUES (s.n, 'm')"
    lake.sql(f"MERGE INTO codes c USING (SELECT 9 AS n) s ON c.`a b` = s.n {insert}", engine="duckdb")
    assert rows_of(lake, "SELECT * FROM codes ORDER BY 1") == [(2, "UA"), (4, "UA"), (7, "x"), (9, "m")]
    assert rows_of(lake, "SELECT count(*), count(t.id) FROM codes c LEFT JOIN trips t ON id = `a b`") == [(4, 2)]
    lake.sql("DELETE FROM codes WHERE `a b` IN (SELECT max(`a b`) FROM codes)")
    before = lake.sql("DELETE FROM codes WHERE b = 'UA'").version
    assert rows_of(lake, "SELECT * FROM codes") == [(7, "x")]
    lake.sql("INSERT OVERWRITE codes SELECT id, client FROM trips WHERE id = 1")
    lake.sql("BEGIN; INSERT OVERWRITE codes VALUES (5, 'z'); DELETE FROM trips WHERE id = 1; COMMIT")
    assert rows_of(lake, "SELECT * FROM codes") == [(5, "z")]
    assert rows_of(lake, f"SELECT * FROM codes VERSION AS OF {before}") == [(7, "x")]
    lake.sql("CREATE TABLE copied AS SELECT * FROM codes")
    lake.sql("TRUNCATE TABLE codes")
    assert rows_of(lake, "SELECT count(*) FROM codes") == [(0,)]
    assert rows_of(lake, "SELECT * FROM copied") == [(5, "z")]
    assert ("copied", None, "all", lake.table("copied").version) in rows_of(lake, "SHOW TABLES")
    assert rows_of(lake, "DESCRIBE copied") == [("a b", "INT", True, ""), ("b", "STRING", True, "")]
    with pytest.raises(InvalidInput, match="cluster columns"):
        lake.sql("INSERT INTO codes REPLACE WHERE `a b` = 1 VALUES (1, 'x')")


@pytest.mark.parametrize("grain", ["hour", "day", "week", "month", "year"])
def test_the_grain_is_named_with_or_without_an_s(lake: lakehouse.Lake, grain: str) -> None:
    for number, called in enumerate((grain, f"{grain}s".upper())):
        made = lake.sql(
            f"CREATE TABLE t{number} (ts TIMESTAMP, c INT PRIMARY KEY) "
            f"PARTITIONED BY ({called}(ts)) CLUSTERED BY (c) INTO 4 BUCKETS"
        )
        assert (made.grain, made.primary_key, made.cluster_by) == (grain, ("c",), {"c": 4})


def test_a_table_that_is_there_stays_where_the_statement_says_so(lake: lakehouse.Lake) -> None:
    text = "CREATE TABLE {} trips (ts TIMESTAMP) PARTITIONED BY (days(ts))"
    assert lake.sql(text.format("IF NOT EXISTS")).time == "at"
    with pytest.raises(AlreadyExists):
        lake.sql(text.format(""))


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t ()",
        "CREATE TABLE t",
        "CREATE TABLE t (a INT) TBLPROPERTIES (ragged = 'true')",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (ts)",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (days(other))",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts), hours(ts))",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (upper(ts))",
        "CREATE TABLE t (ts STRING) PARTITIONED BY (days(ts))",
        "CREATE TABLE t (ts TIMESTAMP, a INTERVAL) PARTITIONED BY (days(ts))",
        "CREATE TABLE t (ts TIMESTAMP, a INT GENERATED ALWAYS AS (1)) PARTITIONED BY (days(ts))",
        "CREATE TABLE t (ts TIMESTAMP, a INT DEFAULT 1 + 1) PARTITIONED BY (days(ts))",
        "CREATE TABLE t (ts TIMESTAMP, CHECK (ts > 1)) PARTITIONED BY (days(ts))",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts), bucket(1.5, ts))",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts)) CLUSTERED BY (ts) INTO many BUCKETS",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts)) CLUSTERED BY (ts)",
        "CREATE TABLE t (ts TIMESTAMP) USING PARTITIONED BY (days(ts))",
        "CREATE TABLE t (ts TIMESTAMP) USING parquet PARTITIONED BY (days(ts))",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts)) LOCATION '/tmp/x'",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts)) OPTIONS ('path' = '/tmp/x')",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts)) TBLPROPERTIES ('a' = upper('b'))",
        "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts)) TBLPROPERTIES (write_order = 'other')",
        "CREATE TABLE db.t (ts TIMESTAMP) PARTITIONED BY (days(ts))",
        "CREATE TABLE `t;x` (ts TIMESTAMP) PARTITIONED BY (days(ts))",
        "CREATE TABLE t LIKE trips",
        "CREATE OR REPLACE TABLE trips (ts TIMESTAMP) PARTITIONED BY (days(ts))",
        "CREATE EXTERNAL TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts))",
        "CREATE TEMPORARY TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts))",
        "DROP TABLE trips PURGE",
        "DROP TABLE trips, clients",
        "DESCRIBE trips PARTITION (id = 1)",
        "DESCRIBE FUNCTION trips",
    ],
)
def test_what_a_table_cannot_be_is_refused(still_lake: lakehouse.Lake, text: str) -> None:
    with pytest.raises(InvalidInput):
        still_lake.sql(text)
    assert still_lake.tables() == ["Clients", "trips"]


def test_drop_table_takes_a_table_out_of_the_lake(lake: lakehouse.Lake) -> None:
    lake.sql("DROP TABLE TRIPS;")
    assert lake.tables() == ["Clients"]
    lake.sql("DROP TABLE IF EXISTS trips")
    with pytest.raises(TableNotFound):
        lake.sql("DROP TABLE trips")


def test_show_tables_and_describe_history_show_what_there_is(still_lake: lakehouse.Lake) -> None:
    assert rows_of(still_lake, "SHOW TABLES") == [("Clients", "since", "year", 4), ("trips", "at", "day", 3)]
    assert rows_of(still_lake, "SHOW TABLES; -- all") == rows_of(still_lake, "show tables")
    history = still_lake.sql("DESCRIBE HISTORY trips")
    assert history["operation"].to_pylist() == ["append"]
    with pytest.raises(TableNotFound):
        still_lake.sql("DESCRIBE nowhere")


AS_QUERY = "CREATE TABLE {} PARTITIONED BY (days(at), bucket(4, ID)) TBLPROPERTIES ('owner' = 'me') AS {}"


def test_a_table_is_created_as_a_query_gives_it(lake: lakehouse.Lake) -> None:
    query = "WITH c AS (SELECT at, id, price * 2 AS twice, client FROM trips WHERE id > ?) SELECT * FROM c"
    made = lake.sql(AS_QUERY.format("late", query), args=[1], engine="duckdb")
    assert (made.time, made.grain, made.cluster_by, made.properties) == ("at", "day", {"id": 4}, {"owner": "me"})
    assert rows_of(lake, "SELECT id, twice, client FROM late ORDER BY id") == [
        (2, 4.0, "it's"), (3, None, None), (4, -8.0, "UA")
    ]  # fmt: skip
    assert [row[1:3] for row in rows_of(lake, "DESCRIBE late")] == [
        ("TIMESTAMP", False), ("BIGINT", True), ("DOUBLE", True), ("STRING", True)
    ]  # fmt: skip
    before = lake.sql(AS_QUERY.format("early", "SELECT * FROM trips"), as_of=2, engine="duckdb")
    assert before.count() == 0


def test_a_table_that_is_there_is_not_created_as_a_query(lake: lakehouse.Lake) -> None:
    kept = lake.sql(AS_QUERY.format("IF NOT EXISTS trips", "SELECT * FROM nowhere"), engine="duckdb")
    assert kept.count() == 4
    with pytest.raises(AlreadyExists):
        lake.sql(AS_QUERY.format("trips", "SELECT * FROM trips"), engine="duckdb")
    assert lake.table("trips").count() == 4


@pytest.mark.parametrize(
    "text",
    [
        AS_QUERY.format("t", "SELECT at, id, CAST(client AS INT) AS n FROM trips"),
        AS_QUERY.format("t", "SELECT CAST(NULL AS TIMESTAMP) AS at, id FROM trips"),
        AS_QUERY.format("t", "SELECT id FROM trips"),
        AS_QUERY.format("t", "SELECT at FROM trips"),
        AS_QUERY.format("t", "SELECT at, at, id FROM trips"),
        AS_QUERY.format("t", "SELECT client AS at, id FROM trips"),
        AS_QUERY.format("t", "SELECT at, id, reflect('a', 'b') FROM trips"),
        AS_QUERY.format("t", "SELECT * FROM range(10000000)"),
        AS_QUERY.format("t (at, id)", "SELECT at, id FROM trips"),
        AS_QUERY.format("t (at TIMESTAMP, id INT)", "SELECT at, id FROM trips"),
        AS_QUERY.format("db.t", "SELECT at, id FROM trips"),
        AS_QUERY.format("`t;x`", "SELECT at, id FROM trips"),
        AS_QUERY.format("t", "DELETE FROM trips"),
        AS_QUERY.format("t", "TABLE trips"),
        "CREATE TABLE t TBLPROPERTIES (ragged = 'true') AS SELECT * FROM trips",
        "CREATE TABLE t USING parquet PARTITIONED BY (days(at)) AS SELECT * FROM trips",
        "CREATE TABLE t PARTITIONED BY (days(at)) LOCATION '/tmp/x' AS SELECT * FROM trips",
        "CREATE TEMPORARY VIEW t AS SELECT * FROM trips",
        "CREATE TEMPORARY TABLE t PARTITIONED BY (days(at)) AS SELECT * FROM trips",
    ],
)
def test_a_query_that_makes_no_table_leaves_none(still_lake: lakehouse.Lake, text: str) -> None:
    with pytest.raises(InvalidInput):
        still_lake.sql(text, engine="duckdb")
    assert still_lake.tables() == ["Clients", "trips"]
