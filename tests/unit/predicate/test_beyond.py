"""Values that a column cannot hold match nothing: in filters, in what a delete leaves behind, and in keys."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.core.interval import Interval
from lakehouse.errors import InvalidInput
from lakehouse.operations import row_change

SCHEMA = pa.schema(
    [
        pa.field("at", pa.timestamp("us", "UTC"), nullable=False),
        ("n", pa.int64()),
        ("tiny", pa.int8()),
        ("short", pa.int16()),
        ("int", pa.int32()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("money", pa.decimal128(10, 2)),
        ("huge", pa.decimal128(38, 18)),
        ("day", pa.date32()),
        ("local", pa.timestamp("us")),
    ]
)
FIRST, LAST = dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999998, tzinfo=dt.UTC)
ROWS = pa.Table.from_pylist(
    [
        {
            "at": FIRST,
            "n": 1 << 53,
            "tiny": -128,
            "short": -(1 << 15),
            "int": -(1 << 31),
            "single": 0.1,
            "double": 0.1,
            "money": Decimal("0.10"),
            "huge": Decimal("0.1"),
            "day": dt.date.min,
            "local": FIRST.replace(tzinfo=None),
        },
        {
            "at": LAST,
            "n": (1 << 53) + 1,
            "tiny": 127,
            "short": (1 << 15) - 1,
            "int": (1 << 31) - 1,
            "single": 3.4028234663852886e38,
            "double": 1.7976931348623157e308,
            "money": Decimal("99999999.99"),
            "huge": Decimal("9" * 20 + "." + "9" * 18),
            "day": dt.date.max,
            "local": LAST.replace(microsecond=999999, tzinfo=None),
        },
        {"at": dt.datetime(2013, 1, 5, tzinfo=dt.UTC), "n": None},
    ],
    SCHEMA,
)
LOW, HIGH, NULL = (1 << 53), (1 << 53) + 1, None
BOTH = [LOW, HIGH]


def filled(lake: lakehouse.Lake) -> Any:
    table = lake.create_table("t", SCHEMA, time="at", grain="year", cluster_by=["tiny", "int", "day"])
    table.append(ROWS)
    return table


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        yield filled(lake)


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("lake")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        yield filled(lake)


def left(table: Any, where: str | None = None) -> list[Any]:
    return sorted(table.scan(where=where).to_arrow()["n"].to_pylist(), key=lambda n: (n is None, n))


BEYOND = [
    ("tiny = 300", []),
    ("tiny <> 300", BOTH),
    ("tiny < 300", BOTH),
    ("tiny > 127", []),
    ("tiny >= -129", BOTH),
    ("tiny IN (127, 300)", [HIGH]),
    ("tiny IN (300, -129)", []),
    ("tiny NOT IN (127, 300)", [LOW]),
    ("tiny NOT IN (300)", BOTH),
    ("tiny IN (300, NULL) IS NULL", [LOW, HIGH, NULL]),
    ("short = 32768 OR short = -32769", []),
    ("int IN (2147483647, 3000000000)", [HIGH]),
    ("int IN (3000000000)", []),
    ("int BETWEEN -3000000000 AND 3000000000", BOTH),
    ("n = 9223372036854775808", []),
    ("n IN (9007199254740992, 9223372036854775808)", [LOW]),
    ("n < CAST('NaN' AS DOUBLE)", BOTH),
    ("n < CAST('Infinity' AS DOUBLE) AND n > CAST('-Infinity' AS DOUBLE)", BOTH),
    # A double is compared as doubles: 2**53 + 1 is none.
    ("n = 9.007199254740992e15", BOTH),
    ("n IN (9.007199254740992e15)", BOTH),
    ("n IN (9.007199254740992e15, 7)", BOTH),
    ("n IN (9007199254740992, 7e0)", BOTH),
    ("n IN (9007199254740992, 7.5)", [LOW]),
    ("n IN (9007199254740992, double)", BOTH),
    ("n IN (9007199254740992, tiny)", [LOW]),
    ("n > 9.007199254740992e15", []),
    ("n <> 9.007199254740992e15", []),
    ("n = 9007199254740993.0", [HIGH]),
    ("huge = 1e-1", [LOW]),
    ("huge IN (1e-1, 7e0)", [LOW]),
    ("huge = 0.1", [LOW]),
    ("huge = 0.1000000000000000055511151231257827", []),
    ("huge > 0.1000000000000000001", [HIGH]),
    ("huge < 1e40 AND huge > -1e40", BOTH),
    ("huge < 1000000000000000000000000000000000000000000", BOTH),
    ("huge = 1e20", [HIGH]),
    ("money = 1e-1", [LOW]),
    ("money = 0.101", []),
    ("money < 0.101", [LOW]),
    ("money >= 0.101", [HIGH]),
    ("money < 1e10", BOTH),
    ("money IN (0.1, 0.101, 123456789012)", [LOW]),
    ("single = 0.1", []),
    ("single = 1e-1", []),
    ("single > 0.1", BOTH),
    ("single <> 0.1", BOTH),
    ("single IN (0.1, 7)", []),
    ("single = CAST(0.1 AS FLOAT)", [LOW]),
    ("single = 0.1F", [LOW]),
    ("single IN (0.1F, 7)", [LOW]),
    ("single < 1e300", BOTH),
    ("single > 1e300", []),
    ("double = 0.1 AND double = 1e-1", [LOW]),
    ("double = 0.1F", []),
    ("at < '10000-01-01'", [LOW, HIGH, NULL]),
    ("at >= '10000-01-01'", []),
    ("at BETWEEN '9999-12-31' AND '10000-01-01'", [HIGH]),
    ("at > '0000-12-31'", [LOW, HIGH, NULL]),
    ("at > '-0044-03-15'", [LOW, HIGH, NULL]),
    ("at >= '0001-01-01'", [LOW, HIGH, NULL]),
    ("at < '0001-01-01'", []),
    ("at <= '0001-01-01'", [LOW]),
    ("at > '0001-01-01 00:00+02:00'", [LOW, HIGH, NULL]),
    ("at = '9999-12-31 23:59:59.999998'", [HIGH]),
    ("at = '9999-12-31 23:59:59.999999'", []),
    ("at <= '9999-12-31 23:59:59.999999'", [LOW, HIGH, NULL]),
    ("at < '9999-12-31 23:59:59.999999-02:00'", [LOW, HIGH, NULL]),
    ("at IN ('10000-01-01', '9999-12-31 23:59:59.999998')", [HIGH]),
    ("date(at) = DATE '9999-12-31'", [HIGH]),
    ("date(at) <> DATE '9999-12-31'", [LOW, NULL]),
    ("date(at) <= DATE '9999-12-31'", [LOW, HIGH, NULL]),
    ("date(at) > DATE '9999-12-31'", []),
    ("date(at) < '10000-01-01'", [LOW, HIGH, NULL]),
    ("date(at) IN (DATE '9999-12-31', DATE '10000-01-01')", [HIGH]),
    ("date(at) = DATE '0001-01-01'", [LOW]),
    ("day < '10000-01-01'", BOTH),
    ("day = DATE '10000-01-01'", []),
    ("day IN ('9999-12-31', '10000-01-01')", [HIGH]),
    ("day > '0000-12-31'", BOTH),
    ("local < '10000-01-01'", BOTH),
    ("local = '9999-12-31 23:59:59.999999'", [HIGH]),
    ("local > '0000-12-31 12:00'", BOTH),
    ("date(local) = DATE '9999-12-31'", [HIGH]),
]


@pytest.mark.parametrize(("where", "expected"), BEYOND)
def test_a_value_beyond_what_a_column_holds_means_what_spark_means(
    read_only: Any, where: str, expected: list[Any]
) -> None:
    assert left(read_only, where) == expected


def test_a_delete_and_an_update_take_the_same_rows(table: Any) -> None:
    """An update puts each row that is found into another segment, and the delete finds it there."""
    for where, expected in BEYOND[::4]:
        before = table.version
        updated = table.update({"double": "double"}, where)
        assert updated.rows_deleted == updated.rows_added == len(expected)
        table.delete(where)
        assert left(table) == [n for n in [LOW, HIGH, NULL] if n not in expected], where
        table.restore(before)


@pytest.mark.parametrize(
    "where",
    [
        "tiny = CAST(300 AS TINYINT)",
        "int = CAST(3000000000 AS INT)",
        "n = CAST('1_0' AS DECIMAL(5, 0))",
        "double = CAST('1_0' AS DOUBLE)",
        "money = CAST(100 AS DECIMAL(2, 0))",
        "money = CAST(1 AS DECIMAL(39, 0))",
        "money = CAST('NaN' AS DECIMAL)",
        "local = TIMESTAMP_NTZ '2013-01-05 00:00:00+02:00'",
        "at < '100000-01-01'",
        "at < '10000-02-30'",
        "n = CAST(tiny AS DECIMAL(3, 1))",
        "coalesce(money, 1.005) = 1.005",
        "coalesce(n, 9223372036854775808) = 1",
        "coalesce(local, TIMESTAMP_NTZ '10000-01-01') > '2013-01-01'",
        "year(DATE '10000-01-01') = 10000",
    ],
)
def test_a_literal_that_its_own_type_cannot_hold_is_refused(read_only: Any, where: str) -> None:
    with pytest.raises(InvalidInput):
        read_only.scan(where=where).count()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("money = CAST('0.096' AS DECIMAL(3, 2))", [LOW]),
        ("money = CAST(0.1 AS DECIMAL)", []),
        ("money > CAST('0.4' AS DECIMAL)", [HIGH, LOW]),
        ("double = 0.1BD", [LOW]),
    ],
)
def test_a_decimal_literal_has_the_size_that_is_written(read_only: Any, where: str, expected: list[int]) -> None:
    assert left(read_only, where) == sorted(expected)


@pytest.mark.parametrize("listed", [{"int": (2147483647, 3_000_000_000)}, {"tiny": (127, 300)}])
def test_a_tombstone_of_keys_that_a_column_cannot_hold_is_read(
    table: Any, monkeypatch: pytest.MonkeyPatch, listed: dict[str, Any]
) -> None:
    """Such as a DELETE left until values beyond a column's type were left out of them."""
    monkeypatch.setattr(row_change, "whole_scope", lambda *_: (Interval("2013-01-01", None), listed))
    table.delete("n = 1")
    assert left(table) == [LOW, NULL]
    monkeypatch.setattr(row_change, "whole_scope", lambda *_: (Interval(None, "2014-01-01"), {"int": (1 << 70,)}))
    table.delete("n = 1")
    table.append(ROWS)
    assert left(table) == [LOW, LOW, HIGH, NULL, NULL]
    table.compact()
    assert left(table) == [LOW, LOW, HIGH, NULL, NULL]


@pytest.mark.parametrize(
    "assigned",
    [
        {"local": "TIMESTAMP_NTZ '10000-01-01'"},
        {"local": "'10000-01-01'"},
        {"day": "DATE '-0044-03-15'"},
        {"day": "date(TIMESTAMP '10000-01-01')"},
        {"local": "if(tiny = 1, local, '10000-01-01')"},
        {"tiny": "300"},
        {"int": "n"},
    ],
)
def test_an_update_writes_no_value_that_the_column_cannot_hold(table: Any, assigned: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        table.update(assigned, "n IS NOT NULL")
    assert left(table) == [LOW, HIGH, NULL]


@pytest.mark.parametrize("keys", [{"tiny": 300}, {"int": [1, 3_000_000_000]}, {"tiny": 1.5}])
def test_keys_of_a_replace_that_a_column_cannot_hold_are_refused(table: Any, keys: dict[str, Any]) -> None:
    for work in (table.replace, table.drop):
        arguments = (None, "2013") if work == table.replace else ("2013",)
        with pytest.raises(InvalidInput, match="the column cannot hold this value"):
            work(*arguments, keys=keys)


def test_a_delete_of_listed_keys_beyond_the_type_still_reads_no_row(table: Any, tmp_path: Path) -> None:
    for path in (tmp_path / "warehouse").rglob("*.parquet"):
        path.unlink()
    table.delete("int IN (2147483647, 3000000000)")
    (tombstone, *_) = table.tombstones()
    assert dict(tombstone.keys) == {"int": (2147483647,)}
