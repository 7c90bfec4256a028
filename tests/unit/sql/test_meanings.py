"""Functions, casts and operators of statements in process give what Spark gives, or say that only Spark does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from tests.unit.sql.conftest import rows_of

FAILS = object()
"""Stands for an error where Spark gives one."""
ONLY_SPARK = object()
"""Stands for an error where only Spark gives a value."""
NAN = math.nan
VALUES: dict[str, Any] = {
    "CAST(' 1 ' AS INT)": 1,
    "CAST('+7' AS INT)": 7,
    "CAST('1.5' AS INT)": FAILS,
    "CAST('abc' AS INT)": FAILS,
    "CAST('0x1F' AS INT)": FAILS,
    "CAST('1_000' AS BIGINT)": FAILS,
    "CAST('1e2' AS INT)": FAILS,
    "CAST('2147483648' AS INT)": FAILS,
    "CAST('128' AS TINYINT)": FAILS,
    "CAST('' AS INT)": FAILS,
    "TRY_CAST('1.5' AS INT)": None,
    "TRY_CAST('0x1F' AS INT)": None,
    "TRY_CAST('128' AS TINYINT)": None,
    "TRY_CAST(NULL AS INT)": None,
    "TRY_CAST(concat('1', '2') AS INT)": 12,
    "TRY_CAST(concat('1', '.2') AS INT)": None,
    "CAST('1.5' AS DOUBLE)": 1.5,
    "CAST(' 1e2 ' AS DOUBLE)": 100.0,
    "CAST('.5' AS DOUBLE)": 0.5,
    "CAST('1.' AS DOUBLE)": 1.0,
    "CAST('1d' AS DOUBLE)": 1.0,
    "CAST('NaN' AS DOUBLE)": NAN,
    "CAST('-inf' AS DOUBLE)": -math.inf,
    "CAST('+Infinity' AS DOUBLE)": math.inf,
    "CAST('1_000' AS DOUBLE)": FAILS,
    "TRY_CAST('x' AS DOUBLE)": None,
    "CAST(' Y ' AS BOOLEAN)": True,
    "CAST('f' AS BOOLEAN)": False,
    "CAST('0' AS BOOLEAN)": False,
    "CAST('on' AS BOOLEAN)": FAILS,
    "TRY_CAST('2' AS BOOLEAN)": None,
    "CAST('2013-1-5' AS DATE)": date(2013, 1, 5),
    "CAST('2013' AS DATE)": date(2013, 1, 1),
    "CAST('2013-02' AS DATE)": date(2013, 2, 1),
    "CAST(' 2013-01-05 ' AS DATE)": date(2013, 1, 5),
    "CAST('2013-01-05 07:00' AS DATE)": date(2013, 1, 5),
    "CAST('2013-02-30' AS DATE)": FAILS,
    "CAST('epoch' AS DATE)": FAILS,
    "TRY_CAST('infinity' AS DATE)": None,
    "TRY_CAST('2013-02-30' AS DATE)": None,
    "to_date('2013-01-05')": date(2013, 1, 5),
    "date('x')": FAILS,
    "CAST('2013-01-05T07:00:00Z' AS TIMESTAMP)": datetime(2013, 1, 5, 7, tzinfo=UTC),
    "CAST('2013-01-05 07:00:00+02:00' AS TIMESTAMP)": datetime(2013, 1, 5, 5, tzinfo=UTC),
    "CAST('2013-01-05 07:00' AS TIMESTAMP_NTZ)": datetime.fromisoformat("2013-01-05 07:00"),
    "TRY_CAST('now' AS TIMESTAMP)": None,
    "CAST('epoch' AS TIMESTAMP)": FAILS,
    "CAST('1_0' AS DECIMAL(5, 2))": FAILS,
    "TRY_CAST('abc' AS DECIMAL(5, 2))": None,
    "CAST(2.7 AS INT)": 2,
    "CAST(-2.7 AS INT)": -2,
    "CAST(CAST(-0.9 AS DOUBLE) AS INT)": 0,
    "TRY_CAST(CAST('NaN' AS DOUBLE) AS INT)": None,
    "TRY_CAST(CAST(1e10 AS DOUBLE) AS INT)": None,
    "CAST(CAST('NaN' AS DOUBLE) AS STRING)": "NaN",
    "CAST(CAST('-inf' AS DOUBLE) AS STRING)": "-Infinity",
    "CAST(1.5D AS STRING)": "1.5",
    "CAST('\\\\x41é' AS BINARY)": "\\x41é".encode(),
    "CAST(concat('\\\\x', '41') AS BINARY)": b"\\x41",
    "TRY_CAST('é' AS BINARY)": "é".encode(),
    "CAST(X'00FF' AS BINARY)": b"\x00\xff",
    "CAST(NULL AS BINARY)": None,
    "CAST(1 AS BINARY)": FAILS,
    "date_format(DATE '2013-05-07', 'yy/MM %n')": FAILS,
    "date_format(DATE '2013-05-07', '%s')": FAILS,
    "CAST(1e20 AS STRING)": ONLY_SPARK,
    "CAST(1e-7 AS STRING)": ONLY_SPARK,
    "CAST(TIMESTAMP '2013-01-05 07:00:00' AS STRING)": "2013-01-05 07:00:00",
    "CAST(true AS STRING)": "true",
    "CAST(DATE '2013-01-05' AS STRING)": "2013-01-05",
    "1 / 4": 0.25,
    "1.5D / 3": 0.5,
    "1.0 / 3": 1 / 3,
    "i / 2.0": 1.0,
    "x / 2.0": 0.75,
    "n / 2": 0.75,
    "n / n": 1.0,
    "n / 0": None,
    "x / 0": None,
    "i / (i - 2)": None,
    "n / x": 1.0,
    "(i + 1) / 2": 1.5,
    "-7 div 2": -3,
    "7 div -2": -3,
    "n div 2": ONLY_SPARK,
    "(i + 5) div i": 3,
    "substring('hello', 0, 2)": "he",
    "substring('hello', 0)": "hello",
    "substring('hello', -2)": "lo",
    "substring('hello', -10, 7)": "he",
    "substring('hello', -10, 3)": "",
    "substring('hello', 2, -1)": "",
    "substring('hello', 2, 0)": "",
    "substring('hello', 10)": "",
    "substring(s, i)": "😀b",
    "substring(s, -i, 1)": "😀",
    "substring(s, NULL)": None,
    "substring(NULL, 1)": None,
    "substring('hello', 1, 2147483647)": "hello",
    "substring(s, i - 2, i)": "a😀",
    "left('abc', -1)": "",
    "left('abc', 2)": "ab",
    "left(s, i)": "a😀",
    "left(s, -i)": "",
    "left(s, NULL)": None,
    "right('abc', -1)": "",
    "right('abc', 2)": "bc",
    "right(s, i)": "😀b",
    "right(s, 0)": "",
    "reverse('a😀b')": "b😀a",
    "reverse('e\u0301a')": "a\u0301e",
    "reverse('')": "",
    "reverse(NULL)": None,
    "array_contains(array(1, NULL), 1)": True,
    "array_contains(array(1, NULL), 2)": None,
    "array_contains(array(1), 2)": False,
    "array_contains(array(1), NULL)": None,
    "array_contains(array(i, 5), 5)": True,
    "sign(-2)": -1.0,
    "sign(x)": 1.0,
    "sign(CAST('NaN' AS DOUBLE))": NAN,
    "sign(NULL)": None,
    "ceil(-0.5D)": 0,
    "ceil(1.2)": 2,
    "floor(-0.5D)": -1,
    "floor(NULL)": None,
}
AGGREGATES: dict[str, Any] = {
    "max_by(a, o)": None,
    "min_by(a, o)": 1,
    "max_by(o, a)": 2,
    "max_by(a, -o)": 1,
    "max_by(o, a) FILTER (WHERE false)": None,
    "count_if(a > 1)": 1,
    "count_if(NULL)": 0,
    "count_if(a > 1) FILTER (WHERE false)": 0,
    "collect_list(a) FILTER (WHERE a IS NULL)": [],
    "array_agg(a) FILTER (WHERE a = 2)": [2],
    "CAST(max(t) AS INT)": 7,
    "sum(a) / count(*)": 1.0,
    "substring(max(t), 0, 1)": "7",
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    folder: Path = tmp_path_factory.mktemp("meanings")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        lake.sql("""CREATE TABLE one (at TIMESTAMP, i INT, x DOUBLE, n DECIMAL(10, 2), s STRING)
            PARTITIONED BY (days(at))""")
        lake.sql("INSERT INTO one VALUES ('2013-01-05', 2, 1.5, 1.50, 'a😀b')")
        yield lake


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(found, float) and math.isnan(found)
    return bool(found == expected) and isinstance(found, bool) == isinstance(expected, bool)


def answered(lake: lakehouse.Lake, text: str) -> Any:
    table: pa.Table = lake.query(text).rows
    return table.column(0)[0].as_py()


def differences(lake: lakehouse.Lake, expected: dict[str, Any], source: str) -> list[Any]:
    """Expressions that give something else; those that give values are asked for together."""
    plain = {one: value for one, value in expected.items() if value is not FAILS and value is not ONLY_SPARK}
    listed = ", ".join(f"{one} AS c{place}" for place, one in enumerate(plain))
    rows = lake.query(f"SELECT {listed} FROM {source}").rows
    found = dict(zip(plain, (column[0].as_py() for column in rows.columns), strict=True))
    return [(one, found[one], value) for one, value in plain.items() if not same(found[one], value)]


def test_values_are_those_of_spark(lake: lakehouse.Lake) -> None:
    assert differences(lake, VALUES, "one") == []


def test_aggregates_are_those_of_spark(lake: lakehouse.Lake) -> None:
    rows = "VALUES (1, 1, '7'), (2, 2, '12'), (3, NULL, NULL) AS v(o, a, t)"
    assert differences(lake, AGGREGATES, rows) == []


@pytest.mark.parametrize("expression", [one for one, value in VALUES.items() if value in (FAILS, ONLY_SPARK)])
def test_what_spark_refuses_or_alone_calculates_is_an_error_in_process(lake: lakehouse.Lake, expression: str) -> None:
    with pytest.raises(InvalidInput):
        lake.query(f"SELECT {expression} FROM one")


def test_what_is_grouped_by_a_conversion_can_be_selected(lake: lakehouse.Lake) -> None:
    keys = "CAST(concat(s, '') AS STRING), substring(s, i)"
    assert lake.query(f"SELECT {keys} FROM one GROUP BY {keys}").rows.num_rows == 1


def test_conversions_in_conversions_stay_short(lake: lakehouse.Lake) -> None:
    text = "i"
    for _ in range(12):
        text = f"CAST(CAST({text} AS STRING) AS INT)"
    assert answered(lake, f"SELECT {text} FROM one") == 2


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("pmod(id + 1, 4)", [2, 3, 0, 1]),
        ("pmod(id, 2 * 2)", [1, 2, 3, 0]),
        ("pmod(id - 5, id + 1 + 1)", [2, 1, 3, 5]),
        ("pmod(-id, 3)", [2, 1, 0, 2]),
        ("ascii(chr(256 + 64 + id))", [65, 66, 67, 68]),
        ("pmod(CASE WHEN id > 2 THEN id ELSE id + 10 END, 3)", [2, 0, 0, 1]),
    ],
)
def test_an_argument_with_operators_stays_one_thing(
    still_lake: lakehouse.Lake, expression: str, expected: list[int]
) -> None:
    assert [row[0] for row in rows_of(still_lake, f"SELECT {expression} FROM trips ORDER BY id")] == expected
