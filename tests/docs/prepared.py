"""What pages of the documentation presuppose before their first block: tables, rows, and names in Python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import lakehouse

ROOT = Path(__file__).resolve().parents[2]
MORNING = datetime(2013, 1, 5, 7, tzinfo=UTC)


def trips(lake: Any) -> Any:
    """Trips at eight versions, the sixth of which is tagged."""
    table = lake.create_table("trips", "at TIMESTAMP, client BIGINT, price DOUBLE", time="at", cluster_by=["client"])
    for number in range(7):
        table.append([{"at": MORNING, "client": (12, 77)[number % 2], "price": 2.0 * number}])
    return table


def flights(lake: Any) -> Any:
    table = lake.create_table(
        "flights", "at TIMESTAMP, id BIGINT, carrier STRING", time="at", cluster_by=["carrier"], primary_key=["id"]
    )
    table.append([{"at": MORNING, "id": 1, "carrier": "UA"}])
    return table


def _readme(lake: Any) -> dict[str, Any]:
    trips(lake)
    return {}


def _adopting(lake: Any) -> dict[str, Any]:
    table = lake.create_table("trips", "at TIMESTAMP, client BIGINT, price DOUBLE", time="at")
    table.append([{"at": MORNING, "client": 77, "price": 2.5}])
    lake.create_table("daily", "day TIMESTAMP, paid DOUBLE", time="day")
    Path("target").mkdir()
    with duckdb.connect("target/warehouse.duckdb") as made:
        made.execute("CREATE TABLE daily AS SELECT TIMESTAMPTZ '2013-01-05 00:00:00+00' AS day, 2.5::DOUBLE AS paid")
    return {"lake": lake}


def _erasing(lake: Any) -> dict[str, Any]:
    clients = lake.create_table(
        "clients", "at TIMESTAMP, client BIGINT, name STRING", time="at", primary_key=["client"]
    )
    clients.append([(MORNING, 77, "Ada Smith"), (MORNING, 12, "Bob Brown")])
    return {}


def _recovery(lake: Any) -> dict[str, Any]:
    Path("warehouse").symlink_to(".lakehouse/warehouse")
    flights(lake)
    return {}


def _errors(lake: Any) -> dict[str, Any]:
    return {"flights": flights(lake), "rows": [{"at": MORNING, "id": 2, "carrier": "UA"}]}


def _serving(lake: Any) -> dict[str, Any]:
    flights(lake)
    return {"lake": lake}


def _sql(lake: Any) -> dict[str, Any]:
    columns = "at TIMESTAMP, id BIGINT, client BIGINT, day INT, price DOUBLE, tax DOUBLE"
    table = lake.create_table("trips", columns, time="at")
    lake.create_table("clients", "name BIGINT").append([(12,), (77,)])
    for number in range(8):
        table.append([(MORNING, number, (12, 77)[number % 2], 5, 4.0 * number, 0.5)])
    lake.create_view("dear", "SELECT client, price FROM trips WHERE price > 30")
    lake.tag("january")
    lake.sql("DROP VIEW dear")
    return {"lake": lake}


def _streaming(lake: Any) -> dict[str, Any]:
    table = lake.create_table("clients", "id BIGINT, name STRING, changed_at TIMESTAMP, op STRING", primary_key=["id"])
    rows = pa.table(
        {"id": [7], "name": ["Ada"], "changed_at": pa.array([MORNING], pa.timestamp("us", "UTC")), "op": ["U"]}
    )
    return {"lakehouse": lakehouse, "table": table, "rows": rows}


def _topics(lake: Any) -> dict[str, Any]:
    page = (ROOT / "docs/topics.md").read_text(encoding="utf-8")
    Path("topics.toml").write_text(page.partition("```toml\n")[2].partition("```")[0])
    return {}


def _types(lake: Any) -> dict[str, Any]:
    lake.create_table("events", "id BIGINT, doc STRING").append(
        [(1, '{"user": {"name": "Ada"}, "tags": ["new"], "price": "0.20"}')]
    )
    return {}


PREPARE: dict[str, Callable[[Any], dict[str, Any]]] = {
    "README.md": _readme,
    "docs/adopting.md": _adopting,
    "docs/erasing.md": _erasing,
    "docs/errors.md": _errors,
    "docs/recovery.md": _recovery,
    "docs/serving.md": _serving,
    "docs/sql.md": _sql,
    "docs/streaming.md": _streaming,
    "docs/topics.md": _topics,
    "docs/types.md": _types,
}
"""By page; what a preparation returns are names for blocks of Python."""
