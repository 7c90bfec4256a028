"""Many tables in one commit: one version, all or none."""

from __future__ import annotations

import pytest

from lakehouse.errors import InvalidInput, LockLost, LockTimeout, TableNotFound
from lakehouse.testing.rows import SCHEMA, arrow, row, values, visible


@pytest.fixture
def others(lake, table):
    """Three tables beside the first."""
    return [lake.create_table(name, SCHEMA, time="time", cluster_by=("client",)) for name in ("b", "c", "d")]


def test_a_transaction_is_one_version_of_every_table_that_it_touched(lake, table, others):
    head = lake.head
    with lake.transaction() as tx:
        for index, one in enumerate([table, *others]):
            tx.table(one.name).append(arrow([("2013-01-05", "a", index)]))
        assert lake.head == head
    versions = {one.version for one in [table, *others]}
    assert versions == {lake.head}
    assert sorted(lake.log(1)[0].tables) == ["b", "c", "d", "flights"]
    assert [values(one) for one in [table, *others]] == [[0], [1], [2], [3]]


def test_one_version_names_a_consistent_state_of_every_table(lake, table, others):
    versions = []
    for turn in range(3):
        with lake.transaction() as tx:
            tx.table("flights").replace(arrow([("2013-01-05", "a", turn)]), "2013-01-05")
            tx.table("b").replace(arrow([("2013-01-05", "a", turn)]), "2013-01-05")
        versions.append(lake.head)
    for turn, version in enumerate(versions):
        assert values(table, as_of=version) == values(others[0], as_of=version) == [turn]


def test_an_exception_in_a_transaction_leaves_nothing(lake, table, others):
    table.append(arrow([("2013-01-05", "a", 1)]))
    head = lake.head

    def attempt() -> None:
        with lake.transaction() as tx:
            tx.table("flights").replace(None, "2013-01-05")
            tx.table("b").append(arrow([("2013-01-05", "a", 2)]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        attempt()
    assert lake.head == head
    assert (values(table), values(others[0])) == ([1], [])
    assert table.locks() == []


def test_one_bad_operation_undoes_the_others(lake, table, others):
    head = lake.head

    def attempt() -> None:
        with lake.transaction() as tx:
            tx.table("b").append(arrow([("2013-01-05", "a", 2)]))
            tx.table("flights").replace(arrow([("2013-01-07", "a", 2)]), "2013-01-05")

    with pytest.raises(InvalidInput):
        attempt()
    assert lake.head == head
    assert visible(others[0]) == []
    assert table.locks() == []


def test_a_caught_error_still_leaves_nothing_of_the_failed_operation(lake, table, others):
    table.append(arrow([("2013-01-05", "a", 1)]))
    with lake.transaction() as tx:
        tx.table("b").append(arrow([("2013-01-05", "a", 2)]))
        with pytest.raises(InvalidInput):
            tx.table("flights").replace(arrow([("2013-01-07", "a", 2)]), "2013-01-05")
    assert values(table) == [1]
    assert values(others[0]) == [2]
    assert table.locks() == []


def test_a_missing_table_in_a_transaction_is_named(lake, table):
    head = lake.head

    def attempt() -> None:
        with lake.transaction() as tx:
            tx.table("flights").append(arrow([("2013-01-05", "a", 2)]))
            tx.table("nowhere").append(arrow([("2013-01-05", "a", 2)]))

    with pytest.raises(TableNotFound, match="nowhere"):
        attempt()
    assert lake.head == head


def test_an_empty_transaction_makes_no_version(lake, table):
    head = lake.head
    with lake.transaction():
        pass
    assert lake.head == head


def test_operations_on_one_table_go_together(lake, table):
    table.append(arrow([("2013-01-05", "a", 1), ("2013-01-06", "a", 2)]))
    with lake.transaction() as tx:
        tx.table("flights").replace(arrow([("2013-01-05", "a", 3)]), "2013-01-05")
        tx.table("flights").replace(arrow([("2013-01-06", "c", 6)]), "2013-01-06", keys={"client": "c"})
        tx.table("flights").append(arrow([("2013-01-05", "a", 4), ("2013-01-06", "b", 5)]))
    assert values(table) == [2, 3, 4, 5, 6]
    assert len(table.log()) == 2


def test_a_replace_after_an_append_in_one_transaction_hides_it_or_is_refused(lake, table):
    def attempt() -> None:
        with lake.transaction() as tx:
            tx.table("flights").append(arrow([("2013-01-05", "a", 1)]))
            tx.table("flights").replace(arrow([("2013-01-05", "a", 2)]), "2013-01-05")

    try:
        attempt()
    except InvalidInput:
        assert values(table) == []
    else:
        assert values(table) == [2]


def test_overlapping_replaces_in_one_transaction_end_soon_and_clearly(connect, table):
    lake = connect(wait_seconds=0.1)
    table.append(arrow([("2013-01-05", "a", 1)]))

    def attempt() -> None:
        with lake.transaction() as tx:
            tx.table("flights").replace(arrow([("2013-01-05", "a", 2)]), "2013-01-05")
            tx.table("flights").replace(arrow([("2013-01-05", "a", 3)]), "2013-01-05")

    try:
        attempt()
    except (InvalidInput, LockTimeout):
        assert values(table) == [1]
    else:
        assert values(table) == [3]
    assert table.locks() == []


def test_one_pair_twice_in_one_transaction_counts_once(lake, table):
    def attempt() -> None:
        with lake.transaction() as tx:
            tx.table("flights").append(arrow([("2013-01-05", "a", 1)]), txn=("feed", 1))
            tx.table("flights").append(arrow([("2013-01-05", "a", 1)]), txn=("feed", 1))

    try:
        attempt()
    except InvalidInput:
        assert values(table) == []
    else:
        assert values(table) == [1]


def test_a_transaction_of_pairs_that_were_committed_changes_nothing(lake, table, others):
    def attempt() -> int:
        with lake.transaction() as tx:
            tx.table("flights").append(arrow([("2013-01-05", "a", 1)]), txn=("feed", 1))
            tx.table("b").append(arrow([("2013-01-05", "a", 2)]), txn=("feed", 1))
        return lake.head

    assert attempt() == attempt()
    assert (values(table), values(others[0])) == ([1], [2])


def test_two_replaces_of_one_ragged_segment_in_one_transaction_hide_both_parts(lake):
    table = lake.create_table("ragged", SCHEMA, time="time", properties={"ragged": "true"})
    table.append(arrow([(f"2013-01-{day:02d}", "a", day) for day in range(1, 8)]))
    with lake.transaction() as tx:
        tx.table("ragged").replace(None, "2013-01-02")
        tx.table("ragged").replace(arrow([("2013-01-05", "a", 50)]), ("2013-01-04T12:00", "2013-01-06T12:00"))
    assert values(table) == [1, 3, 4, 7, 50]


def test_a_transaction_that_was_fenced_commits_nothing_of_any_table(lake, table, others):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", value)]))
    compaction = table.begin_compaction()
    compaction.run()
    table.replace(None, "2013-01-05")
    with pytest.raises(LockLost):
        compaction.commit()
    assert visible(table) == []


def test_a_transaction_waits_for_locks_of_others_and_then_gives_up(table, others, connect):
    lake = connect(wait_seconds=0)
    held = connect().table("b").begin_replace("2013-01-05")
    head = lake.head

    def attempt() -> None:
        with lake.transaction() as tx:
            tx.table("flights").append(arrow([("2013-01-05", "a", 1)]))
            tx.table("b").replace(None, "2013-01-05")

    with pytest.raises(LockTimeout, match=str(held.id)):
        attempt()
    held.abort()
    assert lake.head == head
    assert visible(table) == []


def test_rows_of_a_transaction_read_back_at_its_version_only(lake, table, others):
    before = lake.head
    with lake.transaction() as tx:
        tx.table("flights").append(arrow([row("2013-01-05", "a", 1)]))
        tx.table("b").append(arrow([row("2013-01-05", "a", 1)]))
    assert visible(table, as_of=before) == visible(others[0], as_of=before) == []
    assert visible(table) == visible(others[0]) == [row("2013-01-05", "a", 1)]


def test_a_repeated_replace_beside_new_work_gives_its_chunks_back(lake, table):
    other = lake.create_table("other", SCHEMA, time="time")
    table.replace(arrow([("2013-01-05", "a", 1)]), "2013-01-05", txn=("feed", 1))
    with lake.transaction() as tx:
        tx.table("flights").replace(arrow([("2013-01-05", "a", 2)]), "2013-01-05", txn=("feed", 1))
        tx.table("other").append(arrow([("2013-01-05", "a", 3)]))
    assert table.locks() == []
    table.begin_replace("2013-01-05", wait_seconds=0).abort()
    assert len(other.segments()) == 1
