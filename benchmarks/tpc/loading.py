"""The rows of a suite in a lake, and, for the other side, the same rows as plain files.

A lake's tables need a time, and a DATE that queries read cannot be it: each table gets a column ``at_`` besides, the
date of a row's own event where it has one. Queries do not know of it, so that no chunk is left out for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import lakehouse
from benchmarks.tpc.environment import Suite

_DATES = {"orders": "o_orderdate", "lineitem": "l_shipdate"}
_DAY_NUMBERS = {
    "catalog_returns": "cr_returned_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "inventory": "inv_date_sk",
    "store_returns": "sr_returned_date_sk",
    "store_sales": "ss_sold_date_sk",
    "web_returns": "wr_returned_date_sk",
    "web_sales": "ws_sold_date_sk",
}
_FIRST_DAY = "DATE '1900-01-02' - 2415022"
"""What TPC-DS counts its days from: the first of its days, less that day's number."""
_LOTS = 1_000_000
_BATCH_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows come into the lake: in so many ``appends`` a dated table; a share of them is ``deleted`` afterwards."""

    grain: str = "year"
    deleted: float = 0.0
    appends: int = 1


def load(suite: Suite, folder: Path, layout: Layout) -> dict[str, Path]:
    """Make a lake in a folder, see `connect`; gives the plain files of the rows that it holds, by table."""
    with connect(folder) as lake:
        for name, path in suite.files.items():
            _load_table(lake, name, path, layout)
        if not layout.deleted:
            return suite.files
        for name in suite.files:
            lake.table(name).delete(f"lot_ < {_least_lot(layout)}")
    plain = folder / "plain"
    plain.mkdir()
    with _database() as connection:
        for name, path in suite.files.items():
            kept = f"SELECT * EXCLUDE (lot_) FROM ({_with_lots(path)}) WHERE lot_ >= {_least_lot(layout)}"
            connection.execute(f"COPY ({kept}) TO '{plain}/{name}.parquet' (FORMAT parquet, COMPRESSION zstd)")
    return {name: plain / f"{name}.parquet" for name in suite.files}


def connect(folder: Path, spark: Any = None) -> lakehouse.Lake:
    """The lake of a folder."""
    return lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse", spark=spark)


def at(table: str) -> str:
    """What a row's ``at_`` is, in DuckDB's SQL.

    >>> at("orders"), at("region")
    ('CAST(o_orderdate AS TIMESTAMP)', "TIMESTAMP '1970-01-01'")
    """
    if table in _DATES:
        return f"CAST({_DATES[table]} AS TIMESTAMP)"
    if table in _DAY_NUMBERS:  # without a date, a row is of no known day
        number = _DAY_NUMBERS[table]
        return f"CAST(coalesce({_FIRST_DAY} + CAST({number} AS INT), DATE '1970-01-01') AS TIMESTAMP)"
    return "TIMESTAMP '1970-01-01'"


def _load_table(lake: lakehouse.Lake, name: str, path: Path, layout: Layout) -> None:
    source = _with_lots(path) if layout.deleted else f"SELECT * FROM '{path}'"
    with _database() as connection:
        connection.execute(f"CREATE VIEW source AS SELECT *, {at(name)} AS at_ FROM ({source})")
        schema = connection.sql("SELECT * FROM source LIMIT 0").to_arrow_table().schema
        table = lake.create_table(name, schema, time="at_", grain=layout.grain)
        for rows in _parts(connection, schema, layout.appends if name in {*_DATES, *_DAY_NUMBERS} else 1):
            table.append(rows)
    if layout.appends > 1:
        lake.maintain(table=name)


def _parts(connection: Any, schema: pa.Schema, count: int) -> Iterator[Any]:
    """The rows as so many appends, each of days that follow each other; one as a stream, as it lies in the file."""
    if count == 1:
        yield connection.sql("SELECT * FROM source").to_arrow_reader(_BATCH_ROWS)
        return
    held = connection.sql("SELECT * FROM source ORDER BY at_").to_arrow_table().cast(schema)
    days = connection.sql("SELECT at_, count(*) FROM source GROUP BY 1 ORDER BY 1").fetchall()
    begin = end = 0
    for place, (_, rows) in enumerate(days, 1):
        end += rows
        if place * count // len(days) > (place - 1) * count // len(days):
            yield held.slice(begin, end - begin)
            begin = end


def _with_lots(path: Path) -> str:
    """The rows with a number below a million each, which looks like chance and is the same each time."""
    return (
        f"SELECT * EXCLUDE (file_row_number), CAST(hash(file_row_number) % {_LOTS} AS INT) AS lot_ "
        f"FROM read_parquet('{path}', file_row_number = true)"
    )


def _least_lot(layout: Layout) -> int:
    return round(layout.deleted * _LOTS)


def _database() -> Any:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection
