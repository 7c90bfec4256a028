"""Chunk locks: who waits for whom, and what a clash says."""

from __future__ import annotations

import math
import re
import time

import pytest

from lakehouse.errors import InvalidInput, LockLost, LockTimeout
from lakehouse.testing import faults
from lakehouse.testing.rows import SCHEMA, arrow, many, row, values, visible


def test_a_replace_holds_the_chunks_that_it_touches_and_no_others(table):
    operation = table.begin_replace(("2013-01-05T12:00", "2013-01-07T06:00"))
    held = table.locks()
    assert [lock.chunk.start.day for lock in held] == [5, 6, 7]
    assert {lock.operation for lock in held} == {operation.id}
    assert len({lock.token for lock in held}) in {1, 3}
    operation.abort()
    assert table.locks() == []


def test_a_clash_names_the_holder_and_commits_nothing(lake, table, connect):
    table.append(arrow([("2013-01-05", "a", 1)]))
    holder = table.begin_replace("2013-01-05")
    head = lake.head
    with pytest.raises(LockTimeout, match=re.escape(str(holder.id))) as caught:
        connect().table("flights").begin_replace(("2013-01-05T23:00", "2013-01-06T01:00"), wait_seconds=0)
    assert caught.value.operation == holder.id
    assert caught.value.kind == "lock_timeout"
    assert lake.head == head
    assert {lock.operation for lock in table.locks()} == {holder.id}
    holder.commit()
    assert visible(table) == []


def test_a_replace_waits_no_longer_than_its_limit(table, connect):
    table.begin_replace("2013-01-05")
    there = connect().table("flights")
    started = time.monotonic()
    with pytest.raises(LockTimeout):
        there.begin_replace("2013-01-05", wait_seconds=0.3)
    assert 0.3 <= time.monotonic() - started < 5


def test_other_chunks_and_other_keys_are_free(table, connect):
    there = connect().table("flights")
    first = table.begin_replace("2013-01-05", keys={"client": ["a", "b"]})
    free = [
        there.begin_replace("2013-01-04", wait_seconds=0),
        there.begin_replace("2013-01-06", wait_seconds=0),
        there.begin_replace("2013-01-05", keys={"client": "c"}, wait_seconds=0),
        there.begin_replace("2013-01-05", keys={"client": None}, wait_seconds=0),
    ]
    for keys in ({"client": "b"}, {"client": ["x", "a"]}, None):
        with pytest.raises(LockTimeout):
            there.begin_replace("2013-01-05", keys=keys, wait_seconds=0)
    for operation in (*free, first):
        operation.commit()
    assert table.locks() == []


def test_two_parts_of_one_chunk_are_one_cell(table, connect):
    table.begin_replace(("2013-01-05T00:00", "2013-01-05T06:00"))
    with pytest.raises(LockTimeout):
        connect().table("flights").begin_replace(("2013-01-05T18:00", "2013-01-05T19:00"), wait_seconds=0)


def test_locks_of_two_tables_are_apart(lake, table):
    other = lake.create_table("other", SCHEMA, time="time")
    table.begin_replace("2013-01-05")
    other.begin_replace("2013-01-05", wait_seconds=0).commit()


def test_appends_take_no_lock_and_pass_every_lock(table, connect):
    table.begin_replace("2013")
    operation = connect().table("flights").begin_append()
    operation.write(arrow([("2013-01-05", "a", 1)]))
    assert len({lock.operation for lock in table.locks()}) == 1
    operation.commit()
    assert values(table) == [1]


def test_locks_on_several_chunks_are_taken_all_or_none(table, connect):
    table.begin_replace("2013-01-07")
    before = table.locks()
    with pytest.raises(LockTimeout):
        connect().table("flights").begin_replace(("2013-01-05", "2013-01-10"), wait_seconds=0)
    assert table.locks() == before


def test_fencing_tokens_only_grow(table):
    tokens = []
    for _ in range(3):
        operation = table.begin_replace("2013-01-05")
        tokens.append(max(lock.token for lock in table.locks()))
        operation.abort()
    assert tokens == sorted(set(tokens))


def test_locks_are_given_back_by_commit_abort_and_an_exception(table):
    table.begin_replace("2013-01-05").commit()
    assert table.locks() == []
    with table.begin_replace("2013-01-05"):
        assert len(table.locks()) == 1
    assert table.locks() == []

    def attempt() -> None:
        with table.begin_replace("2013-01-05"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        attempt()
    assert table.locks() == []


def test_a_replace_takes_the_chunk_from_a_compaction_which_then_fails_cleanly(table, warehouse, connect):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value)]))
    compaction = connect().table("flights").begin_compaction("2013-01-05")
    compaction.run()
    replace = table.begin_replace("2013-01-05", wait_seconds=0)
    assert {lock.operation for lock in table.locks()} == {replace.id}
    version = table.version
    with pytest.raises(LockLost):
        compaction.commit()
    assert table.version == version
    assert values(table) == [0, 1, 2, 3]
    assert all((warehouse / segment.path).is_file() for segment in table.segments())
    replace.write(arrow([("2013-01-05", "a", 9)]))
    replace.commit()
    assert values(table) == [9]
    assert values(table, as_of=version) == [0, 1, 2, 3]


def test_a_fenced_compaction_fails_however_late_it_commits(table):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value)]))
    compaction = table.begin_compaction()
    table.replace(arrow([("2013-01-05", "a", 9)]), "2013-01-05")

    def attempt() -> None:
        compaction.run()
        compaction.commit()

    with pytest.raises(LockLost):
        attempt()
    assert values(table) == [9]


def test_a_keyed_replace_takes_the_chunk_from_a_compaction_too(table):
    for value in range(4):
        table.append(arrow([("2013-01-05", "ab"[value % 2], value)]))
    compaction = table.begin_compaction()
    compaction.run()
    table.replace(None, "2013-01-05", keys={"client": "a"})
    with pytest.raises(LockLost):
        compaction.commit()
    assert values(table) == [1, 3]


def test_a_compaction_never_waits_for_a_replace(table, connect):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value), ("2013-01-06", "a", value)]))
    replace = table.begin_replace("2013-01-05")
    started = time.monotonic()
    try:
        connect().table("flights").compact()
    except LockTimeout as error:
        assert str(replace.id) in str(error)  # noqa: PT017 - leaving the chunk out is as good an answer
    assert time.monotonic() - started < 3
    replace.write(arrow([("2013-01-05", "a", 9)]))
    replace.commit()
    assert values(table) == [0, 1, 2, 3, 9]


def test_a_compaction_of_other_chunks_runs_beside_a_replace(table, connect):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value), ("2013-01-06", "a", value)]))
    replace = table.begin_replace("2013-01-05")
    assert connect().table("flights").compact("2013-01-06") is not None
    replace.commit()
    assert values(table) == [0, 1, 2, 3]


@pytest.mark.parametrize("compacted", [None, "2013-01-06"])
def test_a_compaction_of_a_ragged_segment_does_not_outlive_a_replace_of_its_other_chunk(lake, connect, compacted):
    table = lake.create_table("ragged", SCHEMA, time="time", properties={"ragged": "true"})
    for _ in range(3):
        table.append(many(4, start="2013-01-05T06:00", step_us=12 * 3_600_000_000))
    replace = table.begin_replace("2013-01-05")
    try:
        connect().table("ragged").compact(compacted)
    except LockTimeout as error:
        assert str(replace.id) in str(error)  # noqa: PT017
    replace.write(arrow([("2013-01-05", "a", 9)]))
    replace.commit()
    assert values(table) == [2, 2, 2, 3, 3, 3, 9]


def test_two_compactions_of_one_chunk_do_not_double_its_rows(table, connect):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value)]))
    first = table.begin_compaction()
    try:
        second = connect().table("flights").compact()
    except LockTimeout:
        second = None
    first.run()
    assert first.commit() is not None
    assert second is None
    assert values(table) == [0, 1, 2, 3]


def test_a_restore_takes_the_chunk_from_a_compaction(table):
    version = table.append(arrow([("2013-01-05", "a", 0)])).version
    for value in range(1, 4):
        table.append(arrow([("2013-01-05", "a", value)]))
    compaction = table.begin_compaction()
    compaction.run()
    table.restore(version)
    with pytest.raises(LockLost):
        compaction.commit()
    assert values(table) == [0]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("grain", ["hour", "year"])
def test_a_lock_on_all_of_time_is_reported_at_once(lake, grain):
    table = lake.create_table("t", SCHEMA, time="time", grain=grain)
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value)]))
    for begin in (table.begin_compaction, lambda: table.begin_replace((None, None))):
        operation = begin()
        held = table.locks()
        assert {lock.operation for lock in held} == {operation.id}
        assert any(lock.chunk.contains(row("2013-01-05")[0]) for lock in held)
        assert len(held) < 100_000
        operation.abort()


@pytest.mark.timeout(120)
def test_all_of_time_is_replaced_at_once(lake):
    table = lake.create_table("t", SCHEMA, time="time", grain="hour")
    table.append(arrow([("0001-01-01", "a", 0), ("2013-01-05", "a", 1), ("9999-12-31", "a", 2)]))
    table.replace(arrow([("2013-01-05", "a", 3)]), (None, None))
    assert values(table) == [3]
    table.replace(None, (None, None))
    assert visible(table) == []


def test_an_administrator_ends_an_operation_and_its_commit_fails_cleanly(lake, table, connect):
    holder = table.begin_replace("2013-01-05")
    holder.write(arrow([("2013-01-05", "a", 1)]))
    connect().release(holder.id)
    assert table.locks() == []
    table.begin_replace("2013-01-05", wait_seconds=0).commit()
    head = lake.head
    with pytest.raises(LockLost):
        holder.commit()
    assert (lake.head, visible(table)) == (head, [])
    with pytest.raises(InvalidInput, match="no such operation"):
        lake.release(holder.id)


def test_a_compaction_in_one_call_begins_again_when_a_replace_took_a_chunk_from_it(table, connect):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value), ("2013-01-06", "b", value)]))
    there = connect().table("flights")
    came_between = []

    def overtake():
        if not came_between:
            came_between.append(there.begin_replace("2013-01-05"))
            came_between[0].write(arrow([("2013-01-05", "c", 9)]))

    def let_on():
        came_between[0].commit()

    with faults.armed({"write.after": overtake, "abort.before": let_on}):
        done = table.compact()
    assert done is not None
    assert came_between
    assert values(table) == [0, 1, 2, 3, 9]
    assert [one.segments for one in table.chunks()] == [1, 1]


def overtaking(there, times):
    """What takes the chunk from a compaction as it writes, so many times; how often it did."""
    done = []
    busy = []

    def overtake():
        if busy or len(done) == times:
            return  # it writes itself
        busy.append(True)
        there.append(arrow([("2013-01-05", "a", 7)]))
        there.replace(arrow([("2013-01-05T12:00", "c", 9)]), ("2013-01-05T12:00", "2013-01-05T13:00"))
        done.append(busy.pop())

    return overtake, done


def test_a_compaction_that_loses_its_chunks_goes_on_while_the_lake_waits(table, connect):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value)]))
    overtake, done = overtaking(connect().table("flights"), 7)
    with faults.armed({"write.after": overtake}):
        assert table.compact() is not None
    assert len(done) == 7
    assert values(table) == [0, 1, 2, 3, *[7] * 7, 9]


def test_a_compaction_that_loses_its_chunks_every_time_says_so(table, connect):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value)]))
    overtake, done = overtaking(connect().table("flights"), math.inf)
    impatient = connect(wait_seconds=0).table("flights")
    with faults.armed({"write.after": overtake}), pytest.raises(LockLost):
        impatient.compact()
    assert len(done) > 1
    assert table.locks() == []
