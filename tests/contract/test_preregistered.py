"""Appends that are registered ahead, a block in one transaction: seen by nobody, lost by nobody, used once."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import select

from lakehouse.catalog.locks import preregistered
from lakehouse.catalog.store.models import operation
from lakehouse.core.operation import RESERVED, Kind
from lakehouse.errors import LockLost
from lakehouse.testing.rows import many

ROWS = many(3, step_us=1000)


def registered(lake) -> list[tuple[str, str]]:
    """Kind and state of every operation that the catalog knows, in the order of their registration."""
    query = select(operation.c.kind, operation.c.state).order_by(operation.c.number)
    return [tuple(row) for row in lake.catalog._database.read(lambda connection: connection.execute(query).all())]


def ahead(lake) -> int:
    return registered(lake).count((RESERVED, "running"))


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


def test_one_that_is_not_used_in_time_is_replaced_by_a_new_one(lake, table):
    for _ in range(4):
        table.append(ROWS)
    block = lake.catalog._reserve._blocks[table.spec.id]
    block.stale_at = 0.0
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
    begun = lake.catalog._reserve._blocks[table.spec.id].ready[0]
    lake.catalog.release(begun.id)
    with pytest.raises(LockLost):
        table.append(ROWS)
    assert table.scan().count() == 6
    table.append(ROWS)
    assert table.scan().count() == 9


def test_a_change_of_the_table_is_followed_by_younger_ids(lake, table):
    for _ in range(4):
        table.append(ROWS)
    unused = {one.id for one in lake.catalog._reserve._blocks[table.spec.id].ready}
    lake.rename_table("flights", "trips")
    begun = lake.catalog.begin(lake.table("trips").spec, Kind.APPEND, ahead=True)
    assert begun.id > max(unused)


def test_a_child_process_does_not_use_its_parents(lake, table):
    for _ in range(4):
        table.append(ROWS)
    child = os.fork()
    if child == 0:
        os._exit(len(lake.catalog._reserve._blocks))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(lake.catalog._reserve._blocks) == 1
