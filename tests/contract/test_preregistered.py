"""Appends that are registered ahead, a block in one transaction: seen by nobody, lost by nobody, used once."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import select

from lakehouse.catalog.locks import preregistered
from lakehouse.catalog.store.models import operation
from lakehouse.core.operation import RESERVED, Kind
from lakehouse.errors import LockLost
from lakehouse.testing import behind
from lakehouse.testing.rows import many

ROWS = many(3, step_us=1000)


def registered(lake) -> list[tuple[str, str]]:
    """Kind and state of every operation that the catalog knows, in the order of their registration."""
    query = select(operation.c.kind, operation.c.state).order_by(operation.c.number)
    return [tuple(row) for row in behind.rows_of(lake.catalog, query)]


def unused(lake) -> list[str]:
    """Ids of what is registered ahead, in the order in which it will be used."""
    query = select(operation.c.id).where(operation.c.kind == RESERVED, operation.c.state == "running")
    return [one for (one,) in behind.rows_of(lake.catalog, query.order_by(operation.c.number))]


def ahead(lake) -> int:
    return len(unused(lake))


def test_a_process_that_appends_often_registers_twice_as_many_each_time(lake, table):
    left = []
    for _ in range(8):
        table.append(ROWS)
        left.append(ahead(lake))
    assert left == [0, 1, 0, 3, 2, 1, 0, 7]
    for _ in range(100):
        table.append(ROWS)
    assert ahead(lake) < preregistered.MOST
    assert table.scan().count() == 108 * 3


def test_what_is_registered_ahead_is_given_back_when_the_lake_is_closed(lake, table, connect):
    for _ in range(4):
        table.append(ROWS)
    lake.close()
    assert registered(connect()) == [("append", "committed")] * 4


def test_one_that_is_not_used_in_time_is_replaced_by_a_new_one(lake, table, monkeypatch):
    for _ in range(4):
        table.append(ROWS)
    later = preregistered.steady_seconds() + lake.catalog.lease_seconds / 2
    monkeypatch.setattr(preregistered, "steady_seconds", lambda: later)
    table.append(ROWS)
    assert registered(lake) == [("append", "committed")] * 5


def test_nobody_sees_one_run_or_waits_for_its_version(lake, table):
    for _ in range(4):
        table.append(ROWS)
    assert ahead(lake) == 3
    assert list(lake.activity().operations) == []
    table.append(ROWS)
    lake.expire(keep_last=1)
    assert [one.version for one in table.log()] == [lake.head]


def test_an_append_that_lasts_is_seen_to_run_after_a_heartbeat(lake, table):
    table.append(ROWS)
    begun = lake.catalog.begin(table.spec, Kind.APPEND, ahead=True)
    assert list(lake.activity().operations) == []
    lake.catalog.renew([begun])
    assert [(one.operation, one.kind) for one in lake.activity().operations] == [(begun.id, "append")]


def test_one_that_was_ended_before_it_began_commits_nothing(lake, table):
    for _ in range(2):
        table.append(ROWS)
    lake.catalog.release(unused(lake)[0])
    with pytest.raises(LockLost):
        table.append(ROWS)
    assert table.scan().count() == 6
    table.append(ROWS)
    assert table.scan().count() == 9


def test_a_change_of_the_table_is_followed_by_younger_ids(lake, table):
    for _ in range(4):
        table.append(ROWS)
    older = unused(lake)
    lake.rename_table("flights", "trips")
    begun = lake.catalog.begin(lake.table("trips").spec, Kind.APPEND, ahead=True)
    assert begun.id > max(older)


def test_a_child_process_does_not_use_its_parents(lake, table):
    for _ in range(4):
        table.append(ROWS)
    mine = unused(lake)
    child = os.fork()
    if child == 0:
        status = 2
        try:
            status = int(lake.catalog.begin(table.spec, Kind.APPEND, ahead=True).id in mine)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lake.catalog.begin(table.spec, Kind.APPEND, ahead=True).id == mine[0]
