"""Calls as users write them, checked by mypy: it must know each argument, and refuse those that are ignored here.

An unused ``ignore`` is an error, so a misspelt argument that mypy lets pass fails the check.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import assert_type

import pandas as pd
import polars as pl
import pyarrow as pa
from duckdb import DuckDBPyConnection, DuckDBPyRelation
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructType

import lakehouse

MORNING = datetime(2013, 1, 5, 7, tzinfo=UTC)


@dataclass
class Trip:
    at: datetime
    client: int


def right(lake: lakehouse.Lake, table: lakehouse.Table) -> None:
    rows: lakehouse.Rows = [{"at": MORNING, "client": 1}]
    table.append(rows)
    table.append([(MORNING, 1)])
    table.append([Trip(MORNING, 1)])
    table.append(Trip(MORNING, one) for one in range(3))
    table.append({"at": [MORNING], "client": [1]})
    table.append(pl.LazyFrame({"client": [1]}))
    table.append(pl.DataFrame({"client": [1]}), txn=("nightly", 1), properties={"source": "a"})
    table.upsert(pd.DataFrame({"client": [1]}))
    table.replace(None, "2013-01")
    table.replace(rows, (date(2013, 1, 1), None))
    table.replace(rows, lakehouse.Interval("2013-01-01", "2013-02-01"))
    table.scan(where=pl.col("client") > 1, as_of=MORNING).to_arrow()
    table.scan(where="client > 1", as_of="january").to_arrow()
    lake["trips"].head(3, as_of=7)
    lake.create_table("trips", pa.schema([("at", pa.timestamp("us"))]), time="at")
    lake.create_table("trips", StructType([]))
    table.add_column("gate", "STRING", default="A1")
    table.widen_column("client", LongType())
    lake.sql("SELECT ?", args=[MORNING])
    lake.expire(older_than=timedelta(days=30))
    assert_type(table.to_pandas(), pd.DataFrame)
    assert_type(table.to_polars(), pl.DataFrame)
    assert_type(table.scan().to_polars(lazy=True), pl.LazyFrame)
    assert_type(table.read(), DataFrame)
    assert_type(table.scan().to_duckdb(), DuckDBPyRelation)
    assert_type(lake.duckdb(), DuckDBPyConnection)


def wrong(lake: lakehouse.Lake, table: lakehouse.Table) -> None:
    lakehouse.connect(catalogue="sqlite:///x")  # type: ignore[call-arg]
    lake.create_table("trips", "at TIMESTAMP", times="at")  # type: ignore[call-arg]
    lake.create_table("trips", 5)  # type: ignore[arg-type]
    table.add_column("gate", {"type": "STRING"})  # type: ignore[arg-type]
    lake.sql("SELECT ?", args=[object()])  # type: ignore[list-item]
    lake.sql("SELECT 1", as_of=1.5)  # type: ignore[arg-type]
    lake.expire(older_than=[30])  # type: ignore[arg-type]
    lakehouse.connect(spark="local")  # type: ignore[arg-type]
    table.append([], mesage="x")  # type: ignore[call-arg]
    table.append(5)  # type: ignore[arg-type]
    table.append([], txn="nightly")  # type: ignore[arg-type]
    table.append([], schema="merged")  # type: ignore[arg-type]
    table.replace([], 2013)  # type: ignore[arg-type]
    table.replace([], "2013", key={"client": 1})  # type: ignore[call-arg]
    table.begin_replace("2013", wait=1.0)  # type: ignore[call-arg]
    table.scan(were="client = 1")  # type: ignore[call-arg]
    table.scan(where=5)  # type: ignore[arg-type]
    table.scan(as_of=1.5)  # type: ignore[arg-type]
    table.delete(where="TRUE", reason="x")  # type: ignore[call-arg]
