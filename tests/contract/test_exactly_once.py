"""``txn=(app, sequence)``: the same pair again returns the first commit and changes nothing."""

from __future__ import annotations

import pytest

from lakehouse.errors import InvalidInput
from lakehouse.testing.rows import SCHEMA, arrow, values

BATCH = arrow([("2013-01-05", "a", 1)])


def test_the_same_pair_again_returns_the_first_commit(lake, table):
    first = table.append(BATCH, txn=("feed", 17))
    head = lake.head
    again = table.append(BATCH, txn=("feed", 17))
    assert again == first
    assert again.txn == ("feed", 17)
    assert lake.head == head
    assert values(table) == [1]


def test_it_does_so_from_another_handle_and_after_other_commits(connect, table):
    first = table.append(BATCH, txn=("feed", 17))
    table.append(BATCH)
    there = connect().table("flights")
    assert there.append(BATCH, txn=("feed", 17)).version == first.version
    assert values(there) == [1, 1]


def test_other_pairs_are_other_commits(table):
    pairs = [("feed", 17), ("feed", 18), ("other", 17), ("feed", 16), ("feed", 0)]
    versions = [table.append(BATCH, txn=pair).version for pair in pairs]
    assert len(set(versions)) == len(pairs)
    assert values(table) == [1] * len(pairs)


def test_a_replace_is_done_once(table):
    table.append(BATCH)
    first = table.replace(arrow([("2013-01-05", "a", 2)]), "2013-01-05", txn=("feed", 1))
    table.append(arrow([("2013-01-05", "a", 3)]))
    again = table.replace(arrow([("2013-01-05", "a", 2)]), "2013-01-05", txn=("feed", 1))
    assert again.version == first.version
    assert values(table) == [2, 3]
    assert table.locks() == []


def test_two_running_operations_of_one_pair_leave_one_commit(table):
    one, two = table.begin_append(txn=("feed", 1)), table.begin_append(txn=("feed", 1))
    one.write(BATCH)
    two.write(BATCH)
    assert two.commit().version == one.commit().version
    assert values(table) == [1]
    assert len(table.segments()) == 1


def test_a_pair_whose_operation_was_aborted_is_free(table):
    operation = table.begin_append(txn=("feed", 1))
    operation.write(BATCH)
    operation.abort()
    table.append(BATCH, txn=("feed", 1))
    assert values(table) == [1]


def test_a_pair_survives_a_drop_of_its_rows_and_a_restore(table):
    created = table.version
    first = table.append(BATCH, txn=("feed", 1))
    table.replace(None, "2013-01-05")
    assert table.append(BATCH, txn=("feed", 1)).version == first.version
    table.restore(created)
    assert table.append(BATCH, txn=("feed", 1)).version == first.version
    assert values(table) == []


def test_committing_an_operation_again_returns_its_commit(table):
    operation = table.begin_append()
    operation.write(BATCH)
    first = operation.commit()
    assert operation.commit() == first
    assert values(table) == [1]


def test_two_tables_keep_their_pairs_apart(lake, table):
    other = lake.create_table("other", SCHEMA, time="time")
    table.append(BATCH, txn=("feed", 1))
    other.append(BATCH, txn=("feed", 1))
    assert (values(table), values(other)) == ([1], [1])


@pytest.mark.parametrize("txn", [("feed",), ("feed", "x"), ("", 1), (1, 1), "feed", ("feed", 2**63), ("feed", True)])
def test_a_bad_pair_is_refused(lake, table, txn):
    head = lake.head
    with pytest.raises(InvalidInput):
        table.append(BATCH, txn=txn)
    assert lake.head == head
    assert values(table) == []
