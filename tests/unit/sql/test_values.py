"""Values given beside a statement: literals of their types, wherever they stand, and nothing else."""

# ruff: noqa: DTZ001 - times without a zone are values, too
from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
from sqlglot import TokenType

import lakehouse
from lakehouse.errors import InvalidInput, InvalidStatement
from lakehouse.predicate.dialect import DIALECT
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.values import read_values
from tests.unit.sql.conftest import rows_of
from tests.unit.sql.functions_table import ALL

EAST = timezone(timedelta(hours=2))
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 7, -7, 2**63 - 1, -(2**63), 0.1, -0.5, 1e300, 5e-324, math.inf, -math.inf, Decimal("1.50"),
    Decimal(-12), Decimal("0.001"), Decimal("9" * 38), "", "it's", "'; DROP TABLE trips; --", "\\", "\\'", "`", "?",
    ":name", "${env:HOME}", "\u202e\U0001f600\x1b\n", "NULL", b"", b"\x00\xff'", date(1, 1, 1), date(9999, 12, 31),
    datetime(2013, 1, 5, 7, 0, 0, 1), datetime(1, 1, 1),
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_as_it_was_given(still_lake: lakehouse.Lake, value: Any) -> None:
    for text, args in (("SELECT ? AS v", [value]), ("SELECT :v AS v", {"v": value})):
        [(found,)] = rows_of(still_lake, text, args=args)
        assert (found, type(found)) == (value, type(value))


def test_values_reach_a_query_process_as_they_were_given(still_lake: lakehouse.Lake) -> None:
    listed = ", ".join(f"? AS v{place}" for place in range(len(VALUES)))
    assert list(still_lake.query(f"SELECT {listed}", args=VALUES).rows.to_pylist()[0].values()) == list(VALUES)


def test_a_statement_with_values_is_the_one_with_literals() -> None:
    """But for functions that read a literal at once, which take no value there."""
    same, refused = 0, 0
    for call in sorted({one for one in ALL if "DATE '" not in one}):
        text = f"SELECT {call} FROM t"
        for token in DIALECT.tokenize(text):
            is_text = token.token_type is TokenType.STRING
            is_number = token.token_type is TokenType.NUMBER and text[token.start : token.end + 1].isdigit()
            if not is_text and not is_number:
                continue
            marked = f"{text[: token.start]} ? {text[token.end + 1 :]}"
            try:
                found = parse_statement(marked, read_values([token.text if is_text else int(token.text)])).tree
            except InvalidInput:
                refused += 1
            else:
                same += 1
                assert found == parse_statement(text).tree, marked
    assert same > 3 * refused > 0


def test_times_with_a_zone_are_instants(still_lake: lakehouse.Lake) -> None:
    at = datetime(2013, 1, 6, 1, tzinfo=EAST)
    assert rows_of(still_lake, "SELECT ?", args=[at]) == [(at.astimezone(UTC),)]
    for given in (at, datetime(2013, 1, 5, 23), pd.Timestamp(at)):
        assert rows_of(still_lake, "SELECT id FROM trips WHERE at = ?", args=[given]) == [(2,)]
        assert still_lake.table("trips").count() == 4
        assert len(still_lake.query("SELECT id FROM trips WHERE at = ?", args=[given]).reads[0].segments) == 1
    assert rows_of(still_lake, "SELECT count(*) FROM trips TIMESTAMP AS OF ?", args=[datetime(9000, 1, 1)]) == [(4,)]
    assert rows_of(still_lake, "SELECT count(*) FROM trips VERSION AS OF :v", args={"v": 3}) == [(4,)]


def test_places_are_counted_as_they_stand_in_the_text(still_lake: lakehouse.Lake) -> None:
    text = """
    WITH a AS (SELECT ? AS x) SELECT ? AS b, x FROM a JOIN trips ON id = ? WHERE client = ? AND x IN (?, ?)
    GROUP BY client, x HAVING count(*) < ? ORDER BY ? LIMIT ? OFFSET ?
    """
    assert rows_of(still_lake, text, args=[1, 2, 4, "UA", 1, 5, 6, 1, 3, 0]) == [(2, 1)]


def test_a_name_may_stand_often_and_in_any_order(still_lake: lakehouse.Lake) -> None:
    text = "SELECT id FROM trips WHERE (client = :c OR :c IS NULL) AND price < :most ORDER BY id"
    assert rows_of(still_lake, text, args={"most": 2, "c": "UA"}) == [(1,), (4,)]
    assert rows_of(still_lake, text, args={"most": 2, "c": None}) == [(1,), (4,)]
    assert still_lake.query(text, args={"most": 2, "c": "UA"}).rows["id"].to_pylist() == [1, 4]
    assert "id" in still_lake.sql("EXPLAIN SELECT id FROM trips WHERE id = ?", args=[1], engine="duckdb")


def test_changes_take_values_in_every_clause(lake: lakehouse.Lake) -> None:
    columns = "at, id, client, price, `seats free`, day"
    at = datetime(2014, 1, 5, 7, tzinfo=EAST)
    lake.sql(
        f"INSERT INTO trips ({columns}) VALUES (?, ?, ?, ?, ?, ?)", args=[at, 9, "it's", -1.5, 3, date(2014, 1, 5)]
    )
    lake.sql("INSERT INTO trips (at, id, price) VALUES (:at, :id, :id)", args={"at": "2014-01-06", "id": 10})
    lake.sql("INSERT INTO trips (at, id, price) SELECT at, :id, price FROM trips WHERE id = 9", args={"id": 11},
             engine="duckdb")  # fmt: skip
    text = "SELECT id, client, price, day FROM trips WHERE at > ? ORDER BY id"
    assert rows_of(lake, text, args=[date(2014, 1, 1)]) == [
        (9, "it's", -1.5, date(2014, 1, 5)), (10, None, 10.0, None), (11, None, -1.5, None)
    ]  # fmt: skip
    lake.sql("UPDATE trips SET client = ?, price = price * ? WHERE id = ? AND at = ?", args=["'", -2.0, 9, at])
    assert rows_of(lake, "SELECT client, price FROM trips WHERE id = 9") == [("'", 3.0)]
    lake.sql(
        "MERGE INTO trips t USING clients c ON t.client = :q AND c.name = :n WHEN MATCHED THEN UPDATE SET price = :p "
        "WHEN NOT MATCHED AND c.score > :s THEN INSERT (at, id, client) VALUES (:at, :id, :n)",
        args={"q": "'", "n": "UA", "p": Decimal("0.25"), "s": 15, "at": datetime(2015, 1, 1, tzinfo=UTC), "id": 12},
        engine="duckdb",
    )
    assert rows_of(lake, "SELECT id, client, price FROM trips WHERE id IN (9, 12) ORDER BY id") == [
        (9, "'", 0.25), (12, "UA", None)
    ]  # fmt: skip
    assert lake.sql("DELETE FROM trips WHERE id >= ? OR client = ?", args=[9, "' OR TRUE"]).rows_deleted == 4
    assert lake.table("trips").count() == 4


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -1e-5, -(2**63), Decimal("-0.10"), b"\x00", True])
def test_filters_take_values_of_every_type(lake: lakehouse.Lake, value: Any) -> None:
    column = {float: "DOUBLE", int: "BIGINT", Decimal: "DECIMAL(9, 2)", bytes: "BINARY", bool: "BOOLEAN"}[type(value)]
    lake.sql(f"CREATE TABLE one (at TIMESTAMP, v {column}) PARTITIONED BY (days(at))")
    lake.sql("INSERT INTO one VALUES (?, ?)", args=[date(2013, 1, 1), value])
    assert rows_of(lake, "SELECT count(*) FROM one WHERE v = ?", args=[value]) == [(1,)]
    assert lake.sql("DELETE FROM one WHERE v = ?", args=[value]).rows_deleted == 1


@pytest.mark.parametrize(
    ("text", "args", "said"),
    [
        ("SELECT ?", None, "needs values"),
        ("SELECT :a", None, "needs values"),
        ("SELECT ?, ?", [1], "as many values"),
        ("SELECT ?", [1, 2], "as many values"),
        ("SELECT 1", [1], "as many values"),
        ("SELECT '?'", [1], "as many values"),
        ("SHOW TABLES", [1], "as many values"),
        ("SHOW TABLES", {"a": 1}, "names=a"),
        ("SELECT :a, :b", {"a": 1}, "names=b"),
        ("SELECT :a", {"a": 1, "b": 2}, "names=b"),
        ("SELECT :A", {"a": 1}, "names=A"),
        ("SELECT :a, ?", {"a": 1}, "one kind"),
        ("SELECT ?", {"a": 1}, "one kind"),
        ("SELECT :a", [1], "one kind"),
        ("SELECT :a", {"a;b": 1}, "letters"),
        ("SELECT :a", {1: 1}, "letters"),
        ("SELECT ?", "x", "args are"),
        ("SELECT ?", 1, "args are"),
        ("SELECT ?", {1}, "args are"),
        ("SELECT ?", [[1]], "type"),
        ("SELECT ?", [object()], "type"),
        ("SELECT :a", {"a": {}}, "value=:a"),
        ("SELECT ?", [2**63], "no column"),
        ("SELECT ?", ["\ud800"], "no column"),
        ("SELECT ?", [Decimal("NaN")], "no column"),
        ("SELECT ?", [Decimal("1e38")], "no column"),
        ("SELECT ?", [Decimal("1e-39")], "no column"),
        ("SELECT ?", [Decimal("9" * 20 + "." + "9" * 20)], "no column"),
        ("SELECT ?", [pd.NaT], "no column"),
        ("SELECT ?", [pd.Timestamp(1)], "no column"),
        ("SELECT ?", [datetime(1, 1, 1, tzinfo=EAST)], "no column"),
        ("SELECT ?", ["x" * 1_000_001], "too long"),
        ("SELECT * FROM ?", ["trips"], "a name, a type"),
        ("SELECT * FROM trips AS :a", {"a": "x"}, "a name, a type"),
        ("SELECT id AS :a FROM trips", {"a": "x"}, "a name, a type"),
        ("SELECT CAST(1 AS DECIMAL(?, 2))", [3], "a name, a type"),
        ("INSERT INTO trips (?) VALUES (1)", ["id"], "a name, a type"),
        ("DELETE FROM ?", ["trips"], "a name, a type"),
        ("UPDATE trips SET ? = 1", ["id"], "SET"),
        ("MERGE INTO trips USING clients ON true WHEN NOT MATCHED THEN INSERT (?) VALUES (1)", ["id"], "names only"),
        ("SELECT date_format(at, ?) FROM trips", ["yyyy'"], "a format"),
        ("SELECT INTERVAL ? DAY", ["1' OR"], "interval"),
        ("DROP TABLE ?", ["trips"], "a name, a type"),
        ("CREATE TABLE ? (ts TIMESTAMP) PARTITIONED BY (days(ts))", ["x"], "a name, a type"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_the_statement_are_refused(
    still_lake: lakehouse.Lake, text: str, args: Any, said: str
) -> None:
    head = still_lake.head
    with pytest.raises(InvalidInput, match=said):
        still_lake.sql(text, args=args, engine="duckdb")
    assert (still_lake.head, still_lake.tables()) == (head, ["Clients", "trips"])


def test_a_query_apart_refuses_values_by_name(still_lake: lakehouse.Lake) -> None:
    with pytest.raises(InvalidStatement, match="type that is not taken"):
        still_lake.query("SELECT ?", args=[object()])
    with pytest.raises(InvalidStatement, match="as many values"):
        still_lake.query("SELECT ?", args=[])
