"""Functions, casts and operators of statements in process give what Spark gives, or say that only Spark does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

import lakehouse
from lakehouse.errors import InvalidInput
from lakehouse.sql.allowed import NODES, TYPES
from lakehouse.sql.functions import NAMES
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.query import bind
from tests.unit.sql.functions_known import DIFFERENT, ONLY_SPARK
from tests.unit.sql.functions_table import ALL, ANSWERS, FUNCTIONS, ROWS, statement

ERROR = "error"


def encoded(value: Any) -> str:
    """An answer as text: numbers that are equal are one text, whatever their type."""
    match value:
        case bool() | None:
            return str(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        case int() | float() | Decimal():
            number = float(value)
            return f"{number:.12g}" if abs(number) < 1e15 or isinstance(value, float) else str(value)
        case list():
            return "[" + ", ".join(encoded(one) for one in value) + "]"
    return repr(value)


def column_of(values: pa.ChunkedArray) -> list[str] | str:
    """A column's answers, encoded; one for all rows if they are equal."""
    answers = _answers(values)
    return answers[0] if len(set(answers)) == 1 else answers


def _answers(values: pa.ChunkedArray) -> list[str]:
    """Days and microseconds are numbers: the engines go beyond Python's years."""
    if pa.types.is_date(values.type):
        return [f"{one} days" for one in values.cast(pa.int32()).to_pylist()]
    if pa.types.is_timestamp(values.type):
        return [f"{one} us" for one in values.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()]
    return [encoded(one) for one in values.to_pylist()]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    folder: Path = tmp_path_factory.mktemp("functions")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        lake.create_table("r", ROWS.schema.set(0, ROWS.schema.field(0).with_nullable(False)), time="at").append(ROWS)
        yield lake


@pytest.fixture(scope="module")
def database(lake: lakehouse.Lake) -> duckdb.DuckDBPyConnection:
    """The table where the text of a statement looks for it: a scan for each of a thousand statements takes long."""
    connection = duckdb.connect(":memory:")
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("rows", lake.table("r").scan().to_arrow())
    connection.execute("CREATE TABLE lake_relation_0 AS SELECT * FROM rows ORDER BY o")
    return connection


def answered(lake: lakehouse.Lake, database: duckdb.DuckDBPyConnection, expression: str) -> list[str] | str:
    tree = parse_statement(statement(expression)).tree
    assert tree is not None
    try:
        found = database.sql(bind(lake.session, tree, as_of=None, engine="duckdb").text).to_arrow_table()
    except (InvalidInput, duckdb.Error):
        return ERROR
    return column_of(found.column(0))


def in_order(expression: str, answer: list[str] | str) -> list[str] | str:
    """Answers as they can be compared: rows of windows by parts come part by part, in any order of these."""
    return sorted(answer) if "PARTITION BY" in expression and isinstance(answer, list) else answer


@pytest.fixture(scope="module")
def found(lake: lakehouse.Lake, database: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    return {one: answered(lake, database, one) for one in ALL}


SPARK: dict[str, Any] = json.loads(ANSWERS.read_text(encoding="utf-8"))


def test_every_expression_has_an_answer_of_spark() -> None:
    assert list(SPARK) == list(ALL)
    assert sum(answer != ERROR for answer in SPARK.values()) > 1000


def test_every_function_cast_and_operator_of_the_list_has_expressions() -> None:
    assert set(FUNCTIONS) == set(NAMES.split())
    kinds, used, targets = {*NODES}, set(), set()
    for expression in ALL:
        tree = parse_statement(statement(expression)).tree
        assert tree is not None
        for node in tree.walk():
            used.add(type(node))
            if isinstance(node, exp.DataType):
                targets.add(node.this)
    operators = {kind for kind in kinds if issubclass(kind, exp.Binary | exp.Unary | exp.Predicate | exp.Cast)}
    # what has two names here is one type to Spark: STRING, and TIMESTAMP with the zone of the session
    assert TYPES - targets <= {exp.DType.VARCHAR, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMP}
    assert {kind.__name__ for kind in operators - used} <= {"Exists"}


def test_in_process_they_are_what_spark_says_or_listed(found: dict[str, Any]) -> None:
    different = {one for one in ALL if found[one] != ERROR and in_order(one, found[one]) != in_order(one, SPARK[one])}
    assert different == {one for held in DIFFERENT.values() for one in held}


def test_only_those_that_are_listed_are_refused_in_process_alone(found: dict[str, Any]) -> None:
    assert {one for one in ALL if found[one] == ERROR and SPARK[one] != ERROR} == set(ONLY_SPARK)


@pytest.mark.parametrize("sentence", DIFFERENT)
def test_a_known_difference_is_in_the_documentation(sentence: str) -> None:
    written = " ".join(Path("docs/sql.md").read_text(encoding="utf-8").split())
    assert sentence in written


@pytest.mark.parametrize("expression", ONLY_SPARK[:: max(1, len(ONLY_SPARK) // 8)])
def test_what_only_spark_calculates_is_a_documented_error(lake: lakehouse.Lake, expression: str) -> None:
    with pytest.raises(InvalidInput):
        lake.query(statement(expression))
