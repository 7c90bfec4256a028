"""Statements that Spark runs: the same rows as in process, on any session, and nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from tests.unit.sql.conftest import ROWS, TRIPS

EXPRESSIONS = (
    "id", "price", "client", "day", "at", "`seats free`", "id / 2", "id % 2", "-id div 2", "price * 2.5", "abs(price)",
    "round(price, 0)", "ceil(price)", "floor(price)", "sqrt(abs(price))", "ln(price)", "log10(price)", "log(2, price)",
    "power(price, 2)", "greatest(id, `seats free`)", "least(id, `seats free`)", "sign(price)", "isnan(price)",
    "coalesce(price, 0)", "nullif(id, 2)", "nvl(client, 'x')", "nvl2(client, 1, 2)", "if(id > 2, 'a', 'b')",
    "CASE id WHEN 1 THEN 'one' WHEN 2 THEN 'two' END", "isnull(client)", "isnotnull(client)", "client <=> NULL",
    "upper(client)", "lower(client)", "trim(client)", "substring(client, 1, 2)", "left(client, 1)", "right(client, 1)",
    "concat(client, 'x')", "concat_ws('-', client, 'x')", "client || 'x'", "length(client)",
    "replace(client, 'U', 'V')", "startswith(client, 'U')", "endswith(client, 'A')", "contains(client, 't')",
    "instr(client, 'A')", "reverse(client)", "client LIKE 'it\\'%'", "client ILIKE 'u%'",
    "client LIKE '%!%%' ESCAPE '!'", "client IN ('UA', 'x')", "id BETWEEN 2 AND 3", "client = 'UA' IS TRUE",
    "NOT client = 'UA'", "md5(client)", "year(at)", "quarter(at)", "month(at)", "day(at)", "dayofyear(at)",
    "dayofweek(at)", "weekofyear(at)", "hour(at)", "minute(at)", "second(at)", "date(at)", "to_date(at)",
    "date_trunc('hour', at)", "date_trunc('month', at)", "trunc(day, 'month')", "date_add(day, 3)", "date_sub(day, 3)",
    "datediff(day, DATE '2013-01-01')", "add_months(day, 1)", "last_day(day)", "date_format(at, 'yyyy-MM-dd HH:mm')",
    "extract(month FROM at)", "at + INTERVAL 1 DAY", "at - INTERVAL '2' HOUR", "unix_micros(at)",
    "make_date(2013, 1, CAST(id AS INT))", "at >= '2013-01-06'", "at < TIMESTAMP '2013-01-06 00:00:00'",
    "day = '2013-01-07'", "CAST(price AS INT)", "CAST(2.7 AS INT)", "CAST(-price AS BIGINT)", "CAST(id AS STRING)",
    "CAST(id AS DOUBLE)", "CAST('2013-01-05' AS DATE)", "TRY_CAST(client AS INT)",
    "'${env:HOME} {x} \\\\ it\\'s ünï \\t'", "X'00ff'", "r'raw\\n'", "1e3", "1.5D", "2L",
    "row_number() OVER (ORDER BY id)", "rank() OVER (PARTITION BY client ORDER BY id)",
    "lag(id) OVER (ORDER BY client, id)", "sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "ntile(2) OVER (ORDER BY id)", "first_value(id) OVER (ORDER BY client, id)", "size(array(1, 2))",
    "array_contains(array(1, 2), 1)", "array(5, 6)[1]", "pow(2, 3) + 1",
)  # fmt: skip
AGGREGATES = (
    "count(*)", "count(client)", "count(DISTINCT client)", "sum(id)", "sum(price)", "avg(price)", "min(at)",
    "max(client)", "stddev(price)", "var_pop(price)", "median(price)", "percentile(price, 0.25)",
    "approx_count_distinct(client)", "count_if(id > 2)", "max_by(client, price)", "min_by(id, price)",
    "bool_and(id > 0)", "every(id > 1)", "some(id > 3)", "count(*) FILTER (WHERE id > 1)", "corr(id, price)",
)  # fmt: skip
QUERIES = (
    "SELECT * FROM trips LEFT JOIN clients ON client = name AND score > 5 WHERE at >= '2013-01-05 08:00' ORDER BY id",
    "SELECT c.name, t.id FROM trips t FULL JOIN clients c ON t.client = c.name ORDER BY 1, 2",
    "SELECT client, count(*) AS n FROM trips GROUP BY client ORDER BY client",
    "SELECT client, day, sum(id) FROM trips GROUP BY ROLLUP (client, day) ORDER BY 1, 2, 3",
    "SELECT id FROM trips ORDER BY client DESC, id LIMIT 2 OFFSET 1",
    "WITH trips AS (SELECT id, day FROM trips WHERE id > 1) SELECT a.id FROM trips a JOIN trips USING (day) ORDER BY 1",
    "SELECT a.id, b.id FROM trips VERSION AS OF 3 a JOIN trips b ON a.id = b.id WHERE b.client = 'UA' ORDER BY 1",
    "SELECT id FROM trips WHERE client IN (SELECT name FROM clients) UNION SELECT score FROM clients ORDER BY 1",
    "SELECT name FROM clients c WHERE EXISTS (SELECT 1 FROM trips t WHERE t.client = c.name) ORDER BY 1",
    "SELECT id, (SELECT max(score) FROM clients WHERE name = client) AS m FROM trips ORDER BY id",
    "SELECT id FROM trips QUALIFY row_number() OVER (PARTITION BY client ORDER BY id DESC) = 1 ORDER BY id",
    "SELECT * EXCEPT (at, day) FROM trips WHERE `seats free` >= 0 ORDER BY id",
    "SELECT id + 1 AS next, next * 2 AS twice FROM trips ORDER BY id",
    "SELECT * FROM VALUES (1, 'a'), (2, NULL) AS v(n, s) ORDER BY n",
    "SELECT id FROM trips WHERE 1 = 0",
    "SELECT id, current_date = DATE(now()) FROM (SELECT id, 1 AS `current_date` FROM trips) ORDER BY id LIMIT ALL",
)


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    folder: Path = tmp_path_factory.mktemp("statements")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "{ware} house", spark=spark) as lake:
        lake.sql(TRIPS)
        lake.sql("CREATE TABLE Clients (since TIMESTAMP, name STRING, score INT) PARTITIONED BY (years(since))")
        lake.sql(ROWS)
        lake.sql("INSERT INTO clients VALUES ('2012-01-01', 'UA', 10), ('2013-01-01', 'B6', 20)")
        yield lake


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(request: pytest.FixtureRequest, spark: Any) -> Iterator[str]:
    """A session's own settings, which are not to matter."""
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def both(lake: lakehouse.Lake, text: str) -> tuple[list[Any], list[Any]]:
    spark, duckdb = lake.sql(text, engine="spark").toArrow(), lake.sql(text, engine="duckdb").to_arrow_table()
    return [column.to_pylist() for column in spark.columns], [column.to_pylist() for column in duckdb.columns]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return bool(other == pytest.approx(one, nan_ok=True, rel=1e-12))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return bool(
        one == other
        or (one is not None and other is not None and type(one) is not type(other) and float(one) == float(other))
    )


def differences(lake: lakehouse.Lake, expressions: tuple[str, ...], text: str) -> list[Any]:
    listed = ", ".join(f"{one} AS c{place}" for place, one in enumerate(expressions))
    spark, duckdb = both(lake, text.format(listed))
    return [
        (expression, *values)
        for expression, *values in zip(expressions, spark, duckdb, strict=True)
        if not same(*values)
    ]


def test_functions_and_operators_mean_the_same_in_both_engines(lake: lakehouse.Lake, zone: str) -> None:
    assert differences(lake, EXPRESSIONS, "SELECT {} FROM trips ORDER BY id") == []
    assert differences(lake, AGGREGATES, "SELECT {} FROM trips WHERE id < 3") == []


@pytest.mark.parametrize("text", QUERIES)
def test_queries_give_the_same_rows_in_both_engines(lake: lakehouse.Lake, text: str) -> None:
    spark, duckdb = both(lake, text)
    assert same(spark, duckdb), (spark, duckdb)


def test_a_frame_is_lazy_reads_its_version_and_leaves_no_view_or_setting(
    lake: lakehouse.Lake, spark: Any, zone: str
) -> None:
    before = spark.catalog.listTables()
    frame = lake.sql("SELECT count(*) AS n, max(hour(at)) AS h FROM trips WHERE at < '2013-01-06'", engine="spark")
    assert spark.catalog.listTables() == before
    assert spark.conf.get("spark.sql.session.timeZone") == zone
    lake.sql("INSERT INTO trips (at, id) VALUES ('2013-01-05 23:59', 9)")
    assert [tuple(row) for row in frame.collect()] == [(2, 23)]
    lake.table("trips").restore(3)


def test_a_condition_is_tried_once_on_each_row(lake: lakehouse.Lake) -> None:
    frame = lake.sql("SELECT id FROM trips WHERE client NOT LIKE '%U%A%'", engine="spark")
    assert frame._jdf.queryExecution().optimizedPlan().toString().count("LIKE") == 1
    assert [tuple(row) for row in frame.collect()] == [(2,)]


def test_a_frame_is_inserted_by_spark(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE copies (ts TIMESTAMP, id BIGINT, note STRING) PARTITIONED BY (days(ts))")
    assert lake.sql("INSERT INTO copies (id, ts) SELECT id * 10, at FROM trips", engine="spark").rows_added == 4
    assert lake.sql("INSERT INTO copies SELECT *  FROM copies", engine="spark").rows_added == 4
    found = lake.sql(
        "SELECT id, count(*) FROM copies WHERE note IS NULL GROUP BY id ORDER BY id", engine="spark"
    ).collect()
    assert [tuple(row) for row in found] == [(10, 2), (20, 2), (30, 2), (40, 2)]


def test_a_frame_is_merged(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE merged (ts TIMESTAMP, id BIGINT, note STRING) PARTITIONED BY (days(ts))")
    lake.sql("INSERT INTO merged VALUES ('2013-01-05', 1, 'old'), ('2013-01-05', 7, 'old')")
    lake.sql(
        """
        MERGE INTO merged m USING (SELECT at, id, client FROM trips WHERE id < 3) AS s ON m.id = s.id
        WHEN MATCHED THEN UPDATE SET note = s.client WHEN NOT MATCHED THEN INSERT (ts, id) VALUES (at, s.id)
    """,
        engine="spark",
    )
    lake.sql("DELETE FROM merged WHERE id = 7")
    found = lake.sql("SELECT id, note FROM merged ORDER BY id", engine="spark").collect()
    assert [tuple(row) for row in found] == [(1, "UA"), (2, None)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT nothing FROM trips",
        "SELECT upper(id, 1) FROM trips",
        "SELECT sum(id), client FROM trips",
        "INSERT INTO clients SELECT 1",
    ],
)
def test_what_spark_refuses_is_reported_as_bad_input(lake: lakehouse.Lake, text: str) -> None:
    with pytest.raises(InvalidInput):
        lake.sql(text, engine="spark")


def test_names_are_the_lakes_tables_even_where_the_session_has_views_of_the_name(
    lake: lakehouse.Lake, spark: Any
) -> None:
    spark.sql("SELECT 666 AS id").createOrReplaceTempView("trips")
    spark.sql("SELECT 666 AS id").createOrReplaceTempView("secret")
    try:
        assert lake.sql("SELECT max(id) FROM trips", engine="spark").collect()[0][0] == 4
        with pytest.raises(lakehouse.TableNotFound):
            lake.sql("SELECT * FROM secret", engine="spark")
    finally:
        spark.catalog.dropTempView("trips")
        spark.catalog.dropTempView("secret")


def test_no_setting_or_environment_reaches_a_frames_text(lake: lakehouse.Lake) -> None:
    assert lake.sql("SELECT '${env:PATH}', '${spark.app.name}', \"${x}\"", engine="spark").collect()[0] == (
        "${env:PATH}",
        "${spark.app.name}",
        "${x}",
    )


def test_views_and_changes_give_both_engines_the_same_rows(lake: lakehouse.Lake) -> None:
    """At the end the views are dropped: the lake is this module's."""
    lake.sql("CREATE VIEW ua (number, price) COMMENT 'theirs' AS SELECT id, price FROM trips WHERE client = 'UA'")
    lake.sql("CREATE VIEW counted (client, n) AS SELECT client, count(*) FROM trips GROUP BY client")
    lake.sql(
        "CREATE VIEW above AS WITH trips AS (SELECT 2 AS id) SELECT u.* FROM ua u, trips WHERE u.number >= trips.id"
    )
    lake.sql("CREATE VIEW spark_only AS SELECT initcap(client) AS name, id FROM trips")
    head = lake.head
    queries = (
        "SELECT * FROM ua WHERE price > 0",
        "WITH trips AS (SELECT 9 AS id) SELECT a.*, trips.id FROM ua a, trips ORDER BY number",
        "SELECT c.n, a.number FROM counted c JOIN above a ON c.client = 'UA' ORDER BY number",
        f"SELECT number FROM above VERSION AS OF {head} ORDER BY number",
        "SELECT id, _change_type FROM trips.changes WHERE _commit_version BETWEEN 2 AND 4 AND id > 1 ORDER BY id",
        "SELECT * FROM trips.changes ORDER BY id, _commit_version, _change_type",
    )
    try:
        for text in queries:
            found, in_process = both(lake, text)
            assert found[0]
            assert found == in_process, text
        assert [row.name for row in lake.sql("SELECT name FROM spark_only WHERE id = 1").collect()] == ["Ua"]
        told = lake.sql("DESCRIBE spark_only").to_pydict()
        assert (told["column"], told["type"]) == (["name", "id"], ["STRING", "BIGINT"])
        with pytest.raises(InvalidInput, match=r"only Spark calculates this.*initcap"):
            lake.sql("SELECT * FROM spark_only", engine="duckdb")
    finally:
        for name in ("ua", "counted", "above", "spark_only"):
            lake.drop_view(name)
