"""Deletes, updates, merges and upserts of single rows, and what they mean to operations beside them."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from lakehouse.errors import InvalidInput, WriteConflict
from lakehouse.testing.rows import arrow, many, values, visible

DAY, NEXT = "2013-01-05", "2013-01-06"


@pytest.fixture
def keyed(lake):
    return lake.create_table(
        "keyed",
        "time TIMESTAMP NOT NULL, client STRING NOT NULL, value BIGINT",
        time="time",
        primary_key=["client"],
        cluster_by=["client"],
    )


# Delete


def test_a_delete_removes_what_its_predicate_says_and_counts_it(table):
    table.append(many(100))
    commit = table.delete("value % 10 = 3")
    assert (commit.operation, commit.rows_deleted, commit.rows_added) == ("delete", 10, 0)
    assert values(table) == [n for n in range(100) if n % 10 != 3]
    assert values(table, as_of=commit.version - 1) == list(range(100))
    assert table.scan().count() == 90


def test_a_delete_does_not_move_or_write_a_data_file(table):
    table.append(many(100))
    before = table.segments()
    table.delete("value = 7")
    assert table.segments() == before
    (tombstone,) = table.tombstones()
    assert (tombstone.kind, tombstone.rows) == ("row", 1)


def test_a_delete_of_nulls_follows_sql(table):
    table.append(arrow([(DAY, None, 1), (DAY, "a", 2)]))
    table.delete("client = 'b' OR client <> 'a'")
    assert values(table) == [1, 2]
    table.delete("client IS NULL")
    assert values(table) == [2]


def test_a_delete_of_an_interval_and_keys_reads_no_row(lake, table, warehouse):
    table.append(many(100))
    for path in warehouse.rglob("*.parquet"):
        path.unlink()
    table.delete(f"time >= '{DAY}' AND time < '{DAY} 00:00:10' AND client IN ('a')")
    table.delete(f"time >= '{NEXT}'")
    (tombstone,) = table.tombstones()
    assert (tombstone.kind, dict(tombstone.keys)) == ("interval", {"client": ("a",)})
    del lake


def test_a_delete_of_an_interval_hides_exactly_that(table):
    table.append(arrow([(DAY, "a", 1), (f"{DAY}T12:00", "b", 2), (NEXT, "a", 3), (NEXT, None, 4)]))
    table.delete(f"time > '{DAY}' AND time <= '{NEXT}' AND client = 'a'")
    assert values(table) == [1, 2, 4]
    table.append(arrow([(NEXT, "a", 5)]))
    assert values(table) == [1, 2, 4, 5]
    table.delete(f"time = '{DAY}'")
    assert values(table) == [2, 4, 5]


def test_a_delete_drops_segments_that_it_empties(table):
    table.append(many(10))
    table.append(many(10, value=100))
    table.delete("value < 100 AND value >= 0")
    assert len(table.segments()) == 1
    assert values(table) == list(range(100, 110))


def test_a_delete_that_finds_nothing_commits_nothing_but_itself(table):
    table.append(many(10))
    commit = table.delete("value > 1000")
    assert (commit.rows_deleted, table.tombstones(), len(table.segments())) == (0, [], 1)


@pytest.mark.parametrize(
    "where", ["", "value", "reflect('java.lang.System', 'exit')", "value IN (SELECT 1)", "nosuch = 1"]
)
def test_a_bad_predicate_is_refused_and_nothing_is_committed(table, where):
    table.append(many(10))
    version = table.version
    with pytest.raises(InvalidInput):
        table.delete(where)
    assert table.version == version


# Update


def test_an_update_keeps_the_rows_and_changes_the_columns(table):
    table.append(many(100))
    commit = table.update({"value": "value + 1000", "client": "NULL"}, "value >= 90")
    assert (commit.operation, commit.rows_deleted, commit.rows_added) == ("update", 10, 10)
    assert values(table) == [*range(90), *range(1090, 1100)]
    assert [row[1] for row in visible(table) if row[2] >= 1000] == [None] * 10


def test_an_update_may_move_rows_in_time_and_later_operations_find_them_there(table):
    table.append(arrow([(DAY, "a", 1), (DAY, "b", 2)]))
    table.update({"time": f"TIMESTAMP '{NEXT} 07:00:00'"}, "value = 1")
    assert values(table, interval=DAY) == [2]
    assert values(table, interval=NEXT) == [1]
    table.delete("value = 1")
    assert values(table) == [2]


def test_rows_keep_their_ids_across_updates_and_compactions(table):
    table.append(many(20))
    table.update({"value": "value + 100"}, "value < 5")
    table.compact()
    table.update({"value": "value + 100"}, "value >= 100")
    changes = table.changes(2).to_arrow()
    assert set(changes.column("_change_type").to_pylist()) == {"update_before", "update_after"}


@pytest.mark.parametrize(
    ("assigned", "where"),
    [({}, "TRUE"), ({"nosuch": "1"}, "TRUE"), ({"value": "'text'"}, "TRUE"), ({"value": "nosuch + 1"}, "TRUE"),
     ({"time": "NULL"}, "TRUE"), ({"value": "java_method('x')"}, "TRUE"), ({"value": "1.5"}, "TRUE")],
)  # fmt: skip
def test_a_bad_update_is_refused_and_nothing_is_committed(table, assigned, where):
    table.append(many(10))
    version = table.version
    with pytest.raises(InvalidInput):
        table.update(assigned, where)
    assert (table.version, values(table)) == (version, list(range(10)))


# Upsert and delete by key


def test_an_upsert_leaves_one_row_a_key_and_reads_nothing(keyed, warehouse):
    keyed.append(arrow([(DAY, "a", 1), (NEXT, "b", 2), (NEXT, "a", 3)]))
    hidden = [path.rename(path.with_suffix(".away")) for path in warehouse.rglob("*.parquet")]
    keyed.upsert(arrow([(DAY, "a", 4), (DAY, "c", 5)]))
    for path in hidden:
        path.rename(path.with_suffix(".parquet"))
    assert values(keyed) == [2, 4, 5]


def test_a_key_twice_is_refused_unless_a_column_says_which_is_newest(keyed):
    twice = arrow([(DAY, "a", 1), (NEXT, "a", 2), (DAY, "b", 3)])
    with pytest.raises(InvalidInput, match="twice") as caught:
        keyed.upsert(twice)
    assert caught.value.example == {"client": "a"}
    in_two_writes = keyed.begin_upsert()
    in_two_writes.write(arrow([(DAY, "a", 1)]))
    in_two_writes.write(arrow([(DAY, "a", 1)]))
    with pytest.raises(InvalidInput, match="twice"):
        in_two_writes.commit()
    assert keyed.scan().count() == 0
    keyed.upsert(twice, newest="time")
    assert values(keyed) == [2, 3]


def test_deletes_by_key_take_the_key_columns_alone(keyed):
    keyed.append(arrow([(DAY, "a", 1), (NEXT, "b", 2)]))
    keyed.delete_keys(pa.table({"client": ["a", "nobody"], "more": [1, 2]}))
    assert values(keyed) == [2]
    keyed.append(arrow([(DAY, "a", 3)]))
    assert values(keyed) == [2, 3]


@pytest.mark.parametrize("keys", [{"value": [1]}, {"client": [None]}, {"client": [1]}])
def test_bad_keys_are_refused(keyed, keys):
    with pytest.raises(InvalidInput):
        keyed.delete_keys(pa.table(keys))


def test_a_table_without_primary_key_takes_no_upsert(table):
    with pytest.raises(InvalidInput, match="primary key"):
        table.upsert(many(1))


def test_a_repeated_upsert_changes_nothing(keyed):
    first = keyed.upsert(arrow([(DAY, "a", 1)]), txn=("app", 1))
    keyed.delete_keys(pa.table({"client": ["a"]}))
    assert keyed.upsert(arrow([(DAY, "a", 1)]), txn=("app", 1)).version == first.version
    assert values(keyed) == []


def test_many_keys_and_many_rows_go_into_files_and_are_collected(lake, keyed, warehouse):
    rows = [(DAY, f"client {number:08x}{number * 7919:012x}", number) for number in range(5000)]
    keyed.append(arrow(rows))
    keyed.upsert(arrow([(day, client, value + 10_000) for day, client, value in rows]))
    assert len(list(warehouse.rglob("*.keys"))) == 1
    assert keyed.scan().count() == 5000
    assert not lake.check().findings
    keyed.compact()
    assert keyed.tombstones() == []
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert not list(warehouse.rglob("*.keys"))
    assert values(keyed) == list(range(10_000, 15_000))


# Merge


def test_a_merge_updates_what_matches_and_inserts_the_rest(keyed):
    keyed.append(arrow([(DAY, "a", 1), (DAY, "b", 2)]))
    commit = keyed.merge(
        arrow([(NEXT, "b", 10), (NEXT, "c", 20)]),
        ["client"],
        when_matched_update={"value": "target.value + source.value"},
    )
    assert (commit.rows_added, commit.rows_deleted) == (2, 1)
    assert [row[1:] for row in visible(keyed)] == [("a", 1), ("b", 12), ("c", 20)]


def test_a_merge_may_delete_and_leave_the_rest_out(keyed):
    keyed.append(arrow([(DAY, "a", 1), (DAY, "b", 2), (DAY, "c", 3)]))
    keyed.merge(
        arrow([(NEXT, "a", 0), (NEXT, "b", 0), (NEXT, "z", 0)]),
        "target.client = source.client",
        when_matched_update={"value": "100"},
        when_matched_delete="target.value = 1",
        when_not_matched_insert=False,
    )
    assert values(keyed) == [3, 100]


def test_two_source_rows_for_one_row_are_refused(keyed):
    keyed.append(arrow([(DAY, "a", 1)]))
    with pytest.raises(InvalidInput, match="several rows of the source"):
        keyed.merge(arrow([(DAY, "a", 1), (NEXT, "a", 2)]), ["client"], when_matched_update=True)
    assert values(keyed) == [1]


# Beside others: both commit orders


def changed(table, kind):
    """Begin an operation that changes value 3 or client d, all of whose work is done but the commit."""
    begin = {
        "delete": lambda: table.begin_delete("value = 3"),
        "update": lambda: table.begin_update({"value": "value + 100"}, "value = 3"),
        "merge": lambda: table.begin_merge(arrow([(DAY, "d", 5)]), ["client"], when_matched_update={"value": "103"}),
    }
    if kind in begin:
        op = begin[kind]()
        op.run()
        return op
    op = table.begin_upsert() if kind == "upsert" else table.begin_delete_keys()
    op.write(arrow([(DAY, "d", 103)]))
    return op


@pytest.mark.parametrize("first", ["compaction", "change"])
@pytest.mark.parametrize("kind", ["delete", "update", "merge", "upsert", "delete_keys"])
def test_a_compaction_and_a_change_never_meet_in_either_order(keyed, kind, first):
    keyed.append(arrow([(DAY, client, value) for value, client in enumerate("abcdef")]))
    keyed.append(arrow([(DAY, "g", 6)]))
    keyed.delete("value = 0")
    compaction = keyed.begin_compaction()
    compaction.run()
    change = changed(keyed, kind)
    for op in (compaction, change) if first == "compaction" else (change, compaction):
        op.commit()
    expected = [1, 2, 4, 5, 6] + ([] if kind.startswith("delete") else [103])
    assert values(keyed) == expected
    keyed.compact()
    assert values(keyed) == expected


def test_a_compaction_goes_on_when_a_delete_dropped_a_segment_under_it(table):
    table.append(many(10))
    table.append(many(10, value=100))
    compaction = table.begin_compaction()
    compaction.run()
    table.delete("value < 100 AND value >= 0")
    compaction.commit()
    assert values(table) == list(range(100, 110))


def test_two_updates_of_one_row_conflict_and_of_two_rows_never(table):
    table.append(many(10))
    one, other = (table.begin_update({"value": "value + 100"}, f"value = {value}") for value in (1, 2))
    again = table.begin_update({"value": "value + 1000"}, "value = 1")
    for op in (one, other, again):
        op.run()
    one.commit()
    other.commit()
    with pytest.raises(WriteConflict) as caught:
        again.commit()
    assert caught.value.rows == 1
    assert caught.value.example["time"] is not None
    assert values(table) == [0, *range(3, 10), 101, 102]


def test_a_conflict_is_run_again(table):
    table.append(many(10))
    table.update({"value": "value + 1"}, "value = 9")
    threads = [threading.Thread(target=table.update, args=({"value": "value + 1"}, "value >= 10")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values(table) == [*range(9), 13]


@pytest.mark.parametrize("first", ["delete", "update"])
def test_a_delete_removes_a_row_that_was_moved_meanwhile(table, first):
    table.append(arrow([(DAY, "a", 1), (DAY, "b", 2)]))
    delete = table.begin_delete("value = 1")
    delete.run()
    update = table.begin_update({"time": "TIMESTAMP '2013-03-01 00:00:00'"}, "value = 1")
    update.run()
    if first == "delete":
        delete.commit()
        with pytest.raises(WriteConflict):
            update.commit()
    else:
        update.commit()
        delete.commit()
    assert values(table) == [2]


def test_two_deletes_of_one_row_do_not_conflict(table):
    table.append(many(10))
    ops = [table.begin_delete("value = 1 OR value = 2"), table.begin_delete("value = 2 OR value = 3")]
    for op in ops:
        op.run()
    for op in ops:
        op.commit()
    assert values(table) == [0, *range(4, 10)]


def test_a_replace_hides_what_was_rewritten_in_it_while_it_ran(table):
    table.append(arrow([(DAY, "a", 1), (DAY, "b", 2), (NEXT, "c", 3)]))
    replace = table.begin_replace(DAY)
    replace.write(arrow([(DAY, "a", 9)]))
    table.update({"value": "value + 100"}, "value < 3")
    replace.commit()
    assert values(table) == [3, 9]


def test_an_update_that_moves_a_row_out_of_a_running_replace_waits_for_it(table):
    table.append(arrow([(DAY, "a", 1)]))
    replace = table.begin_replace(DAY)
    update = table.begin_update({"time": f"TIMESTAMP '{NEXT} 00:00:00'"}, "value = 1")
    update.run()
    with pytest.raises(WriteConflict, match="running replace"):
        update.commit()
    waiting = threading.Thread(
        target=table.update, args=({"time": f"TIMESTAMP '{NEXT} 00:00:00'"}, "value = 1"), daemon=True
    )
    waiting.start()
    replace.write(arrow([(DAY, "a", 2)]))
    replace.commit()
    waiting.join()
    assert visible(table)[0][2] == 2


@pytest.mark.parametrize("kind", ["delete", "update"])
def test_what_began_before_a_restore_runs_again(table, kind):
    version = table.append(many(10)).version
    table.append(many(10, value=100))
    op = table.begin_delete("value = 3") if kind == "delete" else table.begin_update({"value": "0"}, "value = 3")
    op.run()
    table.restore(version)
    with pytest.raises(WriteConflict, match="restored"):
        op.commit()
    assert values(table) == list(range(10))


def test_an_expiry_during_an_open_delete_or_update_loses_neither(lake, table):
    table.append(many(10))
    delete, update = table.begin_delete("value = 1"), table.begin_update({"value": "102"}, "value = 2")
    delete.run()
    update.run()
    table.append(many(1, value=50))
    table.compact()
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    delete.commit()
    update.commit()
    assert values(table) == [0, *range(3, 10), 50, 102]
    assert not lake.check().findings


def test_a_row_under_tombstones_of_all_kinds_stays_hidden_when_some_of_them_go(lake, keyed):
    keyed.append(arrow([(DAY, "a", 1), (DAY, "b", 2), (NEXT, "c", 3)]))
    row = keyed.begin_delete("value = 1")
    row.run()
    keyed.delete_keys(pa.table({"client": ["a"]}))
    keyed.delete(f"time < '{NEXT}' AND client = 'a'")
    row.commit()
    assert {one.kind for one in keyed.tombstones()} == {"row", "key", "interval"}
    assert values(keyed) == [2, 3]
    keyed.resolve()
    assert values(keyed) == [2, 3]
    keyed.compact(DAY)
    keyed.compact()
    assert (values(keyed), keyed.tombstones()) == ([2, 3], [])
    assert not lake.check().findings


# Resolve


def test_a_resolve_changes_no_row_and_leaves_no_key_tombstone(keyed):
    keyed.append(arrow([(DAY, client, value) for value, client in enumerate("abcdef")]))
    keyed.upsert(arrow([(NEXT, "a", 10), (NEXT, "z", 11)]))
    keyed.delete_keys(pa.table({"client": ["b", "nobody"]}))
    before = visible(keyed)
    commit = keyed.resolve()
    assert {one.kind for one in keyed.tombstones()} == {"row"}
    assert visible(keyed) == before
    assert keyed.resolve() is None
    assert keyed.changes(commit.version - 1).count() == 0


def test_a_resolve_keeps_a_key_tombstone_that_a_running_replace_may_need(keyed):
    keyed.append(arrow([(DAY, "a", 1)]))
    replace = keyed.begin_replace(DAY)
    keyed.upsert(arrow([(NEXT, "a", 2)]))
    keyed.resolve()
    replace.write(arrow([(DAY, "a", 3)]))
    replace.commit()
    assert values(keyed) == [2]
    keyed.resolve()
    assert values(keyed) == [2]
    assert {one.kind for one in keyed.tombstones()} == {"row"}


# Changes


def test_changes_are_inserts_deletes_and_both_forms_of_updates(keyed):
    start = keyed.append(arrow([(DAY, "a", 1), (DAY, "b", 2)])).version
    keyed.update({"value": "value + 1"}, "client = 'a'")
    keyed.compact()
    keyed.delete("client = 'b'")
    keyed.append(arrow([(NEXT, "c", 3)]))
    found = [(row["_change_type"], row["client"], row["value"]) for row in keyed.changes(start).to_arrow().to_pylist()]
    assert found == [
        ("update_before", "a", 1),
        ("update_after", "a", 2),
        ("delete", "b", 2),
        ("insert", "c", 3),
    ]
    assert keyed.changes(start, start).count() == 0
    versions = keyed.changes(start).to_arrow().column("_commit_version").to_pylist()
    assert versions == sorted(versions)


# Looks


def test_chunks_and_differences_do_not_walk_through_all_time_for_a_tombstone_of_keys(lake):
    table = lake.create_table(
        "hours", "time TIMESTAMP NOT NULL, client STRING NOT NULL, value BIGINT", time="time", grain="hour",
        primary_key=["client"],
    )  # fmt: skip
    before = table.upsert(arrow([(DAY, "a", 1), ("2013-03-01", "b", 2)])).version
    after = table.upsert(arrow([(NEXT, "a", 3)])).version
    assert [(one.segments, one.tombstones) for one in table.chunks()] == [(1, 2), (1, 2), (1, 2)]
    found = table.diff(before, after)
    assert {one.kind for one in found.added if hasattr(one, "kind")} == {"key"}
    assert len(found.chunks) == 2
    assert len(table.timeline().slices) == 3


# Transactions


def test_a_transaction_takes_changes_of_many_tables(lake, table, keyed):
    table.append(many(10))
    keyed.append(arrow([(DAY, "a", 1)]))
    with lake.transaction() as tx:
        tx.table("flights").delete("value < 5")
        tx.table("keyed").upsert(arrow([(DAY, "a", 2)]))
        tx.table("keyed").append(arrow([(DAY, "q", 3)]))
    assert tx.version == table.version == keyed.version
    assert (values(table), values(keyed)) == (list(range(5, 10)), [2, 3])


def test_a_conflict_in_a_transaction_commits_none_of_it(lake, table, keyed):
    table.append(many(10))
    tx = lake.transaction()
    tx.table("keyed").append(arrow([(DAY, "q", 3)]))
    tx.table("flights").update({"value": "0"}, "value = 5")
    table.update({"value": "1"}, "value = 5")
    with pytest.raises(WriteConflict), tx:
        pass
    assert keyed.scan().count() == 0


def test_a_change_after_a_write_to_the_same_table_is_refused(lake, table):
    with lake.transaction() as tx:
        tx.table("flights").append(many(10))
        with pytest.raises(InvalidInput, match="put it first"):
            tx.table("flights").delete("value < 5")
    assert table.scan().count() == 10


# Write order start


@pytest.fixture
def started(lake):
    return lake.create_table(
        "started",
        "time TIMESTAMP NOT NULL, client STRING NOT NULL, value BIGINT",
        time="time",
        primary_key=["client"],
        write_order="start",
    )


def test_a_tombstone_stays_while_an_append_that_it_hides_runs_and_goes_afterwards(started):
    append = started.begin_append()
    append.write(arrow([(DAY, "a", 1)]))
    started.replace(arrow([(DAY, "b", 2)]), DAY)
    started.compact()
    assert len(started.tombstones()) == 1
    append.commit()
    assert values(started) == [2]
    started.append(arrow([(DAY, "c", 3)]))
    started.compact()
    assert started.tombstones() == []
    assert values(started) == [2, 3]


def test_an_append_that_began_before_an_upsert_is_under_it(started):
    append = started.begin_append()
    append.write(arrow([(DAY, "a", 1)]))
    started.upsert(arrow([(NEXT, "a", 2)]))
    started.resolve()
    assert [one.kind for one in started.tombstones()] == ["key"]
    append.commit()
    assert values(started) == [2]
    started.resolve()
    assert {one.kind for one in started.tombstones()} == {"row"}
    assert values(started) == [2]


def test_row_level_changes_see_what_was_committed_in_write_order_start(started):
    started.append(arrow([(DAY, "a", 1), (DAY, "b", 2)]))
    late = started.begin_append()
    late.write(arrow([(DAY, "c", 1)]))
    started.update({"value": "value + 10"}, "value = 1")
    started.delete("value = 2")
    late.commit()
    assert values(started) == [1, 11]
