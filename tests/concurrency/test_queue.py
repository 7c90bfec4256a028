"""Those who wait for a lock get it in the order of their coming."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lakehouse.catalog.store.models import lock_wait
from lakehouse.errors import LockTimeout
from lakehouse.testing import behind

WAIT_SECONDS = 60


def waiting(lake: Any) -> int:
    """How many stand in the queue."""
    return len(behind.rows_of(lake.catalog, lock_wait.select()))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        threading.Event().wait(0.01)


def test_waiters_get_their_turn_in_order_and_through_different_handles(connect: Any) -> None:
    lake = connect()
    table = lake.create_table("flights", "time TIMESTAMP, value BIGINT", time="time")
    holder = table.begin_replace("2013-01-05")
    order: list[int] = []

    def take(number: int) -> None:
        op = connect().table("flights").begin_replace("2013-01-05", wait_seconds=WAIT_SECONDS)
        order.append(number)
        op.abort()

    threads = []
    for number in range(4):
        threads.append(threading.Thread(target=take, args=(number,)))
        threads[-1].start()
        until(lambda number=number: waiting(lake) == number + 1)
    holder.abort()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert order == [0, 1, 2, 3]
    assert waiting(lake) == 0


def test_a_wide_replace_is_not_starved_by_narrow_ones_that_come_later(connect: Any) -> None:
    lake = connect()
    table = lake.create_table("flights", "time TIMESTAMP, value BIGINT", time="time")
    holder = table.begin_replace("2013-01-05")
    taken = threading.Event()

    def take_month() -> None:
        with connect().table("flights").begin_replace("2013-01", wait_seconds=WAIT_SECONDS):
            taken.set()

    wide = threading.Thread(target=take_month)
    wide.start()
    until(lambda: waiting(lake) == 1)
    with pytest.raises(LockTimeout) as later:
        table.begin_replace("2013-01-09", wait_seconds=0)
    assert later.value.facts["kind_held"] == "replace"
    table.begin_replace("2013-02-09", wait_seconds=0).abort()
    holder.abort()
    assert taken.wait(WAIT_SECONDS)
    wide.join(WAIT_SECONDS)
    table.begin_replace("2013-01-09", wait_seconds=WAIT_SECONDS).abort()


def test_a_wait_that_gives_up_leaves_the_queue(connect: Any) -> None:
    lake = connect()
    table = lake.create_table("flights", "time TIMESTAMP, value BIGINT", time="time")
    with table.begin_replace("2013-01-05"):
        with pytest.raises(LockTimeout):
            table.begin_replace("2013-01-05", wait_seconds=0.2)
        assert waiting(lake) == 0


def test_maintenance_that_waits_is_in_nobodys_way(connect: Any) -> None:
    lake = connect()
    table = lake.create_table("flights", "time TIMESTAMP, value BIGINT", time="time")
    holder = table.begin_replace("2013-01-05")
    done = threading.Event()

    def compact() -> None:
        with connect().table("flights").begin_compaction("2013-01", wait_seconds=WAIT_SECONDS):
            done.set()

    thread = threading.Thread(target=compact)
    thread.start()
    until(lambda: waiting(lake) == 1)
    table.begin_replace("2013-01-09", wait_seconds=0).abort()
    holder.abort()
    assert done.wait(WAIT_SECONDS)
    thread.join(WAIT_SECONDS)
