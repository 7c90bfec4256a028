"""Long statements: every step of ours costs what the text is long, or the statement is refused."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidInput, InvalidPredicate, InvalidStatement
from lakehouse.sql.allowed import check_allowed
from lakehouse.sql.names import resolve
from lakehouse.sql.normal import normalized
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.push import pushed
from lakehouse.sql.translation import _prefix
from lakehouse.sql.written import write

SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("s", pa.string())])
SHAPES: dict[str, Callable[[int], str]] = {
    "items": lambda n: "SELECT " + ",".join(["1"] * n),
    "named items": lambda n: "SELECT " + ",".join(f"id AS a{place}" for place in range(n)) + " FROM t",
    "alternatives": lambda n: "SELECT id FROM t WHERE " + " OR ".join(f"id = {place}" for place in range(n)),
    "conditions": lambda n: "SELECT id FROM t WHERE " + " AND ".join(f"id <> {place}" for place in range(n)),
    "values of IN": lambda n: f"SELECT id FROM t WHERE id IN ({','.join(map(str, range(n)))})",
    "rows of VALUES": lambda n: "SELECT * FROM VALUES " + ",".join(["(1, 2)"] * n),
    "sums": lambda n: "SELECT " + "+".join(["id"] * n) + " FROM t",
    "arguments": lambda n: f"SELECT greatest({','.join(['id'] * n)}) FROM t",
    "casts": lambda n: "SELECT " + ",".join(["CAST(id AS INT)"] * (n // 2)) + " FROM t",
    "cases": lambda n: f"SELECT CASE {' '.join(f'WHEN id = {one} THEN 1' for one in range(n))} END FROM t",
    "patterns": lambda n: "SELECT id FROM t WHERE " + " OR ".join(["s LIKE 'a%'"] * (n // 2)),
    "unions": lambda n: " UNION ALL ".join(["SELECT 1"] * (n // 4)),
    "items of one query": lambda n: (
        "WITH c AS (SELECT 1 AS id) SELECT 1 FROM " + ",".join(f"c AS a{place}" for place in range(n // 4))
    ),
}
LEAST, TIMES = 500, 6


def steps(text: str) -> float:
    """Processor time of all that is done before an engine begins; what else the process holds is not gone through."""
    gc.disable()
    try:
        return _steps(text)
    finally:
        gc.enable()


def _steps(text: str) -> float:
    begun = time.process_time()
    tree = parse_statement(text).tree
    assert tree is not None
    check_allowed(tree, "duckdb")
    tree = normalized(tree.copy())
    references = resolve(tree, ["t"], _prefix(tree))
    write(tree, "duckdb")
    pushed(tree, references, {one.relation: SCHEMA for one in references})
    return time.process_time() - begun


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_statement_that_is_longer_takes_as_much_longer(shape: Callable[[int], str]) -> None:
    short = min(steps(shape(LEAST)) for _ in range(3))
    long = min(steps(shape(TIMES * LEAST)) for _ in range(2))
    assert long < 3 * TIMES * short  # the square would be TIMES times as much


def test_a_statement_of_too_many_tables_is_refused(still_lake: lakehouse.Lake) -> None:
    joined = " ".join(f"JOIN trips AS t{place} ON t{place}.id = trips.id" for place in range(5000))
    with pytest.raises(InvalidInput, match="too many tables"):
        still_lake.sql(f"SELECT 1 FROM trips {joined}", engine="duckdb")


def chain(length: int) -> str:
    named = (f"c{place} AS (SELECT id FROM c{place - 1})" for place in range(1, length))
    return f"WITH c0 AS (SELECT id FROM trips WHERE id > 1), {', '.join(named)} SELECT count(*) FROM c{length - 1}"


def test_a_long_chain_of_queries_is_followed(still_lake: lakehouse.Lake) -> None:
    assert still_lake.query(chain(200)).rows.column(0).to_pylist() == [3]
    with pytest.raises(InvalidInput, match="nested too deeply; take parentheses away"):
        still_lake.query(chain(3000))


@pytest.mark.parametrize("depth", [200, 1000, 20_000])
def test_too_many_parentheses_are_refused_by_name(still_lake: lakehouse.Lake, depth: int) -> None:
    nested = "(" * depth + "id = 1" + ")" * depth
    with pytest.raises(InvalidStatement, match="nested too deeply; take parentheses away"):
        still_lake.sql(f"SELECT id FROM trips WHERE {nested}", engine="duckdb")
    with pytest.raises(InvalidPredicate, match=r"nested too deeply; take parentheses away, or say|too long"):
        still_lake.table("trips").scan(where=nested)


@pytest.mark.parametrize("where", [f"id = {'-(' * 80}1{')' * 80}", f"id = {'abs(' * 101}1{')' * 101}"])
def test_a_filter_nested_too_deeply_says_what_to_do(still_lake: lakehouse.Lake, where: str) -> None:
    with pytest.raises(InvalidPredicate, match="nested too deeply; take parentheses away, or say it as a list"):
        still_lake.table("trips").scan(where=where)


@pytest.mark.parametrize("call", ["CAST(", "ln(", "abs(CAST(", "NOT (", "(SELECT ", "CASE WHEN true THEN ", "-", "("])
def test_deep_nests_become_no_longer_text_or_are_refused(call: str) -> None:
    ends = {"CAST(": " AS INT)", "abs(CAST(": " AS INT))", "CASE WHEN true THEN ": " END", "-": ""}
    for depth in (3, 9, 50, 1000):
        text = "SELECT " + (call + " ") * depth + "1" + ends.get(call, ")") * depth
        with suppress(InvalidInput):
            tree = parse_statement(text).tree
            assert tree is not None
            check_allowed(tree, "duckdb")
            assert len(write(normalized(tree.copy()), "duckdb")) < 2_000 * len(text)
