"""What queries give, in process; Spark gives the same, see tests/spark/test_sql.py."""

from datetime import UTC, datetime
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, TableNotFound, VersionNotFound
from tests.unit.sql.conftest import rows_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id FROM trips ORDER BY id DESC LIMIT 2", [(4,), (3,)]),
        ("SELECT ID, Client FROM TRIPS WHERE Id = 1", [(1, "UA")]),
        ("SELECT count(*) FROM trips", [(4,)]),
        ("SELECT id FROM trips ORDER BY id LIMIT ALL OFFSET 2", [(3,), (4,)]),
        ("SELECT sum(id), avg(price), count(DISTINCT client) FROM trips", [(10, -0.5 / 3, 2)]),
        ("SELECT `seats free` FROM trips WHERE `seats free` > 3", [(7,)]),
        ("SELECT client FROM trips WHERE client = 'it''s' AND client LIKE 'it\\'%'", [("it's",)]),
        ("SELECT id FROM trips ORDER BY client, id", [(3,), (1,), (4,), (2,)]),
        ("SELECT id FROM trips WHERE client IS NULL", [(3,)]),
        ("SELECT id FROM trips WHERE at >= '2013-01-05 23:00' AND at < DATE '2013-01-08' ORDER BY id", [(2,), (3,)]),
        ("SELECT id FROM trips WHERE at = '2013-01-05T23:00:00Z'", [(2,)]),
        ("SELECT CASE WHEN price < 0 THEN 'back' ELSE 'out' END AS way FROM trips WHERE id = 4", [("back",)]),
        ("SELECT id + 1 AS next, next + 1 AS after FROM trips WHERE id = 1", [(2, 3)]),
        ("SELECT t.id FROM trips t JOIN clients c ON t.client = c.name AND c.score > 5 ORDER BY 1", [(1,), (4,)]),
        (
            "SELECT c.name, t.id FROM clients c LEFT JOIN trips t ON t.client = c.name WHERE t.id IS NULL",
            [("B6", None)],
        ),
        ("SELECT name FROM clients LEFT SEMI JOIN trips ON client = name", [("UA",)]),
        ("SELECT name FROM clients LEFT ANTI JOIN trips ON client = name", [("B6",)]),
        ("SELECT id FROM trips WHERE client IN (SELECT name FROM clients) ORDER BY id", [(1,), (4,)]),
        ("SELECT name FROM clients c WHERE EXISTS (SELECT 1 FROM trips WHERE client = c.name)", [("UA",)]),
        ("SELECT id, (SELECT max(score) FROM clients WHERE name = client) FROM trips WHERE id = 1", [(1, 10)]),
        ("SELECT id FROM trips WHERE id < 2 UNION ALL SELECT score FROM clients ORDER BY 1", [(1,), (10,), (20,)]),
        ("SELECT client FROM trips INTERSECT SELECT name FROM clients", [("UA",)]),
        ("WITH trips AS (SELECT name FROM clients) SELECT * FROM trips ORDER BY name", [("B6",), ("UA",)]),
        ("WITH trips AS (SELECT id FROM trips WHERE id > 3) SELECT * FROM trips", [(4,)]),
        (
            "WITH a AS (SELECT 1 AS x), b AS (WITH a AS (SELECT x + 1 AS x FROM a) SELECT * FROM a) SELECT * FROM b",
            [(2,)],
        ),
        ("WITH c(n, s) AS (SELECT name, score FROM clients) SELECT s FROM c WHERE c.n = 'B6'", [(20,)]),
        ("SELECT * FROM clients AS c(a, b, d) WHERE b = 'UA'", [(datetime(2012, 1, 1, tzinfo=UTC), "UA", 10)]),
        ("SELECT * EXCEPT (at, price, day, `seats free`) FROM trips WHERE id = 1", [(1, "UA")]),
        (
            "SELECT c.* FROM trips t, clients c WHERE t.client = c.name AND t.id = 4",
            [(datetime(2012, 1, 1, tzinfo=UTC), "UA", 10)],
        ),
        (
            "SELECT id FROM trips QUALIFY row_number() OVER (PARTITION BY client ORDER BY id DESC) = 1 ORDER BY id",
            [(2,), (3,), (4,)],
        ),
        ("SELECT id, lag(id) OVER (ORDER BY id) FROM trips WHERE id < 3", [(1, None), (2, 1)]),
        (
            "SELECT hour(at), dayofweek(at), date(at) = DATE '2013-01-05', at + INTERVAL 1 DAY FROM trips WHERE id = 1",
            [(7, 7, True, datetime(2013, 1, 6, 7, tzinfo=UTC))],
        ),
        (
            "SELECT date_trunc('month', at) AS m, count(*) FROM trips GROUP BY 1 HAVING count(*) > 1",
            [(datetime(2013, 1, 1, tzinfo=UTC), 3)],
        ),
        ("SELECT CAST(price AS INT), CAST(2.7 AS INT), CAST('3' AS BIGINT) FROM trips WHERE id = 1", [(1, 2, 3)]),
        ("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(n, s) WHERE n = 2", [(2, "b")]),
        ("VALUES (1, 'a')", [(1, "a")]),
        ("FROM clients SELECT name WHERE score = 10", [("UA",)]),
        ("SELECT 'a;b', '-- c', \"d'q\" -- a comment; with a semicolon\n;", [("a;b", "-- c", "d'q")]),
        ("SELECT 1 AS `a ; b``c`", [(1,)]),
        ("SELECT 'ünï', '\\u00e4', '${env:HOME}', '{x}'", [("ünï", "ä", "${env:HOME}", "{x}")]),
        ("SELECT id FROM trips WHERE 1 = 0", []),
    ],
)
def test_a_query_gives(still_lake: lakehouse.Lake, text: str, expected: list[tuple[Any, ...]]) -> None:
    found = rows_of(still_lake, text)
    assert [pytest.approx(row) if any(isinstance(one, float) for one in row) else row for row in found] == expected


def test_columns_without_a_name_are_called_as_they_are_written(lake: lakehouse.Lake) -> None:
    found = lake.sql("SELECT id, id % 2, count(*) AS n FROM trips GROUP BY id", engine="duckdb")
    assert found.columns == ["id", "id % 2", "n"]


def test_the_day_of_today_is_never_a_column(lake: lakehouse.Lake) -> None:
    ((day, now),) = rows_of(lake, "SELECT current_date, current_timestamp() FROM trips LIMIT 1")
    assert day == now.date()
    lake.sql("CREATE TABLE odd (`current_date` INT, `current_timestamp` INT)")
    lake.sql("INSERT INTO odd VALUES (1, 2)")
    ((day, now, *held),) = rows_of(lake, "SELECT current_date(), now(), `current_date`, `current_timestamp` FROM odd")
    assert (day, held) == (now.date(), [1, 2])


def test_integer_sums_are_64_bits_wide_also_under_two_equal_names(lake: lakehouse.Lake) -> None:
    found = lake.sql("SELECT sum(id) AS s, sum(score) AS s FROM trips, clients", engine="duckdb").to_arrow_table()
    assert [str(kind) for kind in found.schema.types] == ["int64", "int64"]


def test_one_table_stands_at_two_versions_in_one_query(lake: lakehouse.Lake) -> None:
    before = lake.head
    lake.tag("before")
    lake.sql("INSERT INTO trips (at, id) VALUES ('2013-03-01', 5)")
    joined = "SELECT b.id FROM trips b LEFT ANTI JOIN trips {} a ON a.id = b.id"
    assert rows_of(lake, joined.format(f"VERSION AS OF {before}")) == [(5,)]
    assert rows_of(lake, joined.format("FOR VERSION AS OF 'before'")) == [(5,)]
    time = lake.log()[1].committed_at.isoformat()
    assert rows_of(lake, joined.format(f"TIMESTAMP AS OF '{time}'")) == [(5,)]
    assert rows_of(lake, "SELECT count(*) FROM trips", as_of="before") == [(4,)]
    assert rows_of(lake, f"SELECT count(*) FROM trips VERSION AS OF {lake.head}", as_of="before") == [(5,)]


def test_a_statement_sees_the_lake_as_it_was_when_it_began(lake: lakehouse.Lake) -> None:
    waiting = lake.sql("SELECT count(*) FROM trips, clients", engine="duckdb")
    lake.sql("INSERT INTO clients VALUES ('2014-01-01', 'DL', 1)")
    assert waiting.fetchall() == [(8,)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT * FROM nowhere", TableNotFound),
        ("SELECT * FROM lake.trips", TableNotFound),
        ("SELECT * FROM parquet.`/etc/passwd`", TableNotFound),
        ("SELECT * FROM `trips; DROP TABLE trips`", TableNotFound),
        ("SELECT * FROM information_schema.nothing", TableNotFound),
        (
            "SELECT * FROM (SELECT * FROM inner_only), (WITH inner_only AS (SELECT 1) SELECT * FROM inner_only)",
            TableNotFound,
        ),
        ("SELECT * FROM trips VERSION AS OF 99", VersionNotFound),
        ("SELECT * FROM trips VERSION AS OF 'no tag'", VersionNotFound),
        ("SELECT * FROM trips TIMESTAMP AS OF '1999-01-01'", VersionNotFound),
        ("SELECT * FROM trips TIMESTAMP AS OF 'yesterday'", InvalidInput),
        ("SELECT * FROM trips TIMESTAMP AS OF current_date()", InvalidInput),
        ("SELECT * FROM trips VERSION AS OF 1 + 1", InvalidInput),
        ("SELECT * FROM trips VERSION AS OF 1.5", InvalidInput),
        ("WITH c AS (SELECT 1) SELECT * FROM c VERSION AS OF 1", InvalidInput),
        ("SELECT nothing FROM trips", InvalidInput),
        ("SELECT id FROM trips a JOIN trips b ON a.id = b.id", InvalidInput),
        ("SELECT id FROM", InvalidInput),
        ("SELECT 'open", InvalidInput),
        ("", InvalidInput),
        (";", InvalidInput),
        (7, InvalidInput),
    ],
)
def test_a_query_that_cannot_be_is_refused(still_lake: lakehouse.Lake, text: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        still_lake.sql(text, engine="duckdb")


def test_an_error_of_syntax_names_its_place(lake: lakehouse.Lake) -> None:
    with pytest.raises(InvalidInput) as caught:
        lake.sql("SELECT id\nFROM trips\nWHERE id ==== 1", engine="duckdb")
    assert caught.value.line == 3


def test_a_row_that_breaks_a_query_is_reported_as_bad_input(lake: lakehouse.Lake) -> None:
    with pytest.raises(InvalidInput, match="Could not convert"):
        lake.sql("INSERT INTO clients SELECT at, client, CAST(client AS INT) FROM trips", engine="duckdb")


def test_an_unknown_engine_is_refused(lake: lakehouse.Lake) -> None:
    with pytest.raises(InvalidInput, match="no such engine"):
        lake.sql("SELECT 1", engine="sqlite")  # type: ignore[arg-type]


def test_a_damaged_file_is_named(lake: lakehouse.Lake) -> None:
    path = lake.warehouse / lake.table("Clients").segments()[0].path
    path.write_bytes(b"PAR1")
    with pytest.raises(lakehouse.SegmentUnreadable, match=path.name):
        lake.sql("SELECT * FROM clients", engine="duckdb")


def test_a_relation_can_reach_no_file_but_the_warehouses(lake: lakehouse.Lake, tmp_path: Any) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    found = lake.sql("SELECT 1 AS x FROM trips", engine="duckdb")
    with pytest.raises(Exception, match="file system operations are disabled"):
        found.query("it", f"SELECT * FROM read_csv('{tmp_path}/secret.csv')").fetchall()
    with pytest.raises(Exception, match="configuration"):
        found.query("it", "SET enable_external_access = true")


def test_totals_say_what_they_are_of_in_windows_and_in_the_order_too(still_lake: lakehouse.Lake) -> None:
    text = """SELECT client, grouping(client) AS g, count(*) AS n,
        rank() OVER (PARTITION BY grouping(client) ORDER BY count(*) DESC) AS place
        FROM trips GROUP BY {} ORDER BY g DESC, CASE WHEN g = 0 THEN client END"""
    for group in ("ROLLUP (client)", "CUBE (client)", "client WITH ROLLUP", "client GROUPING SETS ((client), ())"):
        assert rows_of(still_lake, text.format(group)) == [
            (None, 1, 4, 1), (None, 0, 1, 2), ("UA", 0, 2, 1), ("it's", 0, 1, 2),
        ]  # fmt: skip


def test_rows_of_values_are_compared_value_by_value(still_lake: lakehouse.Lake) -> None:
    kept = "SELECT id FROM trips WHERE {} ORDER BY id"
    assert rows_of(still_lake, kept.format("(client, id) = ('UA', 4)")) == [(4,)]
    assert rows_of(still_lake, kept.format("(client, id) IN (('UA', 1), ('UA', 2), ('it''s', 2))")) == [(1,), (2,)]
    assert rows_of(still_lake, kept.format("(id, client) IN (SELECT 1, name FROM clients)")) == [(1,)]
    assert rows_of(still_lake, kept.format("(id, client) NOT IN (SELECT 1, name FROM clients)")) == [(2,), (3,), (4,)]


def test_texts_are_taken_apart_and_put_together(still_lake: lakehouse.Lake) -> None:
    host = r"regexp_replace(u, '^https?://(?:www\\.)?([^/]+)/.*$', '$1')"
    urls = "VALUES ('http://www.a.b/x'), ('https://a.b/'), ('c') AS v(u)"
    text = f"SELECT {host} AS k, count(*) FROM {urls} GROUP BY k ORDER BY k"
    assert rows_of(still_lake, text) == [("a.b", 2), ("c", 1)]
    text = "SELECT transform(filter(split('b,,a', ','), e -> e <> ''), (e, place) -> concat(e, place))"
    assert rows_of(still_lake, text) == [(["b0", "a1"],)]
    text = "SELECT listagg(client, '; ') WITHIN GROUP (ORDER BY id DESC) FROM trips"
    assert rows_of(still_lake, text) == [("UA; it's; UA",)]


def test_lists_leave_out_nulls_that_no_column_gives(still_lake: lakehouse.Lake) -> None:
    for value in ("nullif(1, 1)", "CAST(NULL AS BIGINT)", "CASE WHEN FALSE THEN 2 END"):
        assert rows_of(still_lake, f"SELECT collect_list({value}), array_agg({value}) FROM trips") == [([], [])]
    text = "SELECT sort_array(collect_list(c = 1 OR d = 1)) FROM VALUES (1, NULL), (2, NULL), (2, 1) v(c, d)"
    assert rows_of(still_lake, text) == [([True, True],)]


_HALVES = "(SELECT * FROM VALUES (1), (2), (3) v(a)) x {} JOIN (SELECT * FROM VALUES (2), (3), (4) v(b)) y ON a = b"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT a, b FROM {full} ORDER BY a, b LIMIT 2", [(None, 4), (1, None)]),
        ("SELECT a, b FROM {full} ORDER BY 1, 2 LIMIT 2 OFFSET 1", [(1, None), (2, 2)]),
        ("SELECT a, b FROM {full} ORDER BY a DESC OFFSET 1", [(2, 2), (1, None), (None, 4)]),
        ("SELECT a AS z, b FROM {right} ORDER BY z", [(None, 4), (2, 2), (3, 3)]),
        ("SELECT * FROM (SELECT a FROM {full} ORDER BY a) LIMIT 1", [(None,)]),
        ("(SELECT a FROM {full}) ORDER BY a DESC LIMIT 2", [(3,), (2,)]),
        ("SELECT a FROM {full} UNION ALL SELECT 9 ORDER BY a DESC LIMIT 2", [(9,), (3,)]),
        ("SELECT a FROM {full} UNION SELECT 9 ORDER BY 1 OFFSET 3", [(3,), (9,)]),
        ("SELECT count(*) FROM (SELECT a FROM {right} UNION ALL SELECT 9 ORDER BY 1 LIMIT 3)", [(3,)]),
        ("WITH q AS (SELECT a FROM {full} ORDER BY a LIMIT 3) SELECT max(a) FROM q", [(2,)]),
        ("SELECT DISTINCT a FROM {full} ORDER BY a LIMIT 2", [(None,), (1,)]),
        ("SELECT a, count(*) FROM {full} GROUP BY a ORDER BY a LIMIT 2", [(None, 1), (1, 1)]),
        ("SELECT c, (SELECT max(a) FROM {full} WHERE a < c) FROM VALUES (3) w(c) ORDER BY 1 LIMIT 1", [(3, 2)]),
        ("SELECT sum(z) FROM VALUES (1), (3) w(c), LATERAL (SELECT a + c AS z FROM {full} ORDER BY a LIMIT 2)", [(6,)]),
    ],
)
def test_first_rows_of_a_join_that_fills_its_left_side(
    still_lake: lakehouse.Lake, text: str, rows: list[object]
) -> None:
    text = text.format(full=_HALVES.format("FULL"), right=_HALVES.format("RIGHT"))
    assert rows_of(still_lake, text) == rows
    assert still_lake.query(text, most_rows=50).rows.num_rows == len(rows)


def test_no_left_row_is_left_unread_for_a_limit_where_right_rows_would_miss_it(still_lake: lakehouse.Lake) -> None:
    for text in (
        "SELECT a.id FROM trips a FULL JOIN trips b ON a.id = b.id ORDER BY a.id",
        "SELECT a.id FROM trips a RIGHT JOIN trips b ON a.id = b.id UNION ALL SELECT 1 ORDER BY 1",
    ):
        for limit in ("", " LIMIT 1", " LIMIT 1 OFFSET 1"):
            plan = still_lake.sql(f"EXPLAIN SELECT * FROM ({text}{limit}) LIMIT 1", engine="duckdb")
            assert "Dynamic Filter" not in plan
    assert "Dynamic Filter" in still_lake.sql("EXPLAIN SELECT id FROM trips ORDER BY id LIMIT 1", engine="duckdb")
