"""Filters by Spark against an evaluator in plain Python, and that against Spark's own reading of the same text."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.core.interval import Interval
from lakehouse.engine.spark import to_spark_type
from lakehouse.operations import row_change
from lakehouse.testing.campaign.evaluator import Node, evaluate, written
from lakehouse.testing.campaign.filters import run
from lakehouse.testing.campaign.hostile import COLUMNS, SCHEMA, literal, make_rows, plain_rows
from tests.unit.predicate.test_beyond import BEYOND, HIGH, LOW, ROWS, filled

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


@pytest.fixture
def table(spark: Any, sqlite_url: str, warehouse: Any) -> Any:
    with lakehouse.connect(sqlite_url, str(warehouse), spark=spark) as opened:
        yield filled(opened)


def by_spark(table: Any, where: str | None = None) -> list[Any]:
    found = table.scan(where=where).to_spark().toArrow()["n"].to_pylist()
    return sorted(found, key=lambda n: (n is None, n))


def test_filters_by_spark_mean_what_the_evaluator_says(spark: Any) -> None:
    assert run(40, seed=3, spark=spark).wrong == []


def comparisons(chance: random.Random) -> list[Node]:
    columns = [Node("column", family, (name,)) for family, names in COLUMNS.items() for name in names]
    made = [
        Node("compare", "bool", (column, chance.choice(OPERATORS), literal(chance, column.kind)))
        for column in columns
        for _ in range(6)
    ]
    numbers = [column for column in columns if column.kind in ("int", "double")]
    made += [Node("compare", "bool", (one, "=", other)) for one in numbers for other in numbers]
    # Spark replaces ${...} in text of its own accord.
    return [node for node in made if "${" not in written(node)]


def is_beyond(node: Node) -> bool:
    """Whether Spark's optimizer takes a null for a value, beside a number that no column of whole numbers holds."""
    _, _, other = node.parts
    return (
        other.op == "literal"
        and other.kind == "int"
        and other.parts[0] == other.parts[0]
        and abs(other.parts[0]) >= 128
    )


def test_the_evaluator_says_what_spark_says_of_the_same_text(spark: Any) -> None:
    chance = random.Random(11)
    tables = make_rows(chance)
    rows = {row["id"]: row for row in plain_rows(tables)}
    frame = spark.createDataFrame(pa.concat_tables(tables), to_spark_type(SCHEMA))
    nodes, other = comparisons(chance), []
    for first in range(0, len(nodes), 40):
        batch = nodes[first : first + 40]
        texts = [f"{written(node)} AS c{place}" for place, node in enumerate(batch)]
        for found in frame.selectExpr("id", *texts).toArrow().to_pylist():
            for place, node in enumerate(batch):
                expected = evaluate(node, rows[found["id"]])
                if found[f"c{place}"] is not expected and not (expected is None and is_beyond(node)):
                    other.append((written(node), found["id"], expected))
    assert other == []


def test_values_beyond_a_columns_type_mean_the_same_by_spark(table: Any) -> None:
    assert [where for where, expected in BEYOND[::2] if by_spark(table, where) != expected] == []


def test_a_delete_by_spark_of_values_beyond_a_columns_type_leaves_a_table_that_both_read(table: Any) -> None:
    table.delete("int IN (2147483647, 3000000000) AND n > 0", engine="spark")
    assert by_spark(table) == [LOW, None]
    table.delete("tiny = 300", engine="spark")
    table.update({"double": "7"}, "tiny IN (-128, 300)", engine="spark")
    assert by_spark(table, "double = 7") == [LOW]


@pytest.mark.parametrize("listed", [{"int": (2147483647, 3_000_000_000)}, {"tiny": (127, 300)}, {"int": (1 << 70,)}])
def test_a_tombstone_of_keys_that_a_column_cannot_hold_is_read_by_spark(
    table: Any, monkeypatch: pytest.MonkeyPatch, listed: dict[str, Any]
) -> None:
    monkeypatch.setattr(row_change, "whole_scope", lambda *_: (Interval("2013-01-01", None), listed))
    table.delete("n = 1")
    table.append(ROWS)
    hidden = 1 if 127 in listed.get("tiny", ()) or 2147483647 in listed.get("int", ()) else 0
    assert by_spark(table) == [LOW, LOW, *[HIGH] * (2 - hidden), None, None]
