"""What goes on in a lake: operations that run, the locks of every table, and who waits for whom."""

from __future__ import annotations

import threading

import pytest

from lakehouse.core.interval import Interval
from lakehouse.core.keys import key_scope
from lakehouse.testing.rows import SCHEMA, arrow, row


def test_nothing_goes_on_in_a_quiet_lake(lake, table):
    table.append(arrow([row("2013-01-05")]))
    found = lake.activity()
    assert (found.operations, found.locks, found.waits) == ([], [], [])


def test_running_operations_are_listed_with_what_is_left_of_their_leases(lake, table):
    first = table.begin_append()
    second = table.begin_replace(("2013-01-05T12:00", "2013-01-07"), keys={"client": "a"})
    found = lake.operations()
    assert [(one.operation, one.table, one.kind, one.locks) for one in found] == [
        (first.id, "flights", "append", 0),
        (second.id, "flights", "replace", 1),
    ]
    assert all(0 <= one.age_seconds < 60 and 0 < one.lease_seconds <= 60 for one in found)
    assert found[1].base_version == second.base_version
    second.abort()
    assert [one.operation for one in lake.operations()] == [first.id]
    first.abort()


def test_an_operation_whose_lease_ran_out_has_less_than_nothing_left(connect, lake, table):
    dying = connect(lease_seconds=0.0)
    operation = dying.table("flights").begin_append()
    dying.session.heartbeat.close()
    assert [one.operation for one in lake.operations() if one.lease_seconds <= 0] == [operation.id]


def test_locks_of_all_tables_are_listed_a_value_a_run_of_chunks(lake, table):
    other = lake.create_table("weather", SCHEMA, time="time", grain="hour")
    month = other.begin_replace("2013-01")
    keyed = table.begin_replace("2013-01-05", keys={"client": "a"})
    assert [(one.table, one.interval, one.keys, one.operation, one.waiting) for one in lake.activity().locks] == [
        ("flights", Interval.of("2013-01-05"), key_scope({"client": "a"}), keyed.id, 0),
        ("weather", Interval.of("2013-01"), None, month.id, 0),
    ]
    for one in (month, keyed):
        one.abort()


def test_who_waits_is_listed_with_those_before_it(lake, table, connect):
    holder = table.begin_replace("2013-01-05")

    def begin_and_abort(interval: str) -> None:
        connect().table("flights").begin_replace(interval, wait_seconds=60).abort()

    threads = [threading.Thread(target=begin_and_abort, args=(one,)) for one in ("2013-01-05", "2013-01-05T07")]
    threads[0].start()
    _until(lambda: len(lake.activity().waits) == 1)
    threads[1].start()
    _until(lambda: len(lake.activity().waits) == 2)
    found = lake.activity()
    first, second = found.waits
    assert first.behind == (holder.id,)
    assert second.behind == (holder.id, first.operation)
    assert [one.waiting for one in found.locks] == [2]
    assert first.place < second.place
    holder.abort()
    for one in threads:
        one.join(60)
    assert lake.activity().waits == []


def _until(condition) -> None:
    pause = threading.Event()
    for _ in range(3000):
        if condition():
            return
        pause.wait(0.01)
    pytest.fail("it did not come about")
