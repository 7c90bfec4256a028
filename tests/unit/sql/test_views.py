"""Views in statements: what their names mean, which conditions reach their tables, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import lakehouse
from lakehouse.errors import AlreadyExists, BrokenView, InvalidInput, InvalidStatement, TableNotFound, ViewNotFound
from tests.unit.sql.conftest import rows_of

UA = [(1, 1.5), (4, -4.0)]


@pytest.fixture
def viewed(lake: lakehouse.Lake) -> lakehouse.Lake:
    """A view of a table, one of a view and a table, and one whose columns have names of its own."""
    lake.sql("CREATE VIEW ua COMMENT 'it''s UA' AS SELECT id, price FROM trips WHERE client = 'UA' -- theirs")
    lake.sql("CREATE VIEW scored (number, points) AS SELECT u.id, score FROM ua u JOIN clients c ON c.name = 'UA'")
    lake.sql("CREATE VIEW counted (n, `how many`) AS SELECT client, count(*) FROM trips GROUP BY client")
    return lake


QUERIES = {
    "SELECT * FROM ua ORDER BY id": UA,
    "SELECT u.price FROM default.UA AS u WHERE u.id > 1": [(-4.0,)],
    "SELECT b FROM ua AS u(a, b) WHERE a = 1": [(1.5,)],
    "SELECT * FROM scored ORDER BY number": [(1, 10), (4, 10)],
    "SELECT `how many` FROM counted WHERE n = 'UA'": [(2,)],
    "SELECT count(*) FROM ua a JOIN ua b ON a.id = b.id": [(2,)],
    "SELECT id FROM trips WHERE id IN (SELECT id FROM ua) ORDER BY id": [(1,), (4,)],
    "SELECT id FROM trips t WHERE EXISTS (SELECT 1 FROM ua WHERE ua.id = t.id) ORDER BY id": [(1,), (4,)],
    "SELECT id FROM ua UNION SELECT number FROM scored ORDER BY 1": [(1,), (4,)],
    # The reader's WITH is the reader's own.
    "WITH trips AS (SELECT 9 AS id) SELECT ua.id, trips.id FROM ua, trips ORDER BY 1": [(1, 9), (4, 9)],
    "WITH ua AS (SELECT 9 AS id) SELECT id FROM ua": [(9,)],
    "WITH ua AS (SELECT id + 10 AS id FROM default.ua) SELECT id FROM ua ORDER BY 1": [(11,), (14,)],
    "WITH clients AS (SELECT 1 AS x) SELECT number FROM scored ORDER BY 1": [(1,), (4,)],
    "SELECT table_name FROM information_schema.tables WHERE table_type = 'VIEW'": [("counted",), ("scored",), ("ua",)],
    "SELECT comment FROM information_schema.views WHERE table_name = 'ua'": [("it's UA",)],
    "SHOW VIEWS LIKE '*U*'": [("default", "counted", False), ("default", "ua", False)],
    "SHOW COLUMNS IN counted": [("n",), ("how many",)],
    "DESCRIBE scored": [("number", "BIGINT", True, ""), ("points", "INT", True, "")],
}


def test_a_view_is_read_like_a_table(viewed: lakehouse.Lake) -> None:
    for text, expected in QUERIES.items():
        assert rows_of(viewed, text) == expected, text
        assert rows_of(viewed, text) == expected, text  # from what was remembered


def test_what_is_remembered_of_a_text_is_of_the_views_that_it_named(viewed: lakehouse.Lake) -> None:
    text = "SELECT id FROM ua ORDER BY id"
    before = viewed.head
    assert rows_of(viewed, text) == [(1,), (4,)]
    viewed.sql("CREATE OR REPLACE VIEW ua AS SELECT id + 1 AS id, price FROM trips WHERE client = 'UA'")
    assert rows_of(viewed, text) == [(2,), (5,)]
    assert rows_of(viewed, text, as_of=before) == [(1,), (4,)]
    assert rows_of(viewed, "SELECT number FROM scored ORDER BY 1") == [(2,), (5,)]
    viewed.sql("DROP VIEW ua")
    viewed.sql("CREATE TABLE ua (at TIMESTAMP, id BIGINT) PARTITIONED BY (days(at))")
    assert rows_of(viewed, text) == []
    assert rows_of(viewed, text, as_of=before) == [(1,), (4,)]
    assert rows_of(viewed, text) == []


def test_a_view_at_a_version_reads_its_tables_at_that_version(viewed: lakehouse.Lake) -> None:
    before = viewed.head
    viewed.sql("CREATE VIEW fixed AS SELECT count(*) AS n FROM trips VERSION AS OF 3")
    made = viewed.head
    viewed.sql("DELETE FROM trips WHERE id = 1")
    assert rows_of(viewed, f"SELECT * FROM scored VERSION AS OF {before}") == [(1, 10), (4, 10)]
    assert rows_of(viewed, f"SELECT a.id FROM ua VERSION AS OF {before} a JOIN ua b USING (price)") == [(4,)]
    assert rows_of(viewed, f"SELECT n FROM fixed VERSION AS OF {made}") == rows_of(viewed, "SELECT n FROM fixed")
    with pytest.raises(InvalidInput):
        rows_of(viewed, "WITH q AS (SELECT * FROM ua) SELECT * FROM q VERSION AS OF 3")


def test_conditions_reach_the_tables_of_a_view(viewed: lakehouse.Lake) -> None:
    viewed.sql("CREATE VIEW dated (t, c) AS SELECT at, client FROM trips")
    viewed.sql("CREATE VIEW again AS SELECT t AS moment, c FROM dated")
    plan = viewed.sql("EXPLAIN SELECT c FROM again WHERE moment >= '2013-02-01' AND c = 'UA'", engine="duckdb")
    assert "1 of 3 segments" in plan
    assert "filter (`at` >= '2013-02-01') AND (`client` = 'UA')" in plan
    counted = viewed.sql("EXPLAIN SELECT * FROM counted WHERE `how many` > 1", engine="duckdb")
    assert "3 of 3 segments" in counted
    read = viewed.query("SELECT c FROM again WHERE moment >= '2013-02-01'").reads
    assert [(one.table, len(one.segments)) for one in read] == [("trips", 1)]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO ua VALUES (1, 2)",
        "INSERT OVERWRITE default.UA SELECT 1, 2",
        "DELETE FROM ua",
        "DELETE FROM ua WHERE id IN (SELECT id FROM trips)",
        "UPDATE ua SET id = 1",
        "MERGE INTO ua USING trips ON ua.id = trips.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE ua",
        "BEGIN; DELETE FROM ua; COMMIT",
    ],
)
def test_nothing_is_changed_through_a_view(viewed: lakehouse.Lake, text: str) -> None:
    head = viewed.head
    with pytest.raises(InvalidStatement, match=r"a view is read-only.*view=ua"):
        viewed.sql(text, engine="duckdb")
    assert viewed.head == head


REFUSED = {
    "DROP TABLE ua": "DROP VIEW",
    "DROP VIEW trips": "DROP TABLE",
    "DROP VIEW IF EXISTS trips": "DROP TABLE",
    "DROP VIEW ua, scored": "one view at a time",
    "DESCRIBE HISTORY ua": "no history",
    "SHOW TBLPROPERTIES ua": "no properties",
    "CREATE VIEW v AS SELECT reflect('java.lang.System', 'exit') AS x": "function is not allowed",
    "CREATE VIEW v AS SELECT * FROM read_parquet('/etc/passwd')": "not allowed",
    "CREATE VIEW v AS SELECT nothing FROM trips": "no such column",
    "CREATE VIEW v AS SELECT id, ID FROM trips": "two columns have one name",
    "CREATE VIEW v AS SELECT max(id) FROM trips": "columns need names",
    "CREATE VIEW v (a) AS SELECT id, price FROM trips": "as many names",
    "CREATE VIEW v (a, A) AS SELECT id, price FROM trips": "two columns have one name",
    'CREATE VIEW v (`a"b`) AS SELECT id FROM trips': "bad column name",
    "CREATE VIEW v (a INT) AS SELECT id FROM trips": "types of its query",
    "CREATE VIEW v TBLPROPERTIES ('a' = 'b') AS SELECT id FROM trips": "COMMENT only",
    "CREATE TEMPORARY VIEW v AS SELECT id FROM trips": "no statement of this kind",
    "CREATE OR REPLACE VIEW IF NOT EXISTS v AS SELECT id FROM trips": "but not both",
    "CREATE OR REPLACE VIEW ua AS SELECT * FROM scored": "cannot read itself",
    "CREATE OR REPLACE VIEW ua AS SELECT * FROM UA": "cannot read itself",
    "CREATE VIEW v AS DELETE FROM trips": "not allowed",
    "CREATE VIEW v AS SHOW TABLES": "not allowed",
    "CREATE VIEW v": "AS and a query",
    "CREATE VIEW `a b` AS SELECT id FROM trips": "bad table name",
    "CREATE VIEW other.v AS SELECT id FROM trips": "plain names",
    "CREATE VIEW v AS SELECT :x AS x": "needs values",
    "CREATE VIEW v AS SELECT '\0' AS x": "code 0",
    "CREATE VIEW v COMMENT '\0' AS SELECT 1 AS x": "code 0",
    "BEGIN; CREATE VIEW v AS SELECT id FROM trips; COMMIT": "cannot hold this",
    "BEGIN; DELETE FROM trips; INSERT INTO clients SELECT at, client, 1 FROM late; COMMIT": "would not see",
}


def test_what_cannot_be_of_a_view_is_refused_and_changes_nothing(viewed: lakehouse.Lake) -> None:
    viewed.sql("CREATE VIEW late AS SELECT * FROM trips")
    head = viewed.head
    for text, why in REFUSED.items():
        with pytest.raises(InvalidInput, match=why):
            viewed.sql(text, engine="duckdb")
    with pytest.raises(InvalidInput, match="write the values out"):
        viewed.sql("CREATE VIEW v AS SELECT ? AS x", args=[1])
    for error, text in (
        (AlreadyExists, "CREATE VIEW ua AS SELECT 1 AS one"),
        (AlreadyExists, "CREATE TABLE Ua (at TIMESTAMP) PARTITIONED BY (days(at))"),
        (AlreadyExists, "CREATE TABLE IF NOT EXISTS ua PARTITIONED BY (days(at)) AS SELECT at FROM trips"),
        (ViewNotFound, "DROP VIEW nowhere"),
        (TableNotFound, "CREATE VIEW v AS SELECT * FROM v"),
        (TableNotFound, "SELECT * FROM ua.segments"),
    ):
        with pytest.raises(error):
            viewed.sql(text, engine="duckdb")
    viewed.sql("DROP VIEW IF EXISTS nowhere")
    viewed.sql("CREATE VIEW IF NOT EXISTS ua AS SELECT 1 AS one")
    assert viewed.head == head


def test_a_view_whose_table_or_column_has_gone_is_refused_by_name(viewed: lakehouse.Lake) -> None:
    viewed.sql("CREATE OR REPLACE VIEW ua AS SELECT id FROM trips")
    viewed.sql("CREATE VIEW dear AS SELECT price FROM scored, trips")
    viewed.sql("CREATE OR REPLACE VIEW ua AS SELECT price FROM trips")
    for name in ("scored", "dear"):
        with pytest.raises(BrokenView, match="view=scored"):
            rows_of(viewed, f"SELECT * FROM {name}")
    with pytest.raises(InvalidInput, match=r"no such column; .*\(column=nothing"):
        rows_of(viewed, "SELECT nothing FROM ua")
    viewed.drop_table("trips")
    for name in ("ua", "counted"):
        with pytest.raises(BrokenView, match=f"view={name} table=trips"):
            rows_of(viewed, f"SELECT * FROM {name}")
    assert rows_of(viewed, "SHOW COLUMNS IN counted") == [("n",), ("how many",)]
    assert viewed.check().is_sound


def test_a_view_keeps_the_columns_that_it_was_made_with(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE VIEW one AS SELECT 1 AS a, 2 AS b")
    lake.sql("CREATE VIEW two AS SELECT * FROM one")
    lake.sql("CREATE OR REPLACE VIEW one AS SELECT 3 AS b, 4 AS c, 5 AS a")
    assert rows_of(lake, "SELECT * FROM two") == [(5, 3)]


def test_views_are_nested_and_named_within_limits(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE VIEW v0 AS SELECT 1 AS one")
    for number in range(1, 16):
        lake.sql(f"CREATE VIEW v{number} AS SELECT one + 1 AS one FROM v{number - 1}")
    assert rows_of(lake, "SELECT one FROM v15") == [(16,)]
    with pytest.raises(InvalidStatement, match="nested too deeply"):
        lake.sql("CREATE VIEW deep AS SELECT * FROM (SELECT one FROM v15)")
    lake.sql("DROP VIEW v0")
    lake.sql("CREATE VIEW base AS SELECT 1 AS one")
    lake.sql("CREATE VIEW v0 AS SELECT one FROM base")
    with pytest.raises(BrokenView, match="nested too deeply"):
        rows_of(lake, "SELECT one FROM v15")
    before = "base"
    for number in range(4):
        lake.sql(f"CREATE VIEW w{number} AS " + " UNION ALL ".join([f"SELECT one FROM {before}"] * 3))
        before = f"w{number}"
    assert rows_of(lake, f"SELECT count(*) FROM {before}") == [(81,)]
    with pytest.raises(InvalidStatement, match="too many views"):
        rows_of(lake, f"SELECT * FROM {before} UNION SELECT * FROM {before}")


def test_show_create_makes_the_same_view_again(viewed: lakehouse.Lake) -> None:
    def known() -> list[tuple[Any, ...]]:
        return rows_of(viewed, "SELECT table_name, view_definition, comment FROM information_schema.views")

    before = known()
    texts = [rows_of(viewed, f"SHOW CREATE TABLE {name}")[0][0] for name in ("ua", "scored", "counted")]
    for name in viewed.views():
        viewed.drop_view(name)
    for text in texts:
        viewed.sql(text)
    assert known() == before
    assert rows_of(viewed, "SELECT * FROM ua ORDER BY id") == UA
