"""Filters as expressions of pyarrow and polars: rows are those that plain Python finds, with nulls and NaN."""

import math
import operator
import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakehouse
from lakehouse.errors import InvalidPredicate, UnknownColumn

NAN = math.nan
AT = datetime(2013, 1, 5, tzinfo=UTC)
ROWS = [
    {"id": place, "at": AT.replace(hour=place % 3), "x": x, "y": y, "n": n, "s": s, "b": b}
    for place, (x, y, n, s, b) in enumerate(
        (x, y, n, s, b)
        for x in (None, NAN, -1.5, 0.0, 2.0, math.inf)
        for y, n, s, b in (
            (NAN, 1, "a", True), (None, None, None, None), (2.0, -7, "it's", False), (0.0, 2, "a\\b", None),
        )
    )
]  # fmt: skip
LEAVES = [
    *(("compare", sign, name, value) for sign in ("==", "!=", "<", "<=", ">", ">=") for name, value in (
        ("x", 0.0), ("x", 2), ("n", 1), ("n", 1.5), ("s", "a"), ("s", "it's"), ("s", "a\\b"), ("b", True),
        ("at", AT.replace(hour=1)),
    )),
    *(("columns", sign, "x", other) for sign in ("==", "!=", "<", "<=", ">", ">=") for other in ("y", "n")),
    ("in", "n", (1, 2)), ("in", "n", (1, None)), ("in", "n", (None,)), ("in", "x", (2.0, 0.0)),
    ("in", "s", ("a", "it's")), ("null", "x"), ("null", "s"), ("nan", "x"), ("column", "b"), ("starts", "s", "a"),
]  # fmt: skip
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def random_tree(chance: random.Random, depth: int) -> Any:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(LEAVES)
    match chance.choice(["and", "or", "not"]):
        case "not":
            return ("not", random_tree(chance, depth - 1))
        case both:
            return (both, random_tree(chance, depth - 1), random_tree(chance, depth - 1))


CHANCE = random.Random(20130105)
TREES = LEAVES + [("not", one) for one in LEAVES] + [random_tree(CHANCE, 3) for _ in range(80)]


def expression(tree: Any, field: Callable[[str], Any], library: Any) -> Any:
    match tree:
        case ("compare", sign, name, value):
            return SIGNS[sign](field(name), value)
        case ("columns", sign, left, right):
            return SIGNS[sign](field(left), field(right))
        case ("in", name, values):
            return field(name).isin(list(values)) if library is pc else field(name).is_in(list(values))
        case ("null", name):
            return field(name).is_null()
        case ("nan", name):
            return field(name).is_nan()
        case ("column", name):
            return field(name)
        case ("starts", name, text):
            return pc.starts_with(field(name), text) if library is pc else field(name).str.starts_with(text)
        case ("not", inner):
            return ~expression(inner, field, library)
        case ("and", left, right):
            return expression(left, field, library) & expression(right, field, library)
        case ("or", left, right):
            return expression(left, field, library) | expression(right, field, library)
    raise AssertionError(tree)


def truth(tree: Any, row: dict[str, Any], library: Any) -> bool | None:
    """What an expression is for a row: Arrow's NaN is as IEEE says, that of polars equals itself and is greatest."""
    match tree:
        case ("compare", sign, name, value):
            return compared(sign, row[name], value, library)
        case ("columns", sign, left, right):
            return compared(sign, row[left], row[right], library)
        case ("in", name, values):
            if library is pc:
                return row[name] in values
            return None if row[name] is None else row[name] in values
        case ("null", name):
            return row[name] is None
        case ("nan", name):
            return None if row[name] is None else math.isnan(row[name])
        case ("column", name):
            return row[name]
        case ("starts", name, text):
            return None if row[name] is None else row[name].startswith(text)
        case ("not", inner):
            found = truth(inner, row, library)
            return None if found is None else not found
        case ("and", *parts):
            return every([truth(one, row, library) for one in parts])
        case ("or", *parts):
            found = every([None if one is None else not one for one in (truth(one, row, library) for one in parts)])
            return None if found is None else not found
    raise AssertionError(tree)


def every(parts: list[bool | None]) -> bool | None:
    return False if False in parts else None if None in parts else True


def compared(sign: str, left: Any, right: Any, library: Any) -> bool | None:
    if left is None or right is None:
        return None
    if library is pl and isinstance(left, float):
        left, right = ((math.isnan(one), 0.0 if math.isnan(one) else one) for one in (left, right))
    return SIGNS[sign](left, right)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Table]:
    folder: Path = tmp_path_factory.mktemp("expressions")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        ddl = "id BIGINT, at TIMESTAMP, x DOUBLE, y DOUBLE, n BIGINT, s STRING, b BOOLEAN, d DATE, c DECIMAL(9, 2)"
        made = lake.create_table("t", ddl, time="at")
        made.append([{**row, "d": date(2013, 1, 5), "c": Decimal("1.50")} for row in ROWS])
        yield made


def ids(scan: lakehouse.Scan) -> list[int]:
    return sorted(scan.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(("library", "field"), [(pc, pc.field), (pl, pl.col)], ids=["pyarrow", "polars"])
def test_an_expression_passes_the_rows_that_plain_python_finds(
    table: lakehouse.Table, library: Any, field: Callable[[str], Any]
) -> None:
    wrong = []
    for tree in TREES:
        wanted = [row["id"] for row in ROWS if truth(tree, row, library) is True]
        if ids(table.scan(columns=["id"], where=expression(tree, field, library))) != wanted:
            wrong.append(tree)
    assert wrong == []


def test_the_oracle_is_what_the_libraries_do_themselves(table: lakehouse.Table) -> None:
    rows = table.to_arrow()
    frame = pl.from_arrow(rows)
    for tree in TREES:
        by_arrow = rows.filter(expression(tree, pc.field, pc))["id"].to_pylist()
        assert sorted(by_arrow) == [row["id"] for row in ROWS if truth(tree, row, pc) is True], tree
        by_polars = frame.filter(expression(tree, pl.col, pl))["id"].to_list()
        assert sorted(by_polars) == [row["id"] for row in ROWS if truth(tree, row, pl) is True], tree


@pytest.mark.parametrize(
    ("where", "count"),
    [
        (pc.field("d") == date(2013, 1, 5), 24),
        (pc.field("c") > Decimal("1.49"), 24),
        (pc.field("x").is_null(nan_is_null=True), 8),
        (pc.field("n").isin([]), 0),
        (pl.col("d") == date(2013, 1, 5), 24),
        (pl.col("c") > Decimal("1.49"), 24),
        (pl.col("n").is_between(1, 2), 12),
        (pl.col("at").is_between(AT, AT.replace(hour=1), closed="left"), 8),
        (pl.lit(True), 24),
    ],
)
def test_other_values_and_forms(table: lakehouse.Table, where: Any, count: int) -> None:
    assert table.scan(where=where).count() == count


def test_an_expression_prunes_files_as_sql_does(table: lakehouse.Table) -> None:
    assert len(table.scan(where=pc.field("at") > datetime(2014, 1, 1, tzinfo=UTC)).plan().segments) == 0
    assert len(table.scan(where=pl.col("x") > 1e308).plan().segments) == 1  # infinite


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (pc.field("x") + 1 > 2, "add_checked"),
        (pc.field(0) == 1, "names its columns"),
        (pc.field("x") == NAN, "is_nan"),
        (pc.field("x") == pc.scalar(None), "is_null"),
        (pc.field("s", "t") == 1, "nested_field_ref"),
        (pc.and_(pc.field("b"), pc.field("b")), "and"),
        (pc.field("x").cast(pa.int64()) == 1, "cast"),
        (pc.starts_with(pc.field("s"), "a", ignore_case=True), "starts_with"),
        (pl.col("x") + 1 > 2, "Plus"),
        (pl.col("x") == NAN, "is_nan"),
        (pl.col("x").eq_missing(1), "EqValidity"),
        (pl.col("n").is_in([1], nulls_equal=True), "nulls_equal"),
        (pl.col("x").map_batches(lambda one: one > 1, return_dtype=pl.Boolean), "Python"),
        (pl.col("x").sum() > 1, "Agg"),
        (pl.col("x", "y") > 1, "polars"),
        (pl.col("n") == "a", "type"),
    ],
    ids=str,
)
def test_any_other_part_is_refused_by_name(table: lakehouse.Table, where: Any, said: str) -> None:
    with pytest.raises(InvalidPredicate, match=said):
        table.scan(where=where)


@pytest.mark.parametrize("where", [pc.field("nn") > 1, pl.col("nn") > 1], ids=["pyarrow", "polars"])
def test_an_unknown_column_names_the_nearest(table: lakehouse.Table, where: Any) -> None:
    with pytest.raises(UnknownColumn, match="column=nn nearest=n"):
        table.scan(where=where)


def test_deletes_take_expressions_too(table: lakehouse.Table) -> None:
    before = table.version
    assert table.delete(pc.field("n") == 1).rows_deleted == 6
    table.restore(before)
    assert table.count() == len(ROWS)
