"""Whatever is asked of a table, indexes change which segments are opened and no row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from tests.unit.engine.harness import comparable
from tests.unit.indexed import EQUALITIES, opened, twins
from tests.unit.predicate.filters import FILTERS


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    folder: Path = tmp_path_factory.mktemp("indexed")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        yield twins(lake)


@pytest.mark.parametrize("filters", [EQUALITIES, FILTERS], ids=["equalities", "filters"])
def test_rows_are_the_same_with_indexes_and_without(tables: tuple[Any, Any], filters: list[str]) -> None:
    indexed, plain = tables
    saved = 0
    for where in filters:
        one, other = indexed.scan(where=where), plain.scan(where=where)
        assert comparable(one.to_arrow()) == comparable(other.to_arrow()), where
        fewer = len(other.plan().segments) - len(one.plan().segments)
        assert fewer >= 0, where
        saved += fewer
    assert saved > 20


def test_a_value_of_one_row_opens_the_segment_of_that_row(tables: tuple[Any, Any]) -> None:
    indexed, plain = tables
    assert [opened(plain, f"id = {number}") for number in (3, 4, 5)] == [4, 5, 5]
    assert [opened(indexed, f"id = {number}") for number in range(10)] == [1] * 10
