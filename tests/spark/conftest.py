"""What the Spark tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.engine.spark import SparkEngine, to_spark_type
from tests.unit.engine.harness import Store


@pytest.fixture
def catalog_url(sqlite_url: str) -> str:
    """One catalog: Spark is given a plan and gives files, and tests/contract/test_engines.py has both under it."""
    return sqlite_url


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "ware [h]ouse {x} % 'é+&#=")


@pytest.fixture
def duck() -> DuckDBEngine:
    return DuckDBEngine()


@pytest.fixture
def engine(spark: Any) -> SparkEngine:
    return SparkEngine(spark)


@pytest.fixture
def frame(spark: Any) -> Callable[[pa.Table], Any]:
    """An Arrow table as a Spark frame of several partitions, whose rows are elsewhere for all that Spark knows."""
    return lambda table: spark.createDataFrame(table, to_spark_type(table.schema)).coalesce(2)
