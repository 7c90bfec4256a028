"""A lake with two small tables, and what statements give on it in process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakehouse

TRIPS = """
CREATE TABLE trips (at TIMESTAMP, id BIGINT, client STRING, price DOUBLE, `seats free` INT, day DATE)
PARTITIONED BY (days(at))
"""
ROWS = """
INSERT INTO trips VALUES
('2013-01-05 07:00', 1, 'UA', 1.5, 7, '2013-01-05'),
('2013-01-06T01:00:00+02:00', 2, 'it''s', 2, NULL, NULL),
('2013-01-07', 3, NULL, NULL, 0, '2013-01-07'),
('2013-02-01 12:30:15.5', 4, 'UA', -4, 3, '2013-02-01')
"""


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakehouse.Lake]:
    """A lake of the test's own."""
    yield from _lake(tmp_path)


@pytest.fixture(scope="session")
def still_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    """A lake that tests only read."""
    yield from _lake(tmp_path_factory.mktemp("still"))


def _lake(folder: Path) -> Iterator[lakehouse.Lake]:
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        lake.sql(TRIPS)
        lake.sql("CREATE TABLE Clients (since TIMESTAMP, name STRING, score INT) PARTITIONED BY (years(since))")
        lake.sql(ROWS)
        lake.sql("INSERT INTO clients VALUES ('2012-01-01', 'UA', 10), ('2013-01-01', 'B6', 20)")
        yield lake


def rows_of(lake: lakehouse.Lake, text: str, **options: Any) -> list[tuple[Any, ...]]:
    """Rows of a statement, run in process."""
    result = lake.sql(text, engine="duckdb", **options)
    table = result if isinstance(result, pa.Table) else result.to_arrow_table()
    return [tuple(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
