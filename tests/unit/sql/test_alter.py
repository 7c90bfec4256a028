"""ALTER TABLE in every form, and statements over tables whose columns changed."""

from __future__ import annotations

from datetime import date

import pytest

from lakehouse.errors import BrokenView, InvalidInput, InvalidStatement, TableNotFound, UnknownColumn
from tests.unit.sql.conftest import rows_of

FORMS = {
    "ADD COLUMN gate STRING DEFAULT 'A,1' COMMENT 'where from' AFTER id": ["at", "id", "gate", "client"],
    "add columns (x DECIMAL(10, 2) DEFAULT -1.5, y ARRAY<STRUCT<p: INT>> FIRST)": ["y", "at", "id", "client"],
    "ADD COLUMN `odd name` DATE DEFAULT DATE '2013-01-01' FIRST": ["odd name", "at", "id", "client"],
    "RENAME COLUMN CLIENT TO who": ["at", "id", "who", "price"],
    "DROP COLUMN client": ["at", "id", "price", "seats free"],
    "DROP COLUMNS (client, PRICE)": ["at", "id", "seats free", "day"],
    "DROP COLUMN IF EXISTS nothing": ["at", "id", "client", "price"],
    "ALTER COLUMN `seats free` TYPE BIGINT": ["at", "id", "client", "price"],
    "CHANGE COLUMN price COMMENT 'in euros'": ["at", "id", "client", "price"],
    "ALTER COLUMN price FIRST": ["price", "at", "id", "client"],
    "ALTER COLUMN AT AFTER ID": ["id", "at", "client", "price"],
    "ADD COLUMNS (x INT AFTER ID, y INT AFTER x)": ["at", "id", "x", "y"],
    "ALTER COLUMN at AFTER client /* last of three */": ["id", "client", "at", "price"],
    "ALTER COLUMN client SET DEFAULT 'UA'": ["at", "id", "client", "price"],
    "ALTER COLUMN client DROP DEFAULT": ["at", "id", "client", "price"],
    "SET TBLPROPERTIES ('owner' = 'me', target_rows = 7)": ["at", "id", "client", "price"],
    "UNSET TBLPROPERTIES IF EXISTS ('owner')": ["at", "id", "client", "price"],
}
BAD = {
    "": InvalidStatement,
    "ADD": InvalidStatement,
    "ADD COLUMN x": InvalidStatement,
    "ADD COLUMN x INT NOT NULL": InvalidStatement,
    "ADD COLUMN x INT DEFAULT (SELECT 1)": InvalidStatement,
    "ADD COLUMN x INT DEFAULT rand()": InvalidStatement,
    "ADD COLUMN x INT DEFAULT 1, 2": InvalidInput,
    f"ADD COLUMN x INT DEFAULT {'(' * 3000}1{')' * 3000}": InvalidStatement,
    f"ADD COLUMN x {'ARRAY<' * 3000}INT{'>' * 3000}": InvalidInput,
    "ADD COLUMN x INT DEFAULT 'x'": InvalidInput,
    "ADD COLUMN x INT FIRST AFTER id": InvalidInput,
    "ADD COLUMN x.y INT": UnknownColumn,
    "ADD COLUMNS (x INT": InvalidStatement,
    "ADD COLUMN x INT DEFAULT ?": InvalidStatement,
    "DROP COLUMN nothing": UnknownColumn,
    "DROP COLUMN at": InvalidInput,
    "RENAME COLUMN id": InvalidStatement,
    "RENAME COLUMN id TO client": InvalidInput,
    "ALTER COLUMN id TYPE INT": InvalidInput,
    "ALTER COLUMN at DROP NOT NULL": InvalidInput,
    "SET TBLPROPERTIES ('owner')": InvalidStatement,
    "SET LOCATION '/elsewhere'": InvalidStatement,
    "DROP PARTITION (day = 1)": InvalidStatement,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_one_version(lake, form):
    before = lake.head
    commit = lake.sql(f"ALTER TABLE trips {form}")
    assert lake.table("trips").schema.names[:4] == FORMS[form]
    assert (lake.head - before, commit is None) == ((0, True) if "nothing" in form else (1, False))
    assert len(rows_of(lake, "SELECT * FROM trips")) == 4


def test_what_is_no_form_changes_nothing(lake):
    before = lake.head, lake.table("trips").schema
    for text, error in BAD.items():
        with pytest.raises(error):
            lake.sql(f"ALTER TABLE trips {text}")
    for name in ("nothing", "main.trips"):
        with pytest.raises(TableNotFound, match=name):
            lake.sql(f"ALTER TABLE {name} ADD COLUMN x INT")
    lake.sql("CREATE VIEW cheap AS SELECT * FROM trips")
    with pytest.raises(InvalidStatement, match="a view"):
        lake.sql("ALTER TABLE default.cheap ADD COLUMN x INT")
    lake.sql("DROP VIEW cheap")
    before = lake.head, before[1]
    assert (lake.head, lake.table("trips").schema) == before


def test_comments_are_set_and_removed(lake):
    commit = lake.sql("COMMENT ON TABLE default.trips IS 'it''s all trips'")
    assert (commit.version, lake.table("trips").properties["comment"]) == (lake.head, "it's all trips")
    lake.sql("COMMENT ON COLUMN trips.PRICE IS 'in euros'")
    lake.sql("comment on column default.trips.`seats free` is 'at the end'")
    described = dict(rows_of(lake, "SELECT column_name, comment FROM information_schema.columns WHERE comment > ''"))
    assert described == {"price": "in euros", "seats free": "at the end"}
    lake.sql("COMMENT ON COLUMN trips.price IS NULL")
    lake.sql("COMMENT ON TABLE trips IS NULL")
    assert lake.table("trips").properties == {}
    lake.sql("CREATE VIEW dear (a) AS SELECT id FROM trips")
    for kind in ("VIEW", "TABLE"):
        lake.sql(f"COMMENT ON {kind} dear IS 'a {kind}'")
        assert rows_of(lake, "SELECT table_name, comment FROM information_schema.views") == [("dear", f"a {kind}")]
    assert rows_of(lake, "SELECT a FROM dear WHERE a = 1") == [(1,)]


@pytest.mark.parametrize(
    "text",
    ["", "TABLE trips", "TABLE trips IS x", "TABLE trips IS 'x' 'y'", "TABLE trips IS ?", "TABLE nothing IS 'x'",
     "COLUMN trips IS 'x'", "COLUMN trips.nothing IS 'x'", "COLUMN dear.id IS 'x'", "SCHEMA default IS 'x'"],
)  # fmt: skip
def test_comments_on_nothing_are_refused(lake, text):
    lake.sql("CREATE VIEW dear AS SELECT id FROM trips")
    before = lake.head
    with pytest.raises((InvalidInput, TableNotFound)):
        lake.sql(f"COMMENT ON {text}")
    assert lake.head == before


def test_a_view_gets_another_query(lake):
    lake.sql("CREATE VIEW dear (a) COMMENT 'kept' AS SELECT id FROM trips")
    before = lake.head
    lake.sql("ALTER VIEW default.DEAR AS SELECT price, client FROM trips WHERE price > 1.5;")
    assert rows_of(lake, "SELECT * FROM dear") == [(2.0, "it's")]
    assert rows_of(lake, "SELECT comment FROM information_schema.views") == [("kept",)]
    assert rows_of(lake, "SELECT max(a) FROM dear", as_of=before) == [(4,)]
    before = lake.head
    for text in ("", "dear", "dear AS", "dear AS SELECT a FROM dear", "dear RENAME TO d", "trips AS SELECT 1 AS a",
                 "dear AS SELECT ? AS a", "dear AS DELETE FROM trips", "nothing AS SELECT 1 AS a"):  # fmt: skip
        with pytest.raises((InvalidInput, TableNotFound)):
            lake.sql(f"ALTER VIEW {text}")
    assert lake.head == before


def test_a_table_gets_another_name(lake):
    assert lake.sql("ALTER TABLE default.trips RENAME TO rides") is None
    assert "rides" in lake.tables()


def test_each_mention_of_a_table_has_the_columns_of_its_version(lake):
    before = lake.head
    lake.sql("ALTER TABLE trips RENAME COLUMN client TO who")
    lake.sql("ALTER TABLE trips ADD COLUMN client INT DEFAULT 7")
    text = "SELECT client FROM trips WHERE id = 1"
    for _ in range(2):  # the second time it is remembered
        assert rows_of(lake, text) == [(7,)]
        assert rows_of(lake, text, as_of=before) == [("UA",)]
    joined = (
        f"SELECT n.who, o.client, n.client FROM trips n JOIN trips VERSION AS OF {before} o USING (id) WHERE id = 1"
    )
    assert rows_of(lake, joined) == [("UA", "UA", 7)]
    with pytest.raises(InvalidInput, match="who"):
        lake.sql("SELECT who FROM trips", as_of=before)


def test_inserts_give_columns_that_they_do_not_name_their_default(lake):
    lake.sql("ALTER TABLE trips ADD COLUMN gate STRING DEFAULT 'A1'")
    lake.sql("ALTER TABLE trips ADD COLUMN since DATE DEFAULT DATE '2013-01-05'")
    lake.sql("INSERT INTO trips (at, id) VALUES ('2013-03-01', 5)")
    lake.sql("INSERT INTO trips (at, id, gate) SELECT at, 6, NULL FROM trips WHERE id = 5")
    lake.sql(
        "MERGE INTO trips USING (SELECT TIMESTAMP '2013-03-02' AS at, 7 AS id) AS s ON trips.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (at, id) VALUES (s.at, s.id)"
    )
    assert rows_of(lake, "SELECT id, gate, since FROM trips WHERE id > 3 ORDER BY id") == [
        (4, "A1", date(2013, 1, 5)), (5, "A1", date(2013, 1, 5)), (6, None, date(2013, 1, 5)),
        (7, "A1", date(2013, 1, 5)),
    ]  # fmt: skip


def test_views_and_changes_follow_columns_or_say_which_is_gone(lake):
    lake.sql("CREATE VIEW dear AS SELECT id, client FROM trips WHERE price > 1")
    lake.sql("ALTER TABLE trips ADD COLUMN gate STRING DEFAULT 'A1'")
    assert len(rows_of(lake, "SELECT * FROM dear")) == 2
    assert set(rows_of(lake, "SELECT gate FROM trips.changes WHERE _commit_version < 5")) == {("A1",)}
    lake.sql("ALTER TABLE trips RENAME COLUMN client TO who")
    with pytest.raises(BrokenView, match="client"):
        lake.sql("SELECT * FROM dear")
    lake.sql("CREATE VIEW steps AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) "
             "SELECT n FROM r")  # fmt: skip
    assert rows_of(lake, "SELECT sum(n) FROM steps") == [(6,)]
    with pytest.raises(InvalidStatement, match="sample"):
        lake.sql("SELECT * FROM steps TABLESAMPLE (1 ROWS) REPEATABLE (1)")
    assert rows_of(lake, "SELECT * FROM (SELECT n, n AS k FROM steps) PIVOT (sum(n) FOR k IN (1, 2))") == [(1, 2)]


def test_history_shows_what_was_altered(lake):
    lake.sql("ALTER TABLE trips DROP COLUMN price")
    assert [row["operation"] for row in lake.sql("DESCRIBE HISTORY trips").to_pylist()] == ["alter", "append"]
    assert rows_of(lake, "SELECT message FROM trips.history WHERE operation = 'alter'") == [
        ("ALTER TABLE trips DROP COLUMN price",)
    ]
