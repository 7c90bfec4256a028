"""The answers that statements in process are held to are still Spark's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.write_functions import ask, prepare
from tests.unit.sql.functions_table import ALL, ANSWERS, statement

SOME = ALL[::61]


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    prepare(spark)
    yield spark
    spark.catalog.dropTempView("r")


def test_the_stored_answers_are_what_spark_says(session: Any) -> None:
    stored = json.loads(ANSWERS.read_text(encoding="utf-8"))
    assert len(SOME) > 20
    assert {one: ask(session, statement(one)) for one in SOME} == {one: stored[one] for one in SOME}
