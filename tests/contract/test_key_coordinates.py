"""Hash buckets leave out segments that least and greatest values cannot, and never one that holds a row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakehouse.core.interval import to_utc
from lakehouse.testing.rows import SCHEMA, arrow

FIRST = to_utc("2013-01-05")


@pytest.fixture
def hashed(lake: Any) -> Any:
    """A table whose cluster column has 64 buckets, with ten segments of ten clients each, all from 0 to 999."""
    table = lake.create_table("flights", SCHEMA, time="time", cluster_by={"client": 64})
    for turn in range(10):
        clients = ["0", *(str(turn + 10 * number) for number in range(1, 9)), "999"]
        table.append(arrow([(FIRST, client, turn) for client in clients]))
    return table


def test_a_value_opens_only_the_segments_that_may_hold_it(hashed: Any) -> None:
    scan = hashed.scan(where="client = '13'")
    assert 1 <= len(scan.plan().segments) < 5
    assert scan.to_arrow()["value"].to_pylist() == [3]
    assert len(hashed.scan(where="client IN ('13', '14')").plan().segments) < 8
    assert len(hashed.scan(where="client = '0'").plan().segments) == 10
    assert len(hashed.scan(where="client > '13'").plan().segments) == 10


def test_a_keyed_replace_leaves_no_tombstone_over_segments_of_other_keys(hashed: Any) -> None:
    before = hashed.scan().count()
    commit = hashed.replace(None, "2013-01-05", keys={"client": "no such client"})
    assert commit.tombstones_added in (0, 1)
    assert hashed.scan().count() == before
    hashed.replace(None, "2013-01-05", keys={"client": "13"})
    assert hashed.scan().count() == before - 1


def test_coordinates_survive_a_compaction_and_a_new_process(hashed: Any, connect: Any) -> None:
    hashed.compact()
    (one,) = hashed.segments()
    there = connect().table("flights")
    (same,) = there.segments()
    assert dict(one.buckets) == dict(same.buckets)
    assert there.scan(where="client = '13'").to_arrow()["value"].to_pylist() == [3]


def test_floats_have_no_buckets(lake: Any) -> None:
    columns = pa.schema([SCHEMA.field("time"), ("client", pa.float64())])
    table = lake.create_table("floats", columns, time="time", cluster_by={"client": 8})
    table.append(pa.table({"time": pa.array([FIRST], SCHEMA.field("time").type), "client": [0.5]}))
    assert not dict(table.segments()[0].buckets)
    assert table.scan(where="client = 0.5").count() == 1


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.text(max_size=3) | st.none(), min_size=1, max_size=4), max_size=4), st.text(max_size=3))
def test_a_pruned_scan_is_the_unpruned_one(lake: Any, batches: list[list[str | None]], wanted: str) -> None:
    if "flights" in lake.tables():
        lake.drop_table("flights")
    table = lake.create_table("flights", SCHEMA, time="time", cluster_by={"client": 8})
    for clients in batches:
        table.append(arrow([(FIRST, client, number) for number, client in enumerate(clients)]))
    wanted = batches[0][0] or wanted if batches else wanted
    every = table.scan().to_arrow().to_pylist()
    quoted = wanted.replace("\\", "\\\\").replace("'", "''")
    found = table.scan(where=f"client = '{quoted}'").to_arrow().to_pylist()
    assert sorted(row["value"] for row in found) == sorted(row["value"] for row in every if row["client"] == wanted)
