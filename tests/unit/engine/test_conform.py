"""Rows brought to a table's columns, or refused by the column's name."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakehouse.engine.conform import conform
from lakehouse.errors import InvalidInput, InvalidRows

UTC = pa.timestamp("us", "UTC")
NOON = dt.datetime(2013, 1, 5, 12, tzinfo=dt.UTC)


def _conformed(values: pa.Array, kind: pa.DataType, nullable: bool = True) -> list[Any]:
    schema = pa.schema([pa.field("x", kind, nullable)])
    rows = conform(pa.table({"x": values}), schema)
    assert rows.schema == schema
    return list(rows["x"].to_pylist())


def test_columns_are_reordered() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert conform(pa.table({"b": ["x"], "a": [1]}), schema).to_pylist() == [{"a": 1, "b": "x"}]


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"a": [1]}, "missing column.*column=b"),
        ({"a": [1], "b": ["x"], "c": [1], "d": [2]}, "unknown column.*column=c,d"),
        ({"a": [1], "B": ["x"]}, "missing column.*column=b"),
    ],
)
def test_missing_and_unknown_columns_are_named(columns: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        conform(pa.table(columns), pa.schema([("a", pa.int64()), ("b", pa.string())]))


def test_a_column_that_is_there_twice_is_named() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(InvalidInput, match=r"twice.*column=a"):
        conform(twice, pa.schema([("a", pa.int64())]))


@pytest.mark.parametrize(
    ("values", "kind", "held"),
    [
        (pa.array([1, None], pa.int8()), pa.int64(), [1, None]),
        (pa.array([127]), pa.int8(), [127]),
        (pa.array([200], pa.uint64()), pa.int16(), [200]),
        (pa.array([1.0, None]), pa.int64(), [1, None]),
        (pa.array([1 << 53]), pa.float64(), [float(1 << 53)]),
        (pa.array([0.1]), pa.float32(), [pytest.approx(0.1)]),
        (pa.array([float("inf")]), pa.float32(), [float("inf")]),
        (pa.array([5]), pa.decimal128(5, 2), [Decimal("5.00")]),
        (pa.array([Decimal("5.10")]), pa.decimal128(20, 4), [Decimal("5.1000")]),
        (pa.array([Decimal("5.00")]), pa.int64(), [5]),
        (pa.array(["x"], pa.large_string()), pa.string(), ["x"]),
        (pa.array(["x"], pa.string_view()), pa.string(), ["x"]),
        (pa.array(["x"]).dictionary_encode(), pa.string(), ["x"]),
        (pa.array([b"xy"], pa.binary(2)), pa.binary(), [b"xy"]),
        (pa.nulls(2), pa.string(), [None, None]),
        (pa.array([NOON.date()]), UTC, [NOON.replace(hour=0)]),
        (pa.array([NOON.replace(tzinfo=None)]), UTC, [NOON]),
        (pa.array([NOON], pa.timestamp("ns", "Europe/Berlin")), UTC, [NOON]),
        (pa.array([NOON.date()]), pa.timestamp("us"), [NOON.replace(hour=0, tzinfo=None)]),
        (pa.array([[1]], pa.large_list(pa.int8())), pa.list_(pa.int64()), [[1]]),
        (pa.array([{"a": 1}], pa.struct([("a", pa.int8())])), pa.struct([("a", pa.int64())]), [{"a": 1}]),
    ],
)
def test_values_that_the_column_holds_are_stored(values: pa.Array, kind: pa.DataType, held: list[Any]) -> None:
    assert _conformed(values, kind) == held


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([128]), pa.int8()),
        (pa.array([1 << 63], pa.uint64()), pa.int64()),
        (pa.array([1.5]), pa.int64()),
        (pa.array([float("nan")]), pa.int64()),
        (pa.array([(1 << 53) + 1]), pa.float64()),
        (pa.array([1e300]), pa.float32()),
        (pa.array([2.0**63]), pa.int64()),
        (pa.array([2.0**31], pa.float32()), pa.int32()),
        (pa.array([(1 << 31) - 1], pa.int32()), pa.float32()),
        (pa.array([(1 << 63) - 1]), pa.float64()),
        (pa.array([1000]), pa.decimal128(4, 2)),
        (pa.array([Decimal("5.123")]), pa.decimal128(5, 2)),
        (pa.array([Decimal("5.1")]), pa.int64()),
        (pa.array([0.5]), pa.decimal128(5, 2)),
        (pa.array([Decimal("0.5")]), pa.float64()),
        (pa.array(["1"]), pa.int64()),
        (pa.array([1]), pa.string()),
        (pa.array(["2013-01-05"]), UTC),
        (pa.array([True]), pa.int64()),
        (pa.array([1]), pa.bool_()),
        (pa.array([1]), UTC),
        (pa.array([NOON]), pa.date32()),
        (pa.array([NOON], UTC), pa.timestamp("us")),
        (pa.array([1], pa.timestamp("ns")), UTC),
        (pa.array([1 << 60], pa.timestamp("s")), UTC),
        (pa.array(["x"]), pa.binary()),
        (pa.array([[1]]), pa.int64()),
        (pa.array([{"b": 1}]), pa.struct([("a", pa.int64())])),
        (pa.array([{"a": "x"}]), pa.struct([("a", pa.int64())])),
    ],
)
def test_what_the_column_cannot_hold_is_refused_by_name(values: pa.Array, kind: pa.DataType) -> None:
    with pytest.raises(InvalidInput, match="column=x"):
        _conformed(values, kind)


def test_nulls_are_counted_where_there_can_be_none() -> None:
    with pytest.raises(InvalidInput, match="column=x count=2"):
        _conformed(pa.array([1, None, None]), pa.int64(), nullable=False)


def test_columns_of_equal_type_are_not_copied() -> None:
    table = pa.table({"x": pa.array(range(1000))})
    kept = conform(table, table.schema)
    assert kept["x"].chunk(0).buffers()[1].address == table["x"].chunk(0).buffers()[1].address


def test_a_wrong_type_says_how_to_cast_in_words_that_run() -> None:
    frame = pd.DataFrame({"x": ["1.5"], "ts": ["2013-01-05T07:00:00"]})
    for name, kind in (("x", pa.float64()), ("ts", pa.timestamp("us", "UTC"))):
        schema = pa.schema([(name, kind)])
        with pytest.raises(InvalidRows) as raised:
            conform(pa.table({name: frame[name].tolist()}), schema)
        in_sql, in_pandas, in_polars = re.findall(r"(?:first: |, )(.+?) in (?:SQL|pandas|polars)", str(raised.value))
        by_pandas = pa.array(eval(in_pandas, {"df": frame, "pd": pd}))
        by_polars = pl.from_pandas(frame).select(eval(in_polars, {"pl": pl})).to_arrow().column(0)
        by_sql = duckdb.connect().from_arrow(pa.table({name: frame[name].tolist()})).project(in_sql).to_arrow_table()
        assert by_pandas.cast(kind).to_pylist() == by_polars.cast(kind).to_pylist()
        assert by_sql.num_rows == 1
        assert conform(pa.table({name: by_pandas}), schema).num_rows == 1


def test_a_missing_column_shows_what_was_found_and_the_nearest() -> None:
    schema = pa.schema([("client", pa.int64()), ("value", pa.int64())])
    with pytest.raises(InvalidRows, match=r"missing column.*column=value nearest=vlaue found=client,vlaue"):
        conform(pa.table({"client": [1], "vlaue": [2]}), schema)
