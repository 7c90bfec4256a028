"""Lazy polars frames of scans: what is pushed changes which files are opened, and never which rows come back."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import SegmentUnreadable
from lakehouse.predicate.polars_tree import filter_of

C = pl.col
UTC = dt.UTC
START = dt.datetime(2013, 1, 5, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("id", pa.int64()),
        ("tiny", pa.int8()),
        ("single", pa.float32()),
        ("select", pa.float64()),
        ("Name ü", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("local", pa.timestamp("us")),
        ("price", pa.decimal128(12, 2)),
        ("raw", pa.binary()),
        ("many", pa.list_(pa.int32())),
    ]
)
NUMBERS = [0.1, -0.0, 0.0, math.nan, math.inf, -math.inf, None, 1e300, 16777217.0]
TEXTS = ["", "a", "A", "é", "e\u0301", "it's", 'say "so"', "back\\slash", "line\nbreak", "nul\0", None, "\U0001d4b3"]
DAYS = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2013, 1, 5), None]
PRICES = [Decimal("0.01"), Decimal("-5.00"), Decimal("9999999999.99"), None]
IDS = [0, 1, -1, (1 << 63) - 1, -(1 << 63), (1 << 53) + 1]


def row(number: int) -> dict[str, Any]:
    day = DAYS[number % 4]
    return {
        "at": START + dt.timedelta(hours=7 * number, microseconds=number % 3),
        "id": IDS[number] if number < len(IDS) else 1000 + number,
        "tiny": [None, -128, 127, 0, 5][number % 5],
        "single": [None, 0.5, math.nan, 0.10000000149011612][number % 4],
        "select": NUMBERS[number % len(NUMBERS)],
        "Name ü": TEXTS[number % len(TEXTS)],
        "flag": [True, False, None][number % 3],
        "day": day,
        "local": None if day is None else dt.datetime.combine(day, dt.time(number % 24, microsecond=number)),
        "price": PRICES[number % len(PRICES)],
        "raw": [b"", b"\x00\xff", None][number % 3],
        "many": [None, [], [1, None]][number % 3],
    }


ROWS = [row(number) for number in range(60)]
GONE = {3, 17, 40}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Table]:
    """Eighteen days of rows in files of a week, three of them deleted and the tenth written again."""
    folder = tmp_path_factory.mktemp("lazy")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        table = lake.create_table("hostile", SCHEMA, time="at", grain="week", primary_key=["id"])
        table.append(pa.Table.from_pylist(ROWS, schema=table.schema))
        table.delete(f"id IN ({', '.join(str(ROWS[number]['id']) for number in GONE)}) AND id <> {-(1 << 63)}")
        table.upsert(pa.Table.from_pylist([ROWS[10]], schema=table.schema))
        yield table


@pytest.fixture(scope="module")
def eager(hostile: lakehouse.Table) -> pl.DataFrame:
    return hostile.scan().to_polars()


def left(one: Any, operator: str, other: Any) -> bool | None:
    """What polars says of two values: null of null, NaN the greatest and equal to itself."""
    if one is None or other is None:
        return None
    a, b = ((True, 0) if isinstance(x, float) and math.isnan(x) else (False, x) for x in (one, other))
    return {"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "<>": a != b}[operator]


def turned(found: bool | None) -> bool | None:
    return None if found is None else not found


def both(one: bool | None, other: bool | None) -> bool | None:
    return False if False in (one, other) else None if None in (one, other) else True


def either(one: bool | None, other: bool | None) -> bool | None:
    return turned(both(turned(one), turned(other)))


Case = tuple[pl.Expr, Callable[[dict[str, Any]], bool | None], bool]


def compared(column: str, operator: str, value: Any, pushed: bool = True) -> Case:
    column_of = C(column)
    made = {
        "=": column_of == value, "<": column_of < value, "<=": column_of <= value, ">": column_of > value,
        ">=": column_of >= value, "<>": column_of != value,
    }[operator]  # fmt: skip
    return made, lambda one: left(one[column], operator, value), pushed


MORNING = dt.datetime(1, 1, 1, 23, 59, 59, 999999)  # noqa: DTZ001 - a time without a zone
LATE = START + dt.timedelta(days=9, microseconds=1)
ENDS = [("both", ">=", "<="), ("left", ">=", "<"), ("right", ">", "<="), ("none", ">", "<")]
FIRST = compared("id", ">", 1010)
CASES: dict[str, Case] = {
    **{f"id {op} 1020": compared("id", op, 1020) for op in ("=", "<", "<=", ">", ">=", "<>")},
    **{f"select {op} 0.1": compared("select", op, 0.1) for op in ("=", "<", "<=", ">", ">=", "<>")},
    **{f"name {number}": compared("Name ü", "=", text, "\\" not in text and "\0" not in text)
       for number, text in enumerate(TEXTS) if text is not None},
    "text order": compared("Name ü", ">", "a"),
    "greatest": compared("id", "=", (1 << 63) - 1),
    "least": compared("id", "=", -(1 << 63), False),
    "beyond a double": compared("id", "=", (1 << 53) + 1),
    "zero": compared("select", "=", 0.0),
    "minus zero": compared("select", "<", -0.0),
    "nan": compared("select", "=", math.nan, False),
    "infinite": compared("select", "<", math.inf, False),
    "single": compared("single", ">", 0.25, False),
    "tiny": compared("tiny", ">=", 5),
    "tiny and a fraction": (C("tiny") > 4.5, lambda one: left(one["tiny"], ">", 4.5), False),
    "time": compared("at", ">=", LATE),
    "time elsewhere": (
        C("at").dt.convert_time_zone("Asia/Tokyo") >= pl.lit(LATE).dt.convert_time_zone("Asia/Tokyo"),
        lambda one: left(one["at"], ">=", LATE),
        False,
    ),
    "local time": compared("local", "<", dt.datetime(2013, 1, 5, 12)),  # noqa: DTZ001 - a time without a zone
    "local time of long ago": compared("local", "<=", MORNING),
    "day": compared("day", "=", dt.date(9999, 12, 31)),
    "day before all": compared("day", "<=", dt.date(1, 1, 1)),
    "price": compared("price", ">=", Decimal("0.01")),
    "price between places": compared("price", ">", Decimal("0.005"), False),
    "raw": compared("raw", "=", b"\x00\xff", False),
    "flag": (C("flag"), lambda one: one["flag"], True),
    "not flag": (~C("flag"), lambda one: turned(one["flag"]), True),
    "null": (C("Name ü").is_null(), lambda one: one["Name ü"] is None, True),
    "not null": (C("price").is_not_null(), lambda one: one["price"] is not None, True),
    "null list": (C("many").is_null(), lambda one: one["many"] is None, False),
    "in": (C("id").is_in([1, 1020, 7]), lambda one: one["id"] in (1, 1020, 7), True),
    "in texts and null": (
        C("Name ü").is_in(["é", "it's", None]),
        lambda one: None if one["Name ü"] is None else one["Name ü"] in ("é", "it's"),
        True,
    ),
    "not in": (
        ~C("Name ü").is_in(["é", None]),
        lambda one: None if one["Name ü"] is None else one["Name ü"] != "é",
        True,
    ),
    **{f"between {closed}": (
        C("id").is_between(1010, 1020, closed=closed),
        lambda one, a=after, b=before: both(left(one["id"], a, 1010), left(one["id"], b, 1020)),
        True,
    ) for closed, after, before in ENDS},
    "and": (
        FIRST[0] & (C("select") > 0.0), lambda one: both(FIRST[1](one), left(one["select"], ">", 0.0)), True,
    ),
    "or with nulls": (
        (C("tiny") == 5) | C("flag"), lambda one: either(left(one["tiny"], "=", 5), one["flag"]), True,
    ),
    "neither": (
        ~((C("tiny") == 5) | C("flag")),
        lambda one: turned(either(left(one["tiny"], "=", 5), one["flag"])),
        True,
    ),
    "half of it": (
        FIRST[0] & C("Name ü").str.contains("e"),
        lambda one: both(FIRST[1](one), None if one["Name ü"] is None else "e" in one["Name ü"]),
        True,
    ),
    "or something else": (
        FIRST[0] | C("Name ü").str.contains("e"),
        lambda one: either(FIRST[1](one), None if one["Name ü"] is None else "e" in one["Name ü"]),
        False,
    ),
    "missing equals": (C("tiny").eq_missing(5), lambda one: one["tiny"] == 5, False),
    "two columns": (C("id") > C("tiny"), lambda one: left(one["id"], ">", one["tiny"]), False),
    "cast": (C("id").cast(pl.String) == "1020", lambda one: one["id"] == 1020, False),
}  # fmt: skip


def ids(frame: pl.DataFrame) -> list[int]:
    return sorted(frame["id"].to_list())


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_the_eager_frame_and_of_an_oracle(
    hostile: lakehouse.Table, eager: pl.DataFrame, name: str
) -> None:
    expression, holds, is_pushed = CASES[name]
    expected = sorted(one["id"] for number, one in enumerate(ROWS) if number not in GONE and holds(one))
    frame = hostile.scan().to_polars(lazy=True)
    assert ids(frame.filter(expression).collect()) == ids(eager.filter(expression)) == expected
    assert ids(frame.filter(expression).select("id").collect(engine="streaming")) == expected
    assert (pushed_by(frame, expression, hostile) is not None) == is_pushed


def pushed_by(frame: pl.LazyFrame, expression: pl.Expr, table: lakehouse.Table) -> str | None:
    """The filter that a scan is given, from the predicate that polars gives its source."""
    given: list[pl.Expr] = []

    def source(columns: Any, predicate: pl.Expr, rows: Any, batch: Any) -> Iterator[pl.DataFrame]:
        given.append(predicate)
        yield pl.DataFrame(schema=frame.collect_schema())

    pl.io.plugins.register_io_source(source, schema=frame.collect_schema()).filter(expression).collect()
    return filter_of(json.loads(given[0].meta.serialize(format="json")), table.schema)


def test_columns_counts_and_shapes_are_those_of_the_eager_frame(hostile: lakehouse.Table, eager: pl.DataFrame) -> None:
    whole = hostile.scan().to_polars(lazy=True).collect()
    assert whole.schema == eager.schema
    assert whole.sort("id").equals(eager.sort("id"), null_equal=True)
    scan = hostile.scan(columns=["id", "select", "at"], where="id > 0", interval=("2013-01-06", "2013-01-15"))
    lazy, eager = scan.to_polars(lazy=True), scan.to_polars()
    assert lazy.collect_schema() == eager.schema
    later = C("at") >= LATE
    for asked in (
        lambda frame: frame,
        lambda frame: frame.filter(later).select(pl.len()),
        lambda frame: frame.select(pl.len()),
        lambda frame: frame.select("select").filter(C("select") > 0),
        lambda frame: frame.sort("id").head(3),
        lambda frame: frame.filter(later).sort("id", descending=True).head(3),
        lambda frame: frame.filter(C("id") > C("id").mean()),
        lambda frame: frame.filter(C("id").is_in([])),
        lambda frame: frame.filter(C("id") < 0),
        lambda frame: frame.join(frame.filter(later), on="id").select("id", "at"),
    ):
        found, expected = asked(lazy).collect(), asked(eager)
        assert found.sort(found.columns).equals(expected.sort(found.columns), null_equal=True)
    held = set(ids(eager))
    for rows, asked in (
        (5, lambda frame: frame.head(5)),
        (3, lambda frame: frame.slice(2, 3)),
        (2, lambda frame: frame.filter(later).head(2)),
        (2, lambda frame: frame.tail(2)),
    ):
        found = asked(lazy).collect()
        assert found.height == rows
        assert set(ids(found)) <= held
    assert lazy.head(5).filter(C("id") < 0).collect().height == 0
    assert lazy.head(10**6).filter(later).collect().height == eager.filter(later).height


def test_what_is_pushed_prunes_files(tmp_path: Path) -> None:
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        table = lake.create_table("t", SCHEMA.append(pa.field("n", pa.int64())), time="at")
        rows = [{**one, "n": number} for number, one in enumerate(ROWS)]
        table.append(pa.Table.from_pylist(rows, schema=table.schema))
        day = [one["n"] for one in rows if one["at"].day == 8]
        counted = table.scan(interval="2013-01-08").to_polars(lazy=True).head(1)  # before what filters it
        assert [counted.filter(C("n") == n).collect().height for n in day] == [1, 0, 0]
        first = min(table.segments(), key=lambda one: one.start)
        (lake.warehouse / first.path).unlink()
        frame = table.scan().to_polars(lazy=True)
        for kept in (C("at") >= LATE, C("n").is_in([40, 41]), (C("n") > 30) & C("Name ü").str.contains("e")):
            assert frame.filter(kept).select("n").collect().height > 0
        with pytest.raises(SegmentUnreadable, match=first.path):
            frame.filter(C("n") < 30).collect()


def test_a_hint_that_polars_adds_is_left_out_and_a_form_that_is_not_known_is_not_pushed() -> None:
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    known = {"BinaryExpr": {"left": {"Column": "n"}, "op": "Gt", "right": {"Literal": {"Scalar": {"Int64": 7}}}}}
    hint = {"Display": {"inputs": [], "fmt_str": "dynamic_pred: 1"}}
    assert filter_of({"BinaryExpr": {"left": hint, "op": "And", "right": known}}, schema) == "(`n` > 7)"
    for other in (
        {"BinaryExpr": {**known["BinaryExpr"], "nulls": "equal"}},
        {**known, "More": 1},
        {"BinaryExpr": {**known["BinaryExpr"], "op": "EqValidity"}},
        {"BinaryExpr": {**known["BinaryExpr"], "left": {"Column": "s"}}},
        {"BinaryExpr": {**known["BinaryExpr"], "right": {"Literal": {"Scalar": {"Int64": None}}}}},
        {"Function": {"input": [{"Column": "n"}], "function": {"Boolean": "IsNull"}, "options": 1}},
        {"Function": {"input": [{"Column": "n"}, known], "function": {"Boolean": "IsNull"}}},
        {"Function": {"input": [known, known], "function": {"Boolean": {"IsIn": {"nulls_equal": True}}}}},
        {"Function": {"input": [known], "function": {"Boolean": {"Not": 1}}}},
        {"Column": "n"},
        {"Column": ["n"]},
        {},
        [],
        None,
        7,
    ):
        assert filter_of(other, schema) is None
