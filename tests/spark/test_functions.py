"""The answers that statements in process are held to are still Spark's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.query import bind
from tests.spark.write_functions import ask, prepare
from tests.unit.sql.functions_table import ALL, ANSWERS, ROWS, statement
from tests.unit.sql.test_functions import ERROR, in_order

SOME = ALL[::61]
WRITTEN = ALL[7::23]


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    prepare(spark)
    yield spark
    spark.catalog.dropTempView("r")


def test_the_stored_answers_are_what_spark_says(session: Any) -> None:
    stored = json.loads(ANSWERS.read_text(encoding="utf-8"))
    assert len(SOME) > 20
    assert {one: ask(session, statement(one)) for one in SOME} == {one: stored[one] for one in SOME}


def test_what_is_written_for_spark_means_what_was_given(session: Any, tmp_path: Path) -> None:
    stored = json.loads(ANSWERS.read_text(encoding="utf-8"))
    session.table("r").createOrReplaceTempView("lake_relation_0")
    different, asked = {}, 0
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        lake.create_table("r", ROWS.schema.set(0, ROWS.schema.field(0).with_nullable(False)), time="at")
        for one in WRITTEN:
            tree = parse_statement(statement(one)).tree
            assert tree is not None
            try:
                text = bind(lake.session, tree, as_of=None, engine="spark").text
            except InvalidInput:
                continue
            asked += 1
            found = ask(session, text)
            if stored[one] != ERROR and in_order(one, found) != in_order(one, stored[one]):
                different[one] = found
    session.catalog.dropTempView("lake_relation_0")
    assert asked > 50
    assert different == {}
