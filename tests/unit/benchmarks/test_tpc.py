"""The harness that sets queries over a lake beside plain files: its comparison, texts, and a run with our own rows."""

from __future__ import annotations

import doctest
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.tpc import comparing, loading, report, texts
from benchmarks.tpc.comparing import difference
from benchmarks.tpc.environment import Suite
from benchmarks.tpc.loading import Layout, load
from benchmarks.tpc.running import SIDES, Effort, Outcome, Side, run_query
from benchmarks.tpc.side import Place
from tests.contract.trade import tables

COUNT = "SELECT count(*) AS n, sum(l_quantity) AS q FROM lineitem"
TIES = "SELECT o_orderstatus FROM orders ORDER BY o_orderstatus LIMIT 3"
EFFORT = Effort(repeats=1, limit_seconds=60)


@pytest.mark.parametrize("module", [comparing, loading, report, texts])
def test_the_examples_run(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_decimals_are_compared_exactly_and_doubles_nearly() -> None:
    tenth, more = ([Decimal(value)] for value in ("0.1000000000000000", "0.1000000000000001"))
    assert difference(pa.table({"a": tenth}), pa.table({"a": more})) is not None
    assert difference(pa.table({"a": [0.1]}), pa.table({"a": [0.1 + 1e-16]})) is None
    assert (
        difference(pa.table({"a": [0.1]}), pa.table({"a": [None]}, schema=pa.schema({"a": pa.float64()}))) is not None
    )


def test_rows_are_a_bag() -> None:
    twice = pa.table({"a": ["x", "x", "y"]})
    assert difference(twice, pa.table({"a": ["y", "x", "x"]})) is None
    assert difference(twice, pa.table({"a": ["x", "y", "y"]})) == "ours alone has ('x',); plain alone has ('y',)"
    assert difference(twice, pa.table({"a": ["x"]})) == "3 rows and 1"


def test_a_summary_lists_what_failed_and_what_is_wrong() -> None:
    found = [
        Outcome("duckdb", "tpch", 1, 4, {"ours": 0.2, "plain": 0.1}),
        Outcome("duckdb", "tpch", 2, 4, {"plain": 0.1}, errors={"ours": "InvalidStatement: no"}),
        Outcome("duckdb", "tpch", 3, 4, {"ours": 0.2, "plain": 0.1}, wrong="1 rows and 2"),
    ]
    said = list(report.summary(found))
    assert said[1] == "sum of 1: ours 0.20 s, plain 0.10 s, 2.00; geometric mean 2.00"
    assert "failed by ours alone: 1 (2)" in said
    assert "wrong: 1 (3)" in said


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    folder = tmp_path_factory.mktemp("made")
    made = {name: rows for name, rows in tables().items() if name in ("orders", "lineitem")}
    for name, rows in made.items():
        pq.write_table(rows, folder / f"{name}.parquet")
    return Suite("tpch", 0.001, {name: folder / f"{name}.parquet" for name in made}, {})


def opened(folder: Path, plain: dict[str, Path]) -> list[Side]:
    place = Place(str(folder), {name: str(path) for name, path in plain.items()}, 4 << 30)
    return [Side("duckdb", side, place, folder) for side in SIDES]


@pytest.fixture(scope="module")
def sides(suite: Suite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Side]]:
    folder = tmp_path_factory.mktemp("lake")
    made = opened(folder, load(suite, folder, Layout(deleted=0.1, appends=5)))
    yield made
    for side in made:
        side.kill()


def test_both_sides_have_the_rows_that_are_left(suite: Suite, sides: Sequence[Side]) -> None:
    found = run_query(sides, "tpch", 1, COUNT, EFFORT)
    assert (found.errors, found.wrong, set(found.seconds)) == ({}, None, set(SIDES))
    whole = duckdb.sql(f"SELECT count(*) FROM '{suite.files['lineitem']}'").fetchall()[0][0]
    assert 0.8 * whole < sides[0].rows()["n"][0].as_py() < 0.97 * whole


def test_rows_that_tie_at_a_limit_are_no_difference(sides: Sequence[Side]) -> None:
    tied = TIES.replace("o_orderstatus FROM", "o_orderkey, o_orderstatus FROM")
    found = run_query(sides, "tpch", 1, tied, EFFORT)
    assert (found.errors, found.wrong) == ({}, None)


def test_a_query_that_is_refused_or_too_long_is_a_line_and_the_next_one_runs(sides: Sequence[Side]) -> None:
    refused = run_query(sides, "tpch", 1, "SELECT random() AS r FROM orders", EFFORT)
    assert refused.errors["ours"].startswith("InvalidStatement: this function is not allowed")
    assert "plain" in refused.seconds
    late = run_query(sides, "tpch", 2, "SELECT sum(a.l_quantity * b.l_tax) FROM lineitem a, lineitem b, lineitem c",
                     Effort(repeats=1, limit_seconds=0.5))  # fmt: skip
    assert set(late.errors) == set(SIDES)
    assert "nothing was heard of it" in report.line(late)
    assert run_query(sides, "tpch", 3, COUNT, EFFORT).errors == {}


def test_other_rows_are_told(suite: Suite, sides: Sequence[Side], tmp_path: Path) -> None:
    ours, plain = sides
    place = Place(plain.place.folder, {name: str(path) for name, path in suite.files.items()}, plain.place.memory)
    other = Side("duckdb", "plain", place, tmp_path)
    found = run_query([ours, other], "tpch", 1, COUNT, Effort(repeats=1, limit_seconds=60, memory=True))
    other.kill()
    assert found.wrong is not None
    assert found.wrong.startswith("ours alone has")
    assert set(found.memory) == set(SIDES)
    assert "WRONG" in report.line(found, with_memory=True)
