"""A killed holder of a lock, or of a place in the queue for one, is waited for as long as its lease, and no longer."""

from __future__ import annotations

import time

import pytest

from lakehouse.errors import LockTimeout
from lakehouse.testing.rows import arrow, values
from tests.concurrency.test_leases import wait_until
from tests.concurrency.test_queue import waiting

LEASE_SECONDS = 1.5


@pytest.mark.timeout(300)
def test_the_chunk_of_a_killed_holder_is_free_after_its_lease_and_not_before(table, start):
    child = start("operate", table="flights", kind="replace", time="2013-01-05", value=1, lease_seconds=LEASE_SECONDS)
    child.hear()
    assert child.ask() == {"written": True}
    child.kill()
    [lock] = table.locks()
    with pytest.raises(LockTimeout, match=lock.operation):
        table.begin_replace("2013-01-05", wait_seconds=0)
    table.append(arrow([("2013-01-05", "a", 2)]))
    table.replace(arrow([("2013-01-06", "a", 3)]), "2013-01-06", wait_seconds=0)
    with table.begin_compaction("2013-01-07") as compaction:
        compaction.abort()
    with table.begin_replace("2013-01-05", wait_seconds=20) as operation:
        taken = time.time()
        operation.write(arrow([("2013-01-05", "a", 4)]))
    assert lock.expires_at.timestamp() - 0.05 <= taken <= lock.expires_at.timestamp() + 3
    assert values(table) == [3, 4]
    assert table.locks() == []


@pytest.mark.timeout(300)
def test_a_killed_waiter_keeps_others_out_only_until_its_place_expires(lake, table, start):
    holder = table.begin_replace("2013-01-05")
    child = start("wait", table="flights", time="2013-01-05", place_seconds=LEASE_SECONDS)
    assert child.hear() == {"ready": True}
    child.signal()
    wait_until(lambda: waiting(lake) == 1)
    child.kill()
    killed = time.monotonic()
    holder.abort()
    with table.begin_replace("2013-01-06", wait_seconds=0) as beside:
        beside.abort()
    with table.begin_replace("2013-01-05", wait_seconds=20) as operation:
        operation.write(arrow([("2013-01-05", "a", 1)]))
    assert time.monotonic() - killed < LEASE_SECONDS + 3
    assert values(table) == [1]


@pytest.mark.timeout(300)
def test_a_killed_holder_and_a_killed_waiter_behind_it_leave_the_chunk_to_the_next(lake, table, start):
    child = start("operate", table="flights", kind="replace", time="2013-01-05", value=1, lease_seconds=LEASE_SECONDS)
    child.hear()
    waiter = start("wait", table="flights", time="2013-01-05", place_seconds=LEASE_SECONDS)
    waiter.hear()
    waiter.signal()
    wait_until(lambda: waiting(lake) == 1)
    for one in (child, waiter):
        one.kill()
    table.replace(arrow([("2013-01-05", "a", 2)]), "2013-01-05", wait_seconds=20)
    assert values(table) == [2]
    assert table.locks() == []


@pytest.mark.timeout(300)
def test_a_killed_compaction_is_in_no_replaces_way(table, start):
    for value in range(3):
        table.append(arrow([("2013-01-05", "a", value)]))
    child = start("operate", table="flights", kind="compact", time="2013-01-05", value=1)
    child.hear()
    child.kill()
    table.replace(arrow([("2013-01-05", "a", 9)]), "2013-01-05", wait_seconds=0)
    assert values(table) == [9]
    assert table.locks() == []
