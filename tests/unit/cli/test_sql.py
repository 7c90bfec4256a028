"""The command that runs SQL."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_sql_prints_a_table_or_json(run: Run, trips: Path) -> None:
    ran = run("sql", "SELECT client, count(*) AS n, max(at) AS last FROM trips GROUP BY client ORDER BY 1")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split() for line in ran.out.splitlines() if line.strip()[:1].isdigit()] == [
        ["1", "1", "2013-01-05", "07:00"],
        ["77", "2", "2013-01-07", "01:02:03.500000"],
    ]
    found = json.loads(run("sql", "--json", "SELECT client, price, at FROM trips WHERE client = 1").out)
    assert found == {
        "columns": ["client", "price", "at"],
        "rows": [[1, 2.5, "2013-01-05T07:00:00+00:00"]],
        "more": False,
    }


def test_sql_prints_values_as_they_are(run: Run, trips: Path) -> None:
    out = run("sql", "SELECT 1234567 AS n, 'a\\u001b[31mb' AS s, NULL AS nothing, '[bold]x' AS `[red]m`").out
    assert "1234567" in out
    assert "\x1b" not in out
    assert "[bold]x" in out
    assert "[red]m" in out


def test_sql_prints_what_lies_beyond_the_calendar(run: Run, trips: Path) -> None:
    statement = "SELECT DATE '9999-12-31' + 1 AS day, TIMESTAMP '9999-12-31 23:00:00' + INTERVAL 2 HOURS AS at"
    assert "10000-01-01" in run("sql", statement).out
    assert json.loads(run("sql", "--json", statement).out)["rows"] == [
        ["10000-01-01", "10000-01-01T01:00:00.000000+00:00"]
    ]


def test_sql_says_where_it_stops(run: Run, trips: Path) -> None:
    ran = run("sql", "SELECT client FROM trips ORDER BY client", "--limit", "2")
    assert ran.out.endswith("the first 2 rows; --limit shows more\n")
    assert json.loads(run("sql", "--json", "-n", "2", "SELECT client FROM trips").out)["more"] is True


def test_sql_changes_tables_and_says_what_came_of_it(run: Run, trips: Path) -> None:
    assert (
        run("sql", "INSERT INTO trips (at, client) VALUES ('2014-01-01', 5)").out
        == "version 3: append trips: rows +1 -0\n"
    )
    assert json.loads(run("sql", "--json", "INSERT INTO trips (at) VALUES ('2014-01-01')").out)["version"] == 4
    assert json.loads(run("sql", "--json", "SELECT count(*) FROM trips", "--as-of", "2").out)["rows"] == [[3]]
    assert (
        run("sql", "CREATE TABLE t (ts TIMESTAMP) PARTITIONED BY (days(ts))").out
        == "<table t by day of ts, 1 columns>\n"
    )
    assert "trips" in run("sql", "SHOW TABLES").out
    assert run("sql", "DROP TABLE t").out == "done\n"
    assert json.loads(run("sql", "--json", "DROP TABLE IF EXISTS t").out) == {"result": None}


def test_sql_explains_what_would_be_opened(run: Run, trips: Path) -> None:
    out = run("sql", "EXPLAIN SELECT client FROM trips WHERE at >= '2013-01-07'").out
    assert out.startswith("trips at version 2 as lake_relation_0: 1 of 2 segments")
    assert "explain" not in json.loads(run("sql", "--json", "EXPLAIN SELECT client FROM trips").out)


def test_sql_reads_a_statement_from_standard_input(run: Run, trips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one\n-- and no more\n;\n"))
    assert json.loads(run("sql", "--json", "-").out)["rows"] == [[1]]


def test_sql_that_is_refused_fails_in_one_line(run: Run, trips: Path) -> None:
    ran = run("sql", "SELECT reflect('java.lang.System', 'exit')")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("lakehouse: this function is not allowed")
    assert ran.err.count("\n") == 1
    ran = run("sql", "--json", "SELECT *\nFROM nowhere")
    assert json.loads(ran.err)["error"] == "table_not_found"
    assert run("sql", "SELECT CAST(name AS INT) FROM trips").code == 1
    assert run("sql", "SELECT 1", "--engine", "sqlite").code == 2


def test_sql_takes_values_by_name(run: Run, trips: Path) -> None:
    text = "SELECT client FROM trips WHERE client = :c AND :text = '1' AND :none IS NULL"
    ran = run("sql", "--json", text, "--arg", "c=1", "--arg", 'text="1"', "--arg", "none=null")
    assert json.loads(ran.out)["rows"] == [[1]]
    ran = run("sql", "SELECT :t AS t", "--arg", "t='; DROP TABLE trips")
    assert "'; DROP TABLE trips" in ran.out
    assert run("sql", "DELETE FROM trips WHERE client = :c", "--arg", "c=1").out.endswith("-1\n")
    for wrong in (["--arg", "c"], ["--arg", "c=1", "--arg", "c=2"], ["--arg", "d=1"], []):
        assert run("sql", "SELECT :c", *wrong).code == 1


def test_sql_prints_what_is_told_of_tables(run: Run, trips: Path) -> None:
    assert run("sql", "USE default").out == "done\n"
    assert json.loads(run("sql", "--json", "SHOW SCHEMAS").out)["rows"] == [["default"]]
    assert "client" in run("sql", "SHOW COLUMNS IN default.trips").out
    assert "CREATE TABLE `trips`" in json.loads(run("sql", "--json", "SHOW CREATE TABLE trips").out)["rows"][0][0]
    assert run("sql", "SHOW COLUMNS IN gone").code == 1
    assert run("sql", "INSERT OVERWRITE trips (at, client) VALUES ('2014-01-01', 5)").out.endswith("rows +1 -3\n")
    assert run("sql", "TRUNCATE TABLE trips").out.endswith(": replace trips: rows +0 -1\n")


def test_sql_runs_several_changes_as_one(run: Run, trips: Path) -> None:
    text = "BEGIN; DELETE FROM trips WHERE client = 1; INSERT INTO trips (at, client) VALUES ('2014-01-01', :c); COMMIT"
    ran = run("sql", text, "--arg", "c=5")
    assert (ran.code, ran.out.split(": ")[1:]) == (0, ["transaction trips", "rows +1 -1\n"])
    ran = run("sql", "DELETE FROM trips; DELETE FROM trips")
    assert (ran.code, ran.err.count("BEGIN; ...; COMMIT")) == (1, 1)


def test_sql_keeps_limits_or_says_why_not(run: Run, trips: Path) -> None:
    text = "SELECT client FROM trips ORDER BY client"
    assert run("sql", text, "--rows", "3", "--seconds", "60", "--memory", "1GB").out.splitlines()[-1].strip() == "77"
    ran = run("sql", text, "--rows", "2")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("lakehouse: the result has more rows than its limit")
    for wrong in (["--rows", "0"], ["--seconds", "-1"], ["--memory", "1MB"], ["--memory", "much"]):
        assert run("sql", text, *wrong).code == 1
    for limit in (["--rows", "9"], ["--seconds", "9"], ["--memory", "1GB"]):
        assert "limits are for queries" in run("sql", "DELETE FROM trips", *limit).err
        assert "in process only" in run("sql", text, "--engine", "spark", *limit).err
    assert json.loads(run("sql", "--json", "SELECT count(*) FROM trips").out)["rows"] == [[3]]


def test_sql_leaves_to_spark_what_is_sparks_alone(run: Run, trips: Path) -> None:
    text = "EXPLAIN SELECT initcap(name) FROM trips"
    assert "\nspark: SELECT" in run("sql", text).out
    for chosen in (["--engine", "duckdb"], ["--seconds", "9"]):
        assert "only Spark" in run("sql", text, *chosen).err
