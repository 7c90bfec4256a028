"""Schedules that the specification's rules did not serialize: each was found by exploring the rules themselves.

In each, whatever order is tried, one operation saw another that comes after it. The one that read has to run again.
"""

from __future__ import annotations

import pytest

from lakehouse.errors import WriteConflict
from lakehouse.testing.rows import arrow, values, visible

DAY, NEXT = "2013-01-05", "2013-01-06"


def replacing(table, rows, interval=DAY, keys=None):
    operation = table.begin_replace(interval, keys=keys)
    operation.write(arrow(rows))
    return operation


@pytest.mark.parametrize("place", [DAY, NEXT], ids=["inside the replace", "beside it"])
@pytest.mark.parametrize("first", ["replace", "delete"])
def test_a_delete_that_saw_an_append_to_a_running_replace_runs_after_the_replace(table, place, first):
    # Replace before append, since 2 is to stay; append before delete, which sees 3; so the replace's 1 must go as well.
    replace = replacing(table, [(DAY, "a", 1)])
    table.append(arrow([(DAY, "a", 2), (place, "a", 1)]))
    delete = table.begin_delete("value = 1")
    delete.run()
    if first == "replace":
        replace.commit()
    with pytest.raises(WriteConflict):
        delete.commit()
    replace.commit()
    table.delete("value = 1")
    assert values(table) == [2]


@pytest.mark.parametrize("first", ["replace", "update"])
def test_an_update_that_saw_an_append_to_a_running_replace_runs_after_the_replace(table, first):
    replace = replacing(table, [(DAY, "a", 1)])
    table.append(arrow([(DAY, "a", 1), (DAY, "a", 2)]))
    update = table.begin_update({"value": "value + 100"}, "value = 1")
    update.run()
    if first == "replace":
        replace.commit()
    with pytest.raises(WriteConflict):
        update.commit()
    replace.commit()


def test_an_update_that_moves_rows_beside_an_append_into_a_running_replace_runs_after_it(table):
    # The append is to stay, so it comes after the replace; what the update moves is to go, so that comes before; and
    # the append was there when the update began.
    table.append(arrow([(NEXT, "a", 1)]))
    replace = replacing(table, [(DAY, "a", 3)])
    table.append(arrow([(DAY, "a", 2)]))
    moved = {"time": f"TIMESTAMP '{DAY} 00:00:00'"}, f"time >= '{NEXT}'"
    update = table.begin_update(*moved)
    update.run()
    with pytest.raises(WriteConflict):
        update.commit()
    replace.commit()
    table.update(*moved)
    assert values(table) == [1, 2, 3]


def test_an_update_that_moves_rows_into_what_was_deleted_meanwhile_runs_again(lake):
    # Append before delete, which hides one of its rows; delete before update, whose row it leaves; and the update did
    # not see what was appended.
    table = lake.create_table(
        "early", "time TIMESTAMP, client STRING, value BIGINT", time="time", cluster_by="client", write_order="start"
    )
    table.append(arrow([(DAY, "b", 1)]))
    append = table.begin_append()
    append.write(arrow([(DAY, "a", 2), (DAY, "b", 3)]))
    update = table.begin_update({"client": "'a'"}, "client = 'b'")
    update.run()
    append.commit()
    table.delete("client = 'a'")
    with pytest.raises(WriteConflict):
        update.commit()
    table.update({"client": "'a'"}, "client = 'b'")
    assert [row[1:] for row in visible(table)] == [("a", 1), ("a", 3)]


@pytest.mark.parametrize("order", ["a first", "b first"])
def test_every_row_moved_into_a_running_replace_is_covered_however_young(table, order):
    # The update moves an old row, and one of a replace that was committed meanwhile; both or neither may stay.
    table.append(arrow([(DAY, "c", 1)]))
    begin = {"a": lambda: replacing(table, [(DAY, "a", 2)], keys={"client": "a"}),
             "b": lambda: replacing(table, [(DAY, "b", 9)], keys={"client": "b"})}  # fmt: skip
    begun = {name: begin[name]() for name in (order[0], "b" if order[0] == "a" else "a")}
    begun["a"].commit()
    table.update({"client": "'b'", "value": "value + 100"}, "client = 'a' OR client = 'c'")
    begun["b"].commit()
    assert values(table) == [9]


def test_a_delete_conflicts_with_a_restore_of_chunks_that_it_found_nothing_in(table):
    # Delete before restore would leave both rows, restore before delete none.
    table.append(arrow([(DAY, "a", 1), (NEXT, "a", 1)]))
    before = table.version
    table.replace(None, NEXT)
    delete = table.begin_delete("value = 1")
    delete.run()
    table.restore(before)
    with pytest.raises(WriteConflict):
        delete.commit()


@pytest.fixture
def keyed(lake):
    return lake.create_table(
        "keyed", "time TIMESTAMP NOT NULL, client STRING NOT NULL, value BIGINT", time="time", primary_key=["client"]
    )


@pytest.mark.parametrize("other", ["upsert", "merge"])
def test_a_merge_conflicts_with_what_brought_a_key_that_it_inserts(keyed, other):
    # The other before the merge would have the key's value changed, the merge before the other would keep the other's.
    clause = {"on": ["client"], "when_matched_update": {"value": "target.value + source.value"}}
    merge = keyed.begin_merge(arrow([(DAY, "a", 5)]), **clause)
    merge.run()
    if other == "merge":
        keyed.merge(arrow([(DAY, "a", 1)]), **clause)
    else:
        getattr(keyed, other)(arrow([(DAY, "a", 1)]))
    with pytest.raises(WriteConflict):
        merge.commit()
    keyed.merge(arrow([(DAY, "a", 5)]), **clause)
    assert [row[2] for row in visible(keyed)] == [6]


def test_a_merge_that_inserts_into_what_a_running_replace_covers_runs_after_it(keyed):
    # What it inserts stays, so it comes after the replace; then it matches what the replace writes.
    keyed.append(arrow([(DAY, "a", 1)]))
    replace = replacing(keyed, [(DAY, "a", 2)])
    merge = keyed.begin_merge(
        arrow([(DAY, "a", 5), (DAY, "b", 5)]),
        on=["client"],
        when_matched_update={"value": "target.value + source.value"},
    )
    merge.run()
    with pytest.raises(WriteConflict):
        merge.commit()
    replace.commit()


def test_a_delete_of_an_interval_hides_all_or_nothing_of_what_a_running_replace_writes(table):
    # Its tombstone is newer than the replace's rows, but reaches only where something older was.
    table.append(arrow([(DAY, "a", 1)]))
    replace = replacing(table, [(DAY, "a", 2), (NEXT, "a", 3)], (DAY, "2013-01-07"))
    table.delete("time >= '2013-01-05'")
    replace.commit()
    assert values(table) in ([], [2, 3])


def test_two_updates_that_move_rows_to_each_other_change_rows_apart_and_both_commit(table):
    # Write skew: conflicts are by row, and no row is changed by both. Said in the decision on row-level writes.
    table.append(arrow([(DAY, "a", 1), (DAY, "b", 2)]))
    one = table.begin_update({"client": "'b'"}, "client = 'a'")
    two = table.begin_update({"client": "'a'"}, "client = 'b'")
    for op in (one, two):
        op.run()
    for op in (one, two):
        op.commit()
    assert [row[1:] for row in visible(table)] == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("first", ["merge", "delete"])
def test_a_delete_of_what_a_merge_matches_and_inserts_does_not_stand_beside_it(keyed, first):
    # Delete before merge: both rows are inserted. Merge before delete: none is left.
    keyed.append(arrow([(DAY, "a", 1)]))
    merge = keyed.begin_merge(arrow([(DAY, "a", 1), (DAY, "b", 1)]), ["client"], when_matched_update={"value": "1"})
    delete = keyed.begin_delete("value = 1")
    one, two = (merge, delete) if first == "merge" else (delete, merge)
    one.run()
    two.run()
    one.commit()
    with pytest.raises(WriteConflict):
        two.commit()


@pytest.mark.parametrize("removal", ["delete", "delete by key"])
def test_an_update_after_a_delete_that_hides_what_a_running_replace_writes_runs_after_the_replace(lake, removal):
    # The delete hides the replace's 3, so it comes after it; the update began when the delete had ended; and the
    # replace would hide what the update moves there.
    table = lake.create_table(
        "keyed",
        "time TIMESTAMP NOT NULL, client STRING NOT NULL, value BIGINT NOT NULL",
        time="time",
        primary_key=["value"],
        cluster_by=["client"],
    )
    table.append(arrow([(DAY, "b", 1)]))
    replace = replacing(table, [(DAY, "a", 3)], keys={"client": "a"})
    if removal == "delete":
        table.delete("client = 'a'")
    else:
        table.delete_keys(arrow([(DAY, "a", 3)]))
    update = table.begin_update({"client": "'a'"}, "client = 'b'")
    update.run()
    with pytest.raises(WriteConflict):
        update.commit()
    replace.commit()
    table.update({"client": "'a'"}, "client = 'b'")
    assert values(table) == [1]
