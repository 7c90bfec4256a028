"""Merges by Spark mean what a loop over two lists of rows says."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import lakehouse
from lakehouse.testing.merges import planned
from tests.contract.test_merges import run_and_compare
from tests.unit.sql.test_merge_rows import compared


@pytest.fixture
def lake(spark: Any, sqlite_url: str, warehouse: Any) -> Any:
    with lakehouse.connect(sqlite_url, str(warehouse), spark=spark) as opened:
        yield opened


def test_random_merges_come_to_what_a_loop_over_rows_comes_to(lake: Any, spark: Any) -> None:
    outcomes = Counter(
        run_and_compare(lake, planned(random.Random(seed)), "spark" if seed % 2 else "call", spark.createDataFrame)
        for seed in range(12)
    )
    assert min(outcomes[one] for one in ("changed", "nothing", "refused")) > 0, outcomes


def test_statements_that_a_query_joins_come_to_what_a_loop_over_rows_comes_to(lake: Any) -> None:
    outcomes = Counter(compared(lake, seed, "spark") for seed in range(4))
    assert outcomes["changed"], outcomes
