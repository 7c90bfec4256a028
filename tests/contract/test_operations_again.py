"""Operations that are run, written to, committed or sent once more than they should be."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from lakehouse.errors import CatalogUnavailable, InvalidInput, WriteConflict
from lakehouse.testing import faults
from lakehouse.testing.rows import SCHEMA, arrow, values

DAY = "2013-01-05"


@pytest.fixture
def keyed(lake):
    made = lake.create_table("keyed", SCHEMA, time="time", primary_key=["client"])
    made.upsert(arrow([(DAY, "a", 1), (DAY, "b", 2)]))
    return made


@contextmanager
def catalog_down():
    """The catalog's database fails each commit, after the commit has begun."""

    def fail() -> None:
        raise CatalogUnavailable("the catalog's database does not answer")

    with faults.armed({"commit.head": fail}):
        yield


RUNS = {
    "update": lambda table: table.begin_update({"value": "value + 1"}, "client = 'a'"),
    "delete": lambda table: table.begin_delete("value = 1"),
    "merge": lambda table: table.begin_merge(arrow([(DAY, "z", 9)]), ["client"], when_matched_update=True),
    "compact": lambda table: table.begin_compaction(),
    "resolve": lambda table: table.begin_resolve(),
    "erase": lambda table: table.begin_erase("value = 1"),
}


@pytest.mark.parametrize("kind", RUNS)
def test_an_operation_that_failed_while_it_ran_cannot_be_committed(keyed, monkeypatch, kind):
    keyed.append(arrow([(DAY, "c", 3)]))
    expected = values(keyed)
    operation = RUNS[kind](keyed)

    def fail(*_: object, **__: object) -> None:
        raise CatalogUnavailable("the catalog's database does not answer")

    with monkeypatch.context() as patch:
        for name in ("live", "stored"):
            patch.setattr(keyed.session.catalog, name, fail)
        with pytest.raises(CatalogUnavailable):
            operation.run()
    with pytest.raises(InvalidInput, match="failed and has ended"):
        operation.commit()
    assert values(keyed) == expected


@pytest.mark.parametrize("kind", RUNS)
def test_an_operation_runs_once(lake, keyed, kind):
    keyed.append(arrow([(DAY, "c", 3)]))
    keyed.append(arrow([(DAY, "d", 4)]))
    with RUNS[kind](keyed) as once:
        once.run()
        once.commit()
    expected = values(keyed)
    if kind != "erase":
        keyed.restore(keyed.log()[0].version - 1)
    again = RUNS[kind](keyed)
    again.run()
    with pytest.raises(InvalidInput, match="has run"):
        again.run()
    again.commit()
    assert values(keyed) == expected
    assert lake.check(deep=True).is_sound


@pytest.mark.parametrize("many", [1, 20_000])
def test_keys_written_after_a_commit_that_failed_hide_their_rows_too(lake, keyed, many):
    first = [(DAY, f"new {n}", n) for n in range(many)]
    op = keyed.begin_upsert()
    op.write(arrow([(DAY, "a", 10), *first]))
    with catalog_down(), pytest.raises(CatalogUnavailable):
        op.commit()
    op.write(arrow([(DAY, "b", 20)]))
    op.commit()
    assert sorted(values(keyed, where="client IN ('a', 'b')")) == [10, 20]
    gone = keyed.begin_delete_keys()
    gone.write(arrow([(DAY, "a", 0), *first]).select(["client"]))
    with catalog_down(), pytest.raises(CatalogUnavailable):
        gone.commit()
    gone.write(arrow([(DAY, "b", 0)]).select(["client"]))
    gone.commit()
    assert values(keyed) == []
    assert lake.check().is_sound


def test_a_transaction_that_conflicts_at_its_own_commit_lets_go_of_all_it_holds(lake, table):
    other = lake.create_table("other", SCHEMA, time="time")
    other.append(arrow([(DAY, "a", 1)]))
    with lake.transaction() as tx:
        tx.table("flights").replace(arrow([(DAY, "a", 1)]), DAY)
        tx.table("other").update({"value": "value + 1"}, "client = 'a'")
        other.update({"value": "value + 5"}, "client = 'a'")
        with pytest.raises(WriteConflict):
            tx.commit()
    assert not lake.operations()
    table.replace(None, DAY)
    with pytest.raises(InvalidInput, match="aborted"):
        tx.commit()


def test_a_transaction_commits_when_the_catalog_is_there_again(lake, table):
    with lake.transaction() as tx:
        tx.table("flights").append(arrow([(DAY, "a", 1)]))
        with catalog_down(), pytest.raises(CatalogUnavailable):
            tx.commit()
        commit = tx.commit()
    assert values(table) == [1]
    assert tx.commit() == commit == lake.log()[0]
    with pytest.raises(InvalidInput, match="committed"):
        tx.abort()


def test_a_repeated_change_of_rows_gives_its_first_commit_whatever_the_rows_are_now(lake, keyed):
    twice = arrow([(DAY, "x", 1), (DAY, "x", 2)])
    merge = {"when_matched_update": True, "when_not_matched_insert": False, "txn": ("feed", 1)}
    first = keyed.merge(twice, ["client"], **merge)
    keyed.append(arrow([(DAY, "x", 0)]))
    assert keyed.merge(twice, ["client"], **merge) == first
    erased = keyed.erase("client = 'a'", txn=("feed", 2))
    keyed.append(arrow([(DAY, "a", 5)]))
    again = keyed.erase("client = 'a'", txn=("feed", 2))
    assert (again.version, again.segments_rewritten, again.segments_removed) == (erased.version, 0, 0)
    assert sorted(values(keyed)) == [0, 2, 5]


def test_a_commit_shows_the_mark_of_what_it_made_alone(lake, table):
    other = lake.create_table("other", SCHEMA, time="time")
    table.append(arrow([(DAY, "a", 1)]), txn=("feed", 1))
    with lake.transaction() as tx:
        tx.table("flights").append(arrow([(DAY, "a", 1)]), txn=("feed", 1))
        tx.table("other").append(arrow([(DAY, "a", 1)]))
    assert tx.commit() == lake.log()[0]
    assert tx.commit().txn is None
    assert values(table) == values(other) == [1]


def test_a_merge_whose_keys_hide_rows_that_it_did_not_match_is_not_exact(keyed):
    by_key = keyed.merge(arrow([(DAY, "a", 5), (DAY, "n", 6)]), ["client"], when_matched_update=True)
    assert (by_key.is_exact, by_key.rows_deleted, by_key.rows_added) == (True, 1, 2)
    by_value = keyed.merge(arrow([(DAY, "a", 7)]), ["value"], when_matched_update=True)
    assert (by_value.is_exact, by_value.rows_lost) == (False, "?")
    assert sorted(values(keyed)) == [2, 6, 7]


@pytest.mark.parametrize("properties", [5, "x", [1], b"x", object()])
def test_an_erasure_refuses_properties_that_are_none(table, properties):
    with pytest.raises(InvalidInput):
        table.erase("client = 'a'", reason="request 17", properties=properties)


def test_an_aborted_erasure_writes_nothing_more(lake, table, warehouse):
    table.append(arrow([(DAY, "a", 1), (DAY, "b", 2)]))
    op = table.begin_erase("client = 'a'")
    op.abort()
    before = {path for path in warehouse.rglob("*") if path.is_file()}
    with pytest.raises(InvalidInput):
        op.commit()
    assert {path for path in warehouse.rglob("*") if path.is_file()} == before
