"""Leases: a holder that stopped loses its chunk to another, one that lives keeps it, and whoever lost it is fenced."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from lakehouse.errors import LockLost, LockTimeout
from lakehouse.testing.rows import arrow, values

SHORT = 1.0


def wait_until(condition, seconds=20.0):
    """Wait for what only the database's clock decides."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        threading.Event().wait(0.02)


@pytest.mark.timeout(300)
def test_a_process_paused_past_its_lease_is_fenced_when_another_has_committed(table, start):
    table.append(arrow([("2013-01-05", "a", 0)]))
    child = start("operate", table="flights", kind="replace", time="2013-01-05", value=1, lease_seconds=SHORT)
    holder = child.hear()["id"]
    assert child.ask() == {"written": True}
    os.kill(child.process.pid, signal.SIGSTOP)
    with pytest.raises(LockTimeout, match=holder):
        table.begin_replace("2013-01-05", wait_seconds=0)
    table.replace(arrow([("2013-01-05", "a", 2)]), "2013-01-05", wait_seconds=30)
    version = table.version
    child.signal()
    os.kill(child.process.pid, signal.SIGCONT)
    answer = child.hear()
    assert answer["error"] == "LockLost", answer
    assert values(table) == [2]
    assert table.version == version


@pytest.mark.timeout(300)
def test_a_process_paused_past_its_lease_commits_if_nobody_took_its_chunk(table, start):
    table.append(arrow([("2013-01-05", "a", 0)]))
    child = start("operate", table="flights", kind="replace", time="2013-01-05", value=1, lease_seconds=SHORT)
    child.hear()
    child.ask()
    os.kill(child.process.pid, signal.SIGSTOP)
    wait_until(lambda: all(lock.expires_at.timestamp() < time.time() - 0.1 for lock in table.locks()))
    append = table.append(arrow([("2013-01-05", "a", 5)]))
    child.signal()
    os.kill(child.process.pid, signal.SIGCONT)
    answer = child.hear()
    assert answer["version"] > append.version
    assert values(table) == [1, 5]


@pytest.mark.timeout(300)
def test_one_lease_expires_and_the_others_live(table, start, connect):
    killed = start("operate", table="flights", kind="replace", time="2013-01-05", value=1, lease_seconds=SHORT)
    dead = killed.hear()["id"]
    alive = start("operate", table="flights", kind="replace", time="2013-01-06", value=2, lease_seconds=SHORT)
    other = alive.hear()["id"]
    mine = connect(lease_seconds=SHORT).table("flights").begin_replace("2013-01-07")
    killed.kill()
    table.replace(arrow([("2013-01-05", "a", 9)]), "2013-01-05", wait_seconds=30)
    threading.Event().wait(2 * SHORT)  # two leases long, the heartbeats of the living keep theirs
    assert {lock.operation for lock in table.locks()} == {other, mine.id} != {dead}
    for day in ("2013-01-06", "2013-01-07"):
        with pytest.raises(LockTimeout):
            table.begin_replace(day, wait_seconds=0)
    assert alive.ask() == {"written": True}
    assert "version" in alive.ask()
    mine.commit()
    assert values(table) == [2, 9]


@pytest.mark.timeout(300)
def test_a_writer_slower_than_its_lease_keeps_its_chunk_while_it_lives(connect, table):
    slow = connect(lease_seconds=0.5).table("flights").begin_replace("2013-01-05")
    threading.Event().wait(1.5)
    with pytest.raises(LockTimeout, match=slow.id):
        table.begin_replace("2013-01-05", wait_seconds=0)
    slow.write(arrow([("2013-01-05", "a", 1)]))
    slow.commit()
    assert values(table) == [1]


@pytest.mark.timeout(300)
def test_a_paused_compaction_is_fenced(table, start, warehouse):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value)]))
    child = start("operate", table="flights", kind="compact", time="2013-01-05", value=0)
    child.hear()
    assert child.ask() == {"written": True}
    os.kill(child.process.pid, signal.SIGSTOP)
    table.replace(arrow([("2013-01-05", "a", 9)]), "2013-01-05", wait_seconds=0)
    child.signal()
    os.kill(child.process.pid, signal.SIGCONT)
    assert child.hear()["error"] == "LockLost"
    assert values(table) == [9]
    assert all((warehouse / segment.path).is_file() for segment in table.segments())
    assert values(table, as_of=table.log()[1].version) == [0, 1, 2, 3]


@pytest.mark.timeout(300)
def test_a_replace_that_waits_gets_the_chunk_as_soon_as_it_is_free(table, connect):
    holder = table.begin_replace("2013-01-05")
    begun = threading.Event()
    waited: list = []

    def wait() -> None:
        there = connect().table("flights")
        begun.set()
        operation = there.begin_replace("2013-01-05", wait_seconds=30)
        operation.write(arrow([("2013-01-05", "a", 2)]))
        waited.append(operation.commit())

    thread = threading.Thread(target=wait)
    thread.start()
    assert begun.wait(30)
    holder.write(arrow([("2013-01-05", "a", 1)]))
    first = holder.commit()
    thread.join(30)
    assert waited[0].version > first.version
    assert values(table) == [2]


@pytest.mark.timeout(300)
def test_disjoint_chunks_and_disjoint_keys_are_held_at_the_same_time(table, connect):
    scopes = [("2013-01-05", None), ("2013-01-06", {"client": "a"}), ("2013-01-06", {"client": "b"}), ("2013-02", None)]
    all_inside = threading.Barrier(len(scopes))
    failures: list[BaseException] = []

    def replace(index: int) -> None:
        interval, keys = scopes[index]
        try:
            with connect().table("flights").begin_replace(interval, keys=keys, wait_seconds=30) as operation:
                all_inside.wait(30)  # passed only if none waits for another
                day = interval if len(interval) == 10 else f"{interval}-01"
                operation.write(arrow([(day, keys["client"] if keys else "x", index)]))
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=replace, args=(index,)) for index in range(len(scopes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert values(table) == [0, 1, 2, 3]


@pytest.mark.timeout(300)
def test_many_replaces_of_one_chunk_take_turns(table, connect):
    def replace(index: int) -> None:
        with connect().table("flights").begin_replace("2013-01-05", wait_seconds=50) as operation:
            operation.write(arrow([("2013-01-05", "a", index)]))

    threads = [threading.Thread(target=replace, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(table.log()) == 6
    assert len(values(table)) == 1
    for commit in table.log():
        assert len(values(table, as_of=commit.version)) == 1


@pytest.mark.timeout(300)
def test_an_operation_whose_process_died_never_becomes_visible(table, start):
    child = start("operate", table="flights", kind="append", time="2013-01-05", value=1)
    child.hear()
    assert child.ask() == {"written": True}
    child.kill()
    table.append(arrow([("2013-01-05", "a", 2)]))
    assert values(table) == [2]


def test_a_fenced_operation_says_what_was_lost(table, connect):
    for value in range(3):
        table.append(arrow([("2013-01-05", "a", value)]))
    compaction = table.begin_compaction("2013-01-05")
    compaction.run()
    connect().table("flights").replace(None, "2013-01-05")
    with pytest.raises(LockLost, match=str(compaction.id)):
        compaction.commit()
    compaction.abort()
    assert values(table) == []
