"""Elastic tasks by Spark: merges, resolves and indexes change no row, and a job starts, works and goes away."""

from __future__ import annotations

import threading

import pytest

import lakehouse
from lakehouse.core.interval import to_utc
from lakehouse.core.task import TaskKind, TaskState, Worker
from lakehouse.service import Limits, Service, planning
from lakehouse.testing.rows import KEYED, tabled, visible

DAY = to_utc("2013-01-05")
PROPERTIES = {"small_files": "2", "tombstone_debt": "0", "index": "client", "statistics": "on"}


@pytest.fixture
def filled(spark, sqlite_url, warehouse):
    """Small appends, upserts and deletes in a lake that rewrites by Spark."""
    with lakehouse.connect(sqlite_url, warehouse, spark=spark) as lake:
        table = lake.create_table(
            "events", KEYED, time="time", primary_key=("value",), cluster_by=("client",), properties=PROPERTIES
        )
        for n in range(4):
            table.append(tabled([(DAY, "ab"[n % 2], 10 * n + m) for m in range(5)], KEYED))
        table.upsert(tabled([(DAY, "z", 11), (DAY, "z", 99)], KEYED))
        table.delete("value = 12")
        yield lake, table


def test_tasks_by_spark_change_no_row(filled, monkeypatch):
    lake, table = filled
    monkeypatch.setattr(planning, "RESIDENT_BYTES", 0)
    before = visible(table)
    done = lake.maintain(engine="spark").tasks
    assert {one.state for one in done} == {TaskState.DONE}, [one.error for one in done]
    assert {TaskKind.COMPACT, TaskKind.INDEX, TaskKind.STATS} <= {one.kind for one in done}
    assert visible(table) == before
    assert len(table.segments()) == 1
    assert table.tombstones() == []
    assert lake.check(deep=True).findings == []


def test_key_tombstones_are_resolved_by_spark(filled):
    _, table = filled
    before = visible(table)
    with table.begin_resolve(engine="spark") as op:
        op.run()
    assert {one.kind for one in table.tombstones()} == {"row"}
    assert visible(table) == before


def test_a_job_starts_for_what_waits_and_goes_away(filled):
    lake, table = filled
    before = visible(table)
    lake.plan_tasks()
    stop = threading.Event()
    service = Service(lake.session, Limits(workers=(Worker.ELASTIC,), engine="spark"), every_seconds=0.1)
    running = threading.Thread(target=service.run, args=(stop,))
    running.start()
    try:
        for _ in range(3000):
            if not lake.tasks(state="waiting") and not lake.tasks(state="running"):
                break
            stop.wait(0.1)
    finally:
        stop.set()
        running.join()
    (merge,) = [one for one in lake.tasks(state="done") if one.kind is TaskKind.COMPACT]
    assert merge.worker is Worker.ELASTIC
    assert visible(table) == before
    assert len(table.segments()) == 1
