"""Small rows for tests: a time, a cluster column that may be null, and a value that distinguishes rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from lakehouse.core.interval import to_utc
from lakehouse.engine import Query

Row = tuple[datetime, str | None, int]

COLUMNS = ("time", "client", "value")
TIME_TYPE = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        pa.field("time", TIME_TYPE, nullable=False),
        pa.field("client", pa.string()),
        pa.field("value", pa.int64()),
    ]
)
KEYED = pa.schema([SCHEMA.field("time"), SCHEMA.field("client"), SCHEMA.field("value").with_nullable(False)])
"""The same with values that can be a primary key."""
DDL = "time TIMESTAMP NOT NULL, client STRING, value BIGINT"


def row(time: Any, client: str | None = "a", value: int = 0) -> Row:
    """One row; the time is anything that `lakehouse.core.interval.to_utc` reads."""
    return to_utc(time), client, value


def arrow(rows: Iterable[tuple[Any, str | None, int]]) -> pa.Table:
    """Rows as an Arrow table of `SCHEMA`.

    >>> arrow([("2013-01-05", "UA", 7)]).num_rows
    1
    """
    listed = [row(*one) for one in rows]
    columns = [pa.array([one[index] for one in listed], SCHEMA.field(index).type) for index in range(3)]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def tabled(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows of any columns as an Arrow table; times are aware."""
    listed = list(rows)
    columns = [pa.array([one[index] for one in listed], field.type) for index, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    """Arrow rows of any columns as tuples, in their order, times as aware UTC datetimes."""
    columns = [column.to_pylist() for column in table.columns]
    rows = zip(*columns, strict=True)
    return [tuple(one.astimezone(UTC) if isinstance(one, datetime) else one for one in row) for row in rows]


def many(count: int, *, start: Any = "2013-01-05", step_us: int = 1_000_000, value: int = 0) -> pa.Table:
    """``count`` rows, ``step_us`` apart, of two clients, valued from ``value``."""
    first = int(to_utc(start).timestamp() * 1_000_000)
    times = pa.array([first + step_us * index for index in range(count)], pa.int64()).cast(TIME_TYPE)
    clients = pa.array(["ab"[index % 2] for index in range(count)])
    return pa.Table.from_arrays([times, clients, pa.array(range(value, value + count), pa.int64())], schema=SCHEMA)


def order(one: Row) -> tuple[datetime, bool, str, int]:
    """Sort key under which null clients come first."""
    return one[0], one[1] is not None, one[1] or "", one[2]


def plain(table: pa.Table) -> list[Row]:
    """Arrow rows as sorted tuples, times as aware UTC datetimes."""
    found = [(one["time"].astimezone(UTC), one["client"], one["value"]) for one in table.to_pylist()]
    return sorted(found, key=order)


def values(table: Any, **scan: Any) -> list[int]:
    """The sorted values of a table's rows, which identify rows in most tests."""
    return sorted(table.scan(columns=["value"], **scan).to_arrow().column("value").to_pylist())


def visible(table: Any, **scan: Any) -> list[Row]:
    """The sorted rows of a table."""
    return plain(table.scan(**scan).to_arrow())


def with_row_ids(scan: Any) -> pa.Table:
    """A scan's rows with their row ids, in the column ``_row_id``, which users do not see."""
    query: Query = scan._query(scan._session.local_engine.dialect)
    asked = Query(query.plan, query.spec, query.warehouse, where=query.where, row_ids=True, sets=query.sets)
    found: pa.Table = scan._session.local_engine.read(asked).to_arrow()
    return found
