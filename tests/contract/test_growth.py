"""What grows with history and not with what is retained goes, batch by batch, at the cost of what there is to do."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Engine, event, func, insert, select, update

from lakehouse.catalog.forget import entries
from lakehouse.catalog.store.models import (
    commit_log,
    lake_table,
    lock_wait,
    operation,
    plan_count,
    task,
    txn,
    updated_rows,
    upkeep,
)
from lakehouse.errors import InvalidInput, LakehouseError, TableNotFound
from lakehouse.testing import behind, faults
from lakehouse.testing.faults import Injected
from lakehouse.testing.rows import SCHEMA, arrow, values

DAY = "2013-01-05"
BATCH = arrow([(DAY, "a", 1)])


def held(lake, of, *where):
    """How many rows of a table of the catalog there are."""
    return behind.rows_of(lake.catalog, select(func.count()).select_from(of).where(*where))[0][0]


def change(lake, statement):
    behind.change(lake.catalog, statement)


def make_old(lake):
    """All that was begun or committed was so at the beginning of time."""
    change(lake, update(operation).where(operation.c.state != "running").values(begun_us=operation.c.number))
    change(lake, update(commit_log).values(committed_us=commit_log.c.version))


def test_operations_go_in_as_many_batches_as_there_are(lake, table, monkeypatch):
    monkeypatch.setattr(entries, "MOST_OPERATIONS", 3)
    for number in range(10):
        table.replace(arrow([(DAY, "a", number)]), DAY)
    make_old(lake)
    lake.expire(keep_last=1)
    assert held(lake, operation, operation.c.state == "committed") == 1
    assert values(table) == [9]


def test_an_expiry_that_is_stopped_between_two_batches_keeps_what_it_did(lake, table, monkeypatch):
    monkeypatch.setattr(entries, "MOST_OPERATIONS", 3)
    for number in range(10):
        table.replace(arrow([(DAY, "a", number)]), DAY)
    lake.expire(keep_last=1)
    make_old(lake)
    before = held(lake, operation)
    with faults.armed({"expire.forgotten": faults.on_count(2, faults.fail())}), pytest.raises(Injected):
        lake.expire(keep_last=1)
    assert held(lake, operation) == before - 6
    lake.expire(keep_last=1)
    assert held(lake, operation, operation.c.state == "committed") == 1


def test_a_txn_is_known_for_ever_unless_a_table_says_how_long(lake, table):
    first = table.append(BATCH, txn=("feed", 1))
    table.append(BATCH)
    make_old(lake)
    lake.expire(keep_last=1)
    assert table.append(BATCH, txn=("feed", 1)).version == first.version
    assert values(table) == [1, 1]


def test_a_txn_is_forgotten_when_it_is_older_than_its_table_says(lake, table, monkeypatch):
    monkeypatch.setattr(entries, "MOST_COMMITS", 2)
    other = lake.create_table("other", SCHEMA, time="time")
    table.set_properties({"txn_retention": "90d"})
    for number in range(5):
        table.append(BATCH, txn=("feed", number))
        other.append(BATCH, txn=("feed", number))
    lake.expire(keep_last=1)
    assert held(lake, txn) == 10  # young ones stay, whatever versions are kept
    make_old(lake)
    young = table.append(BATCH, txn=("feed", 5))
    lake.expire(keep_last=1)
    assert held(lake, txn, txn.c.table_id == table.spec.id) == 1
    assert held(lake, txn, txn.c.table_id == other.spec.id) == 5
    assert table.append(BATCH, txn=("feed", 5)) == young
    assert other.append(BATCH, txn=("feed", 0)).txn == ("feed", 0)
    assert len(values(table)) == 6
    assert table.append(BATCH, txn=("feed", 0)).version > young.version  # it is another one by now


def test_a_txn_of_a_version_that_can_be_read_stays(lake, table):
    table.set_properties({"txn_retention": "1s"})
    commits = [table.append(BATCH, txn=("feed", number)) for number in range(4)]
    make_old(lake)
    lake.expire(keep_last=2)
    assert held(lake, txn) == 2
    assert [commit.txn for commit in table.log()][:2] == [commit.txn for commit in reversed(commits[2:])]


@pytest.mark.parametrize("text", ["soon", "-1d", ""])
def test_a_retention_that_is_none_is_refused(table, text):
    with pytest.raises(InvalidInput, match="txn_retention"):
        table.set_properties({"txn_retention": text})


def test_places_of_waiters_that_died_go(connect, lake, table):
    def wait():
        with table.begin_replace(DAY, wait_seconds=60):
            pass

    table.append(BATCH)
    with table.begin_replace(DAY):
        waits = threading.Thread(target=wait)
        waits.start()
        while not held(lake, lock_wait):
            pass
        lake.expire(keep_last=1)
        assert held(lake, lock_wait) == 1  # it lives
    waits.join()
    place = {"token": 10**9, "table_id": table.spec.id, "operation": "dead", "kind": "replace", "priority": 1}
    change(lake, insert(lock_wait).values(**place, start_us=0, end_us=1, lease_until_us=1))
    lake.expire(keep_last=1)
    assert held(lake, lock_wait) == 0


@pytest.mark.parametrize("way", ["collect", "taken over", "before this release"])
def test_what_a_replace_that_died_would_have_had_to_hide_goes(lake, table, way):
    table.append(arrow([(DAY, "a", 1), (DAY, "b", 2)]))
    dead = table.begin_replace(DAY)
    table.update({"value": "3"}, where="value = 2")
    assert held(lake, updated_rows) == 1
    change(lake, update(operation).where(operation.c.id == dead.id).values(lease_until_us=1))
    if way == "collect":
        lake.collect(grace_seconds=0)
    elif way == "taken over":
        table.replace(arrow([(DAY, "a", 4)]), DAY)
    else:
        change(lake, update(operation).where(operation.c.id == dead.id).values(state="aborted"))
        lake.expire(keep_last=1)
    assert held(lake, updated_rows) == 0
    with pytest.raises(LakehouseError):
        dead.commit()


def test_nothing_of_a_dropped_table_stays(connect, lake, table):
    table.append(BATCH)
    with connect() as another:  # what it registered ahead ends with it
        for number in range(3):
            passing = another.create_table(f"passing_{number}", SCHEMA, time="time")
            passing.append(BATCH, txn=("feed", number))
            passing.delete("value = 2")
            assert passing.scan(interval=DAY).count() == 1
            another.maintain()
            stale = lake.table(f"passing_{number}")
            another.drop_table(f"passing_{number}")
    lake.create_table("last", SCHEMA, time="time")
    make_old(lake)
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    make_old(lake)
    lake.expire(keep_last=1)
    assert held(lake, lake_table) == 2
    for of in (txn, task, upkeep, plan_count, operation):
        assert held(lake, of, of.c.table_id.not_in([table.spec.id, lake.table("last").spec.id])) == 0, of.name
    assert lake.check().is_sound
    writes = (lambda: stale.append(BATCH), lambda: stale.delete("value = 1"), lambda: stale.replace(BATCH, DAY))
    for ask in (stale.scan, stale.segments, stale.chunks, *writes):
        with pytest.raises(TableNotFound):
            ask()


def test_a_dropped_table_stays_while_a_tag_shows_it(connect, lake, table):
    table.append(BATCH)
    with connect() as another:
        another.create_table("passing", SCHEMA, time="time").append(BATCH)
    passing = lake.table("passing")
    lake.tag("before")
    lake.drop_table("passing")
    lake.create_table("last", SCHEMA, time="time")
    for _ in range(2):
        make_old(lake)
        lake.expire(keep_last=1)
        lake.collect(grace_seconds=0)
    assert values(passing, as_of="before") == [1]
    lake.untag("before")
    for _ in range(2):
        make_old(lake)
        lake.expire(keep_last=1)
        lake.collect(grace_seconds=0)
    assert held(lake, lake_table) == 2


def test_the_number_of_a_dropped_table_is_not_given_again(lake, table):
    passing = lake.create_table("passing", SCHEMA, time="time")
    lake.drop_table("passing")
    for _ in range(2):
        make_old(lake)
        table.append(BATCH)
        lake.expire(keep_last=1)
    assert lake.create_table("other", SCHEMA, time="time").spec.id > passing.spec.id


def test_an_idle_expiry_costs_the_same_however_many_tables_were_dropped(lake, table):
    def statements():
        """What an expiry asks of the catalog that has nothing to do."""
        asked = []

        def note(*event_args):
            asked.append(event_args[2])

        event.listen(Engine, "after_cursor_execute", note)
        lake.expire(keep_last=1)
        event.remove(Engine, "after_cursor_execute", note)
        return len(asked)

    table.append(BATCH)
    lake.expire(keep_last=1)
    before = statements()
    for number in range(20):
        lake.create_table(f"passing_{number}", SCHEMA, time="time").append(BATCH)
        lake.drop_table(f"passing_{number}")
    lake.expire(keep_last=1)
    assert statements() <= before
