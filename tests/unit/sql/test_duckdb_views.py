"""`lake.duckdb`: the tables as views of a connection that is its caller's own, at one version that stays readable."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidArgument, SegmentUnreadable, TableNotFound, VersionNotFound

DDL = "at TIMESTAMP, id BIGINT, client STRING"


def rows(*ids: int, day: int = 5) -> pa.Table:
    at = [datetime(2013, 1, day, one % 24, tzinfo=UTC) for one in ids]
    return pa.table(
        {
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "id": pa.array(ids, pa.int64()),
            "client": ["ab"[i % 2] for i in ids],
        }
    )


def made(lake: lakehouse.Lake, name: str = "t", **options: Any) -> lakehouse.Table:
    options = {"time": "at", "primary_key": ["id"], "cluster_by": ["client"]} | options
    return lake.create_table(name, DDL, **options)


def ids(connection: Any, name: str = "t") -> list[int]:
    return [one for (one,) in connection.execute(f'SELECT id FROM "{name}" ORDER BY id').fetchall()]


def names(connection: Any) -> list[str]:
    return [name for (name,) in connection.execute("SHOW TABLES").fetchall()]


def test_every_version_shows_what_is_left_of_the_rows(lake: lakehouse.Lake) -> None:
    table = made(lake)
    expected: dict[int, list[int]] = {lake.head: []}
    held: set[int] = set()
    steps: list[tuple[Callable[[], object], Callable[[set[int]], set[int]]]] = [
        (lambda: table.append(rows(*range(20))), lambda held: held | set(range(20))),
        (lambda: table.append(rows(*range(20, 40), day=6)), lambda held: held | set(range(20, 40))),
        (lambda: table.delete("id % 7 = 3"), lambda held: {one for one in held if one % 7 != 3}),
        (lambda: table.replace(None, "2013-01-06", keys={"client": "a"}),
         lambda held: {one for one in held if one < 20 or one % 2}),
        (lambda: table.drop(("2013-01-05T00:00", "2013-01-05T02:00")), lambda held: held - {0, 1}),
        (lambda: table.upsert(rows(5, 21, 99)), lambda held: held | {5, 21, 99}),
        (lambda: table.delete_keys(pa.table({"id": pa.array([6, 99])})), lambda held: held - {6, 99}),
        (table.compact, lambda held: held),
    ]  # fmt: skip
    for step, after in steps:
        step()
        held = after(held)
        expected[lake.head] = sorted(held)
    for version, left in expected.items():
        with lake.duckdb(version) as connection:
            assert ids(connection) == left, version
            assert connection.execute("SELECT count(*), lake_version() FROM t").fetchall() == [(len(left), version)]
            bounds = "SELECT count(*) FROM t WHERE client = 'a' AND \"at\" < '2013-01-06'"
            table_at = table.scan(as_of=version, where="client = 'a' AND at < '2013-01-06'")
            assert connection.execute(bounds).fetchall() == [(table_at.count(),)]


def test_tables_are_those_that_were_there(lake: lakehouse.Lake) -> None:
    table = made(lake, "before")
    table.append(rows(1))
    lake.tag("early")
    made(lake, "after")
    table.append(rows(2))
    with lake.duckdb("early") as early, lake.duckdb() as now, lake.duckdb(tables=["after"]) as one:
        assert names(early) == ["Clients", "before", "trips"]
        assert names(now) == ["Clients", "after", "before", "trips"]
        assert names(one) == ["after"]
        lake.rename_table("before", "renamed")
        lake.drop_table("after")
        assert (ids(early, "before"), ids(now, "before"), ids(now, "after")) == ([1], [1, 2], [])
    with lake.duckdb() as later:
        assert names(later) == ["Clients", "renamed", "trips"]
    committed = lake.log(1)[0].committed_at
    with lake.duckdb(committed) as then:
        assert ids(then, "renamed") == [1, 2]
    for bad, error in (({"tables": ["nowhere"]}, TableNotFound), ({"as_of": 999}, VersionNotFound)):
        with pytest.raises(error):
            lake.duckdb(**bad)
    for wrong in ("trips", [1]):
        with pytest.raises(InvalidArgument):
            lake.duckdb(tables=wrong)


def test_names_that_mean_something_to_duckdb_are_tables_and_columns(lake: lakehouse.Lake) -> None:
    words = [
        "main",
        "temp",
        "memory",
        "system",
        "select",
        "sqlite_master",
        "duckdb_tables",
        "information_schema",
        "x_1",
    ]
    columns = ["select", "at", "file_row_number", "Größe in %", "table", "rowid", "filename"]
    schema = pa.schema([("when", pa.timestamp("us", "UTC")), *((name, pa.int64()) for name in columns)])
    for number, name in enumerate(words):
        table = lake.create_table(name, schema, time="when")
        for day in (5, 6) if number else ():
            at = pa.array([datetime(2013, 1, day, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC"))
            values = {column: pa.array([place + 10 * day] * 3) for place, column in enumerate(columns)}
            table.append(pa.table({"when": at, **values}))
    with lake.duckdb() as connection:
        for number, name in enumerate(words):
            listed = ", ".join(f'"{column}"' for column in columns)
            found = connection.execute(f'SELECT {listed} FROM "{name}" ORDER BY "select"').fetchall()
            assert found == [tuple(range(10 * day, 10 * day + 7)) for day in (5, 6) if number for _ in range(3)]
            described = connection.execute(f'DESCRIBE main."{name}"').fetchall()
            assert [(column, kind) for column, kind, *_ in described] == [
                ("when", "TIMESTAMP WITH TIME ZONE"), *((column, "BIGINT") for column in columns),
            ]  # fmt: skip
    made(lake, "Main")
    with pytest.raises(InvalidArgument, match="Main,main"):
        lake.duckdb()
    with lake.duckdb(tables=["Main", "x_1"]) as connection:
        assert ids(connection, "Main") == []


def test_conditions_and_columns_reach_the_files_and_rows_are_estimated(lake: lakehouse.Lake) -> None:
    table = made(lake)
    for size in (3, 5, 2000, 4):
        table.append(rows(*range(size)))
    with lake.duckdb() as connection:
        ((_, plan),) = connection.execute("EXPLAIN SELECT client FROM t WHERE id = 7").fetchall()
        assert "Parquet" in plan
        assert re.search(r"Filters:\s*\S*\s*id\s?=\s?7", plan), plan
        ((_, whole),) = connection.execute("EXPLAIN SELECT client FROM t ORDER BY client").fetchall()
        expected = int(re.findall(r"~([\d,]+) row", whole)[-1].replace(",", ""))
        assert 2012 / 3 <= expected <= 3 * 2012
        pruned = table.scan(where="id = 4", columns=["id"]).to_duckdb(connection)
        assert pruned.join(connection.view("t"), "id").count("*").fetchall() == [(4,)]


def test_erased_rows_are_shown_until_their_files_are_collected(lake: lakehouse.Lake) -> None:
    table = made(lake)
    table.append(rows(1, 2))
    with lake.duckdb() as before:
        table.erase("id = 1")
        with lake.duckdb() as after:
            assert (ids(before), ids(after)) == ([1, 2], [2])
            lake.collect(grace_seconds=0)
            with pytest.raises(duckdb.IOException, match=r"\.parquet"):
                ids(before)
            assert ids(after) == [2]


def test_a_file_that_is_gone_is_named_and_other_tables_can_be_asked_for(lake: lakehouse.Lake) -> None:
    table = made(lake)
    table.append(rows(1))
    path = lake.warehouse / table.segments()[0].path
    whole = path.read_bytes()
    path.write_bytes(b"x" * len(whole))
    with pytest.raises(SegmentUnreadable, match=path.name):
        lake.duckdb()
    path.unlink()
    with pytest.raises(SegmentUnreadable, match=path.name):
        lake.duckdb()
    with lake.duckdb(tables=["trips"]) as connection:
        assert len(ids(connection, "trips")) == 4


def test_the_connection_is_its_callers_own_and_can_be_confined_by_them(lake: lakehouse.Lake, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id\n1\n4\n")
    mine = pd.DataFrame({"id": [4]})
    with lake.duckdb() as one, lake.duckdb() as other:
        one.execute("CREATE TABLE mine_too AS SELECT 4 AS id")
        one.execute(f"ATTACH '{tmp_path}/mine.db' AS elsewhere")
        joined = f"SELECT count(*) FROM trips JOIN mine USING (id) JOIN '{tmp_path}/more.csv' USING (id)"
        assert one.execute(joined).fetchall() == [(len(mine),)]
        assert "mine_too" not in names(other)
        with pytest.raises(duckdb.Error):
            one.execute("INSERT INTO trips (id) VALUES (7)")
        with pytest.raises(duckdb.Error):
            one.execute("DELETE FROM trips")
        settings = "SELECT current_setting('autoload_known_extensions'), current_setting('TimeZone')"
        assert other.execute(settings).fetchall() == [(False, "UTC")]
        other.execute(f"SET allowed_directories = ['{lake.warehouse}']")
        other.execute("SET enable_external_access = false")
        other.execute("SET lock_configuration = true")
        assert ids(other, "trips") == [1, 2, 3, 4]
        for text in (f"SELECT * FROM '{tmp_path}/more.csv'", "SET enable_external_access = true"):
            with pytest.raises(duckdb.Error):
                other.execute(text)


def test_it_is_a_connection_by_python_s_rules_for_databases(lake: lakehouse.Lake) -> None:
    with lake.duckdb() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, client FROM trips WHERE id < ? ORDER BY id", [3])
        assert [one[0] for one in cursor.description] == ["id", "client"]
        assert (cursor.fetchone(), cursor.fetchmany(5), cursor.fetchone()) == ((1, "UA"), [(2, "it's")], None)
        with pytest.warns(UserWarning, match="SQLAlchemy"):
            frame = pd.read_sql("SELECT id, price FROM trips WHERE id > ? ORDER BY id", connection, params=[2])
        assert frame["id"].tolist() == [3, 4]
        begun = connection.begin().execute("SELECT count(*) FROM trips").fetchall()
        connection.rollback()
        assert begun == [(4,)]
