"""Queries of decision support over a lake give what plain DuckDB gives over the same rows, before and after changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lakehouse
from benchmarks.tpc.comparing import difference
from benchmarks.tpc.texts import ordered_by
from tests.contract.trade import fill, tables
from tests.contract.trade_queries import BY_SPARK, QUERIES

DELETED = "l_orderkey % 97 = 5 OR l_quantity = 17"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    """A lake with the trade at version "whole", and fewer lines of orders at its head."""
    folder = tmp_path_factory.mktemp("trade")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        fill(lake, tables())
        lake.tag("whole")
        lake.table("lineitem").delete(DELETED)
        yield lake


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the same rows; ``DELETED`` is left out in a schema of its own."""
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("CREATE SCHEMA head")
        for name, rows in tables().items():
            connection.register("made", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM made")
            hidden = f"WHERE NOT ({DELETED})" if name == "lineitem" else ""
            connection.execute(f"CREATE TABLE head.{name} AS FROM main.{name} {hidden}")
            connection.unregister("made")
        yield connection


def expected(plain: duckdb.DuckDBPyConnection, text: str, schema: str) -> pa.Table:
    plain.execute(f"SET schema = '{schema}'")
    return plain.sql(text).to_arrow_table()


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_in_process_gives_what_plain_duckdb_gives(
    lake: lakehouse.Lake, plain: duckdb.DuckDBPyConnection, name: str
) -> None:
    text = QUERIES[name]
    for as_of, schema in (("whole", "main"), (None, "head")):
        found = lake.sql(text, as_of=as_of, engine="duckdb").to_arrow_table()
        wanted = expected(plain, text, schema)
        assert difference(found, wanted, ordered_by(text)) is None
        assert found.num_rows > 0


@pytest.mark.parametrize("name", BY_SPARK)
def test_a_query_by_spark_gives_what_plain_duckdb_gives(
    lake: lakehouse.Lake, plain: duckdb.DuckDBPyConnection, spark: Any, name: str
) -> None:
    text = QUERIES[name]
    assert lake.spark is spark
    wanted = expected(plain, text, "head")
    assert difference(lake.sql(text, engine="spark").toArrow(), wanted, ordered_by(text)) is None
