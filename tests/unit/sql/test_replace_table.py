"""CREATE OR REPLACE TABLE AS: new rows, or a new table, in the place of the old one."""

from __future__ import annotations

from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, VersionNotFound
from tests.unit.sql.conftest import rows_of

MADE = "CREATE OR REPLACE TABLE made {} AS SELECT {}"


def test_a_table_of_the_same_columns_stays_the_same_table(lake: lakehouse.Lake) -> None:
    table = lake.sql(MADE.format("TBLPROPERTIES ('owner' = 'me', 'a' = 'b')", "id, price FROM trips"))
    first = lake.head
    again = lake.sql(MADE.format("TBLPROPERTIES ('owner' = 'you')", "id, price * 2 AS price FROM made WHERE id < 3"))
    assert again.spec.id == table.spec.id
    assert rows_of(lake, "SELECT * FROM made ORDER BY id") == [(1, 3.0), (2, 4.0)]
    assert len(rows_of(lake, f"SELECT * FROM made VERSION AS OF {first}")) == 4
    assert again.properties == {"owner": "you"}
    assert [row["operation"] for row in lake.sql("DESCRIBE HISTORY made").to_pylist()] == ["replace", "append"]
    lake.sql("COMMENT ON COLUMN made.id IS 'kept'")
    assert lake.sql(MADE.format("TBLPROPERTIES ('owner' = 'you')", "id, price FROM trips")).spec.id == table.spec.id
    assert lake.sql("DESCRIBE EXTENDED made")["comment"].to_pylist() == ["kept", None]


def test_its_new_rows_are_written_by_its_new_properties(lake: lakehouse.Lake) -> None:
    for codec in ("lz4", "snappy"):
        made = lake.sql(MADE.format(f"TBLPROPERTIES ('compression' = '{codec}')", "id, price FROM trips"))
        assert {one.codec for one in made.segments()} == {codec}


@pytest.mark.parametrize(
    ("layout", "query"),
    [
        ("", "id FROM made"),
        ("", "price, id FROM made"),
        ("", "CAST(id AS INT) AS id, price FROM made"),
        ("CLUSTER BY (id)", "id, price FROM made"),
        ("PARTITIONED BY (months(at))", "at, id FROM trips"),
        ("TBLPROPERTIES (write_order = 'start')", "id, price FROM made"),
    ],
)
def test_a_table_of_others_is_exchanged_in_one_version(lake: lakehouse.Lake, layout: str, query: str) -> None:
    old = lake.sql(MADE.format("", "id, price FROM trips"))
    before = lake.head
    expected = rows_of(lake, f"SELECT {query}")
    new = lake.sql(MADE.format(layout, query))
    assert new.spec.id != old.spec.id
    assert sorted(rows_of(lake, "SELECT * FROM made"), key=repr) == sorted(expected, key=repr)
    assert lake.tables() == ["Clients", "made", "trips"]
    commits = [one.message for one in lake.log() if one.version > before]
    assert (commits[0], len(commits)) == ("replace table made", 3)
    with pytest.raises(VersionNotFound):
        rows_of(lake, f"SELECT * FROM made VERSION AS OF {before}")
    lake.check()


@pytest.mark.parametrize("query", ["nothing FROM made", "CAST(client AS INT) AS id, 1.5D AS price FROM trips",
                                   "CAST(client AS INT) AS another FROM trips"])  # fmt: skip
def test_a_query_that_fails_changes_nothing(lake: lakehouse.Lake, query: str) -> None:
    lake.sql(MADE.format("", "id, price FROM trips"))
    rows = rows_of(lake, "SELECT * FROM made ORDER BY id")
    with pytest.raises(InvalidInput):
        lake.sql(MADE.format("", query), engine="duckdb")
    assert rows_of(lake, "SELECT * FROM made ORDER BY id") == rows
    assert lake.tables() == ["Clients", "made", "trips"]


@pytest.mark.parametrize("text", [
    "CREATE OR REPLACE TABLE late AS SELECT 1 AS a", "CREATE OR REPLACE TABLE trips (a INT)",
    "CREATE OR REPLACE TABLE IF NOT EXISTS trips AS SELECT 1 AS a",
    "CREATE OR REPLACE TABLE trips AS SELECT 1 AS a, 2 AS A",
    "CREATE OR REPLACE TABLE trips PARTITIONED BY (days(nothing)) AS SELECT id FROM trips",
])  # fmt: skip
def test_what_cannot_be_replaced_is_refused(lake: lakehouse.Lake, text: str) -> None:
    lake.sql("CREATE VIEW late AS SELECT id FROM trips")
    before: list[Any] = rows_of(lake, "SELECT * FROM trips ORDER BY id")
    with pytest.raises(InvalidInput):
        lake.sql(text, engine="duckdb")
    assert rows_of(lake, "SELECT * FROM trips ORDER BY id") == before
