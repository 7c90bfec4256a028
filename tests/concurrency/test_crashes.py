"""A process killed at any point leaves the lake as it was before its commit or after it, and in nobody's way."""

from __future__ import annotations

import os
import signal
import time

import pytest

from lakehouse.core.version import LONGEST_CHAIN
from lakehouse.errors import LockTimeout
from lakehouse.lake import Lake
from lakehouse.testing.rows import SCHEMA, arrow, values

AFTER_COMMIT = {"commit.after"}
BEFORE = [0, 1, 2, 3]
OUTCOME = {"append": [0, 1, 2, 3, 9], "replace": [9], "compact": BEFORE, "transaction": [0, 1, 2, 3, 9]}
POINTS = {
    "append": (
        "begin.registered", "write.before", "write.after", "commit.before", "commit.head", "commit.recorded",
        "commit.after",
    ),
    "replace": ("begin.registered", "write.after", "commit.head", "commit.recorded", "commit.after"),
    "compact": ("begin.registered", "write.after", "commit.head", "commit.recorded", "commit.after"),
}  # fmt: skip
CASES = [(kind, point) for kind, points in POINTS.items() for point in points]


@pytest.fixture
def filled(table):
    for value in BEFORE:
        table.append(arrow([("2013-01-05", "a", value)]))
    return table


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "point"), CASES, ids=[f"{kind} at {point}" for kind, point in CASES])
def test_a_kill_leaves_all_of_an_operation_or_nothing(filled, start, connect, kind, point):
    head = filled.version
    child = start("crash", table="flights", kind=kind, point=point, time="2013-01-05", value=9, lease_seconds=0.5)
    assert child.hear() == {}
    assert child.end() == -9
    table = connect().table("flights")
    committed = point in AFTER_COMMIT
    assert values(table) == (OUTCOME[kind] if committed else BEFORE)
    assert (table.version > head) is committed
    assert values(table, as_of=head) == BEFORE
    if kind == "append":
        table.append(arrow([("2013-01-05", "a", 9)]), txn=("feed", 9))
        assert values(table) == OUTCOME[kind]
    table.replace(arrow([("2013-01-05", "a", 50)]), "2013-01-05", wait_seconds=20)
    assert values(table) == [50]
    assert values(table, as_of=head) == BEFORE


@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", ["begin.registered", "write.after", "commit.recorded", "commit.after"])
def test_what_a_killed_exchange_of_a_table_has_filled_is_never_seen_and_dropped_by_a_collection(
    lake, filled, start, connect, point
):
    child = start("crash", table="flights", kind="exchange", point=point, time="2013-01-05", value=0, lease_seconds=0.1)
    assert child.hear() == {}
    assert child.end() == -9
    there = connect()
    assert (there.tables(), values(there.table("flights"))) == (["flights"], BEFORE)
    assert "replacing" not in str(there.sql("SELECT * FROM information_schema.tables").fetchall())
    assert len(there.catalog.table_names()) == 2
    there.collect()
    assert len(there.catalog.table_names()) == 2, "its writer may live"
    until = time.monotonic() + 30
    while len(there.catalog.table_names()) == 2 and time.monotonic() < until:
        there.collect(grace_seconds=0)  # the first one after the lease
    assert (there.catalog.table_names(), values(there.table("flights"))) == (["flights"], BEFORE)
    assert there.check(deep=True).findings == []
    there.sql("CREATE OR REPLACE TABLE flights AS SELECT value FROM flights")
    assert there.catalog.table_names() == ["flights"]
    assert sorted(there.sql("SELECT value FROM flights").fetchall()) == [(one,) for one in BEFORE]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", ["write.after", "commit.recorded", "commit.after"])
def test_a_kill_leaves_a_replaced_table_with_its_old_rows_and_properties_or_with_its_new_ones(
    lake, start, connect, point
):
    made = lake.sql("CREATE TABLE made TBLPROPERTIES ('owner' = 'old', 'a' = 'b') AS SELECT 1L AS value")
    child = start("crash", table="made", kind="renew", point=point, time="2013-01-05", value=0, lease_seconds=0.5)
    assert child.hear() == {}
    assert child.end() == -9
    there = connect()
    state = there.sql("SELECT value FROM made").fetchall(), there.table("made").properties
    is_new = point in AFTER_COMMIT
    assert state == (([(10,)], {"owner": "new"}) if is_new else ([(1,)], {"owner": "old", "a": "b"}))
    assert there.table("made").spec.id == made.spec.id


@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", ["write.after", "commit.recorded", "commit.after"])
def test_a_kill_leaves_all_of_a_timeless_table_s_replace_or_nothing_and_its_chunk_free(lake, start, connect, point):
    lake.create_table("codes", SCHEMA).append(arrow([("2013-01-05", "a", value) for value in BEFORE]))
    head = lake.head
    child = start("crash", table="codes", kind="replace", point=point, time="2013-01-05", value=9, lease_seconds=0.5)
    assert child.hear() == {}
    assert child.end() == -9
    table = connect().table("codes")
    assert values(table) == ([9] if point in AFTER_COMMIT else BEFORE)
    table.replace(arrow([("2013-01-05", "a", 50)]), wait_seconds=20)
    assert (values(table), values(table, as_of=head)) == ([50], BEFORE)


@pytest.mark.timeout(300)
def test_two_processes_replace_a_timeless_table_one_after_the_other_and_appends_wait_for_neither(lake, start):
    table = lake.create_table("codes", SCHEMA)
    table.append(arrow([("2013-01-05", "a", 0)]))
    child = start("operate", table="codes", kind="replace", time="2013-01-05", value=1)
    holder = child.hear()["id"]
    with pytest.raises(LockTimeout, match=holder):
        table.replace(None, wait_seconds=0)
    table.append(arrow([("2013-01-05", "a", 2)]))
    assert child.ask() == {"written": True}
    assert values(table) == [0, 2]
    child.ask()
    assert values(table) == [1, 2]  # appended after the replace had begun
    table.replace(arrow([("2013-01-05", "a", 3)]), wait_seconds=0)
    assert values(table) == [3]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("point", ["commit.table", "begin.registered", "write.after"])
def test_a_kill_between_the_tables_of_a_transaction_leaves_none_of_them(lake, filled, start, connect, count, point):
    names = ["flights", "b", "c"]
    for name in names[1:]:
        lake.create_table(name, SCHEMA, time="time")
    head = lake.head
    child = start(
        "crash", table="flights", tables=names, kind="transaction", point=point, count=count, time="2013-01-05", value=9
    )
    assert child.hear() == {}
    assert child.end() == -9
    again = connect()
    assert again.head == head
    assert [values(again.table(name)) for name in names] == [BEFORE, [], []]


@pytest.mark.timeout(300)
def test_a_kill_while_key_frames_are_written_loses_no_version(lake, table, start, connect):
    seen = {}
    for value in range(LONGEST_CHAIN):
        table.append(arrow([("2013-01-05", "a", 100 + value)]))
        seen[table.version] = values(table)
    child = start("crash", table="flights", kind="append", point="commit.frames", time="2013-01-05", value=0)
    assert child.hear() == {}, "no key frame was due"
    child.end()
    seen[table.version] = values(table)
    there = connect().table("flights")
    assert {version: values(there, as_of=version) for version in seen} == seen
    for value in range(40):
        there.append(arrow([("2013-01-05", "a", value)]))
    assert {version: values(there, as_of=version) for version in seen} == seen


def expired(table):
    """Clean up all that may be."""
    Lake(table.session).expire(keep_last=2)
    Lake(table.session).collect(grace_seconds=0)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "point",
    ["expire.recorded", "expire.forgotten", "collect.marked", "collect.before_delete", "collect.after_delete"],
)
def test_a_kill_during_clean_up_loses_nothing_that_is_retained(filled, start, connect, warehouse, point):
    for value in range(20, 24):
        filled.replace(arrow([("2013-01-05", "a", value)]), "2013-01-05")
    lost = filled.begin_append()
    lost.write(arrow([("2013-01-05", "a", 99)]))
    filled.session.catalog.abort(lost.begun)
    child = start("crash", table="flights", kind="clean", point=point, time="2013-01-05", value=9)
    assert child.hear() == {}
    assert child.end() == -9
    table = connect().table("flights")
    last = [commit.version for commit in table.log()[:2]]
    assert [values(table, as_of=version) for version in last] == [[23], [22]]
    assert Lake(table.session).check().is_sound
    expired(table)
    stored = {path.relative_to(warehouse).as_posix() for path in warehouse.rglob("*") if path.is_file()}
    assert stored == {segment.path for version in last for segment in table.segments(as_of=version)}
    assert Lake(table.session).check().is_sound


@pytest.mark.timeout(300)
def test_a_writer_paused_past_its_lease_and_the_grace_is_fenced_and_its_files_go(table, start, warehouse):
    child = start("operate", table="flights", kind="append", time="2013-01-05", value=1, lease_seconds=0.5)
    child.hear()
    assert child.ask() == {"written": True}
    os.kill(child.process.pid, signal.SIGSTOP)
    while not Lake(table.session).collect(grace_seconds=0.1).operations:
        time.sleep(0.05)
    child.signal()
    os.kill(child.process.pid, signal.SIGCONT)
    assert child.hear()["error"] == "LockLost"
    assert values(table) == []
    assert not any(path.is_file() for path in warehouse.rglob("*"))
