"""Both orders of every pair of operations of the specification's third section, and its words about each."""

from __future__ import annotations

import itertools

import pytest

from lakehouse.errors import LockTimeout
from lakehouse.testing.rows import SCHEMA, arrow, many, values

ORDERS = ["first", "second"]


def commit_in_order(one, two, order):
    for operation in (one, two) if order == "first" else (two, one):
        operation.commit()


def appended(table, value, time="2013-01-05T12:00"):
    operation = table.begin_append()
    operation.write(arrow([(time, "a", value)]))
    return operation


@pytest.mark.parametrize("order", ORDERS)
def test_two_appends_are_both_visible_in_either_order(table, order):
    one, two = appended(table, 1), appended(table, 2)
    commit_in_order(one, two, order)
    assert values(table) == [1, 2]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("begun", ["before", "after"])
@pytest.mark.parametrize("interval", ["2013-01-05", ("2013-01-05T06:00", "2013-01-05T18:00")], ids=["whole", "part"])
def test_an_append_beside_a_replace_is_visible_whichever_commits_first(table, order, begun, interval):
    table.append(arrow([("2013-01-05T12:00", "a", 0)]))
    early = appended(table, 1) if begun == "before" else None
    replace = table.begin_replace(interval)
    append = early or appended(table, 1)
    replace.write(arrow([("2013-01-05T12:00", "a", 2)]))
    commit_in_order(append, replace, order)
    assert values(table) == [1, 2]


def test_what_was_appended_before_a_replace_took_its_locks_is_replaced(table):
    append = appended(table, 1)
    append.commit()
    replace = table.begin_replace("2013-01-05")
    replace.write(arrow([("2013-01-05T12:00", "a", 2)]))
    replace.commit()
    assert values(table) == [2]


def test_an_append_staged_before_a_replace_and_committed_after_it_is_visible(table):
    append = appended(table, 1)
    table.replace(arrow([("2013-01-05T12:00", "a", 2)]), "2013-01-05")
    append.commit()
    assert values(table) == [1, 2]


@pytest.mark.parametrize("order", ORDERS)
def test_an_append_beside_a_compaction_is_visible_in_either_order(table, order):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value)]))
    compaction = table.begin_compaction()
    append = appended(table, 9)
    compaction.run()
    commit_in_order(append, compaction, order)
    assert values(table) == [0, 1, 2, 3, 9]
    table.replace(None, "2013-01-05")
    assert values(table) == []


@pytest.mark.parametrize("order", ORDERS)
def test_two_replaces_of_different_chunks_run_side_by_side(table, order):
    table.append(arrow([("2013-01-05", "a", 1), ("2013-01-06", "a", 2)]))
    one, two = table.begin_replace("2013-01-05"), table.begin_replace("2013-01-06", wait_seconds=0)
    one.write(arrow([("2013-01-05", "a", 3)]))
    two.write(arrow([("2013-01-06", "a", 4)]))
    commit_in_order(one, two, order)
    assert values(table) == [3, 4]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ragged", [False, True])
def test_two_replaces_of_parts_of_one_ragged_segment_hide_both_parts(lake, order, ragged):
    table = lake.create_table("t", SCHEMA, time="time", properties={"ragged": str(ragged).lower()})
    table.append(many(6, start="2013-01-05T06:00", step_us=12 * 3_600_000_000))
    one, two = table.begin_replace("2013-01-05"), table.begin_replace(("2013-01-06T12:00", "2013-01-07T12:00"))
    commit_in_order(one, two, order)
    assert values(table) == [2, 5]


@pytest.mark.parametrize("order", ORDERS)
def test_two_replaces_of_different_keys_of_one_chunk_run_side_by_side(table, order):
    table.append(arrow([("2013-01-05", client, index) for index, client in enumerate(["a", "b", "c"])]))
    one = table.begin_replace("2013-01-05", keys={"client": "a"})
    two = table.begin_replace("2013-01-05", keys={"client": ["b", "x"]}, wait_seconds=0)
    one.write(arrow([("2013-01-05T01:00", "a", 10)]))
    two.write(arrow([("2013-01-05T01:00", "b", 11), ("2013-01-05T01:00", "x", 12)]))
    commit_in_order(one, two, order)
    assert values(table) == [2, 10, 11, 12]


@pytest.mark.parametrize("order", ORDERS)
def test_an_empty_replace_beside_an_append_leaves_the_append(table, order):
    table.append(arrow([("2013-01-05T12:00", "a", 0)]))
    replace, append = table.begin_replace("2013-01-05"), appended(table, 1)
    commit_in_order(replace, append, order)
    assert values(table) == [1]
    if order == "first":
        assert table.tombstones() == []
    table.compact()
    assert values(table) == [1]


@pytest.mark.parametrize("order", ORDERS)
def test_a_compaction_after_an_append_beside_a_replace_changes_no_row(table, order):
    table.append(arrow([("2013-01-05T12:00", "a", 0), ("2013-01-05T23:00", "a", 5)]))
    replace, append = table.begin_replace(("2013-01-05T06:00", "2013-01-05T18:00")), appended(table, 1)
    replace.write(arrow([("2013-01-05T12:00", "a", 2)]))
    commit_in_order(replace, append, order)
    table.compact()
    assert values(table) == [1, 2, 5]
    table.replace(None, ("2013-01-05T11:00", "2013-01-05T13:00"))
    assert values(table) == [5]


@pytest.mark.parametrize("committed", [True, False])
def test_a_restore_waits_for_a_replace_of_a_chunk_that_it_changes(table, committed, connect):
    version = table.append(arrow([("2013-01-05", "a", 0)])).version
    table.append(arrow([("2013-01-05", "a", 1), ("2013-01-06", "a", 2)]))
    replace = connect().table("flights").begin_replace("2013-01-05")
    with pytest.raises(LockTimeout, match=replace.id):
        table.restore(version, wait_seconds=0)
    assert values(table) == [0, 1, 2]
    replace.commit() if committed else replace.abort()
    table.restore(version)
    assert values(table) == [0]


def test_a_restore_passes_a_replace_of_a_chunk_that_it_leaves_alone(table, connect):
    table.append(arrow([("2013-01-05", "a", 0)]))
    version = table.version
    table.append(arrow([("2013-01-06", "a", 1)]))
    replace = connect().table("flights").begin_replace("2013-01-05")
    table.restore(version)
    assert values(table) == [0]
    replace.write(arrow([("2013-01-05", "a", 9)]))
    replace.commit()
    assert values(table) == [9]


@pytest.mark.parametrize("order", ORDERS)
def test_an_append_open_across_a_restore_is_visible(table, order):
    version = table.append(arrow([("2013-01-05", "a", 0)])).version
    table.append(arrow([("2013-01-05", "a", 1)]))
    append = appended(table, 2)
    if order == "first":
        append.commit()
        table.restore(version)
        assert values(table) == [0]
    else:
        table.restore(version)
        append.commit()
        assert values(table) == [0, 2]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_any_order_of_three_commits_of_an_append_and_two_keyed_replaces_is_one_state(table, order):
    table.append(arrow([("2013-01-05T12:00", "a", 0), ("2013-01-05T12:00", "b", 1), ("2013-01-05T12:00", "c", 2)]))
    operations = [
        table.begin_replace("2013-01-05", keys={"client": "a"}),
        appended(table, 5),
        table.begin_replace("2013-01-05", keys={"client": "b"}),
    ]
    operations[0].write(arrow([("2013-01-05T12:00", "a", 10)]))
    operations[2].write(arrow([("2013-01-05T12:00", "b", 11)]))
    for index in order:
        operations[index].commit()
    assert values(table) == [2, 5, 10, 11]
