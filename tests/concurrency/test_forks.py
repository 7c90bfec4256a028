"""A child process made by a fork has nothing of its parent's, and can use the lake."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import CatalogUnavailable, InvalidInput
from lakehouse.testing import faults
from lakehouse.testing.rows import SCHEMA, many


@pytest.fixture
def table(lake):
    table = lake.create_table("flights", SCHEMA, time="time")
    table.append(many(3))
    return table


def in_child(work: Callable[[], Any]) -> Any:
    """What a work returns in a forked child, which then ends as programs do."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=lambda: theirs.send(work()))
    process.start()
    theirs.close()
    assert ours.poll(60), "the child hangs"
    answer = ours.recv()
    process.join(60)
    assert process.exitcode == 0
    return answer


def test_a_child_reads_and_writes_the_lake_of_its_parent(lake, table):
    assert table.scan().count() == 3

    def work():
        table.append(many(3))
        return table.scan().count(), table.scan(where="value >= 0").to_arrow().num_rows

    assert in_child(work) == (6, 6)
    table.append(many(3))
    assert table.scan().count() == 9


def test_a_child_neither_renews_nor_ends_what_its_parent_runs(lake, table):
    operation = table.begin_replace("2013-01-05")
    operation.write(many(2))
    renewed = []

    def work():
        lake.catalog.renew = renewed.extend
        lake.session.heartbeat.beat()
        with pytest.raises(InvalidInput, match="forked"):
            operation.commit()
        with pytest.raises(InvalidInput, match="forked"):
            operation.write(many(2))
        with pytest.raises(KeyError), operation:
            raise KeyError
        operation.abort()
        del lake.catalog.renew
        lake.close()
        return renewed

    assert in_child(work) == []
    assert len(table.locks()) == 1
    operation.commit()
    assert table.scan().count() == 2


def test_a_child_does_not_commit_a_transaction_of_its_parent(lake, table):
    with lake.transaction() as tx:
        tx.table("flights").append(many(3))

        def work():
            with pytest.raises(InvalidInput, match="forked"):
                tx.commit()
            return True

        assert in_child(work)
        assert lake.head == 2
    assert table.scan().count() == 6


def test_a_program_that_forks_and_ends_leaves_its_parents_operation_running(lake, table):
    operation = table.begin_append()
    operation.write(many(3))
    child = os.fork()
    if child == 0:
        try:
            with operation:
                raise SystemExit
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    operation.commit()
    assert table.scan().count() == 6


def test_children_that_are_forked_while_threads_commit_do_not_hang(lake, table):
    stop = threading.Event()

    def commit():
        while not stop.is_set():
            table.append(many(1))

    threads = [threading.Thread(target=commit) for _ in range(2)]
    for one in threads:
        one.start()
    try:
        for _ in range(5):
            in_child(lambda: table.append(many(1)).version)
    finally:
        stop.set()
        for one in threads:
            one.join()
    assert table.scan().count() == 3 + len(lake.log()) - 2


@pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
def test_a_child_that_was_forked_within_a_transaction_gets_an_error_that_says_so(lake, table, monkeypatch):
    """A server knows connections from each other."""
    monkeypatch.setattr("lakehouse.catalog.store.database.FORK_SECONDS", 0.1)
    answers = []

    def work():
        try:
            table.append(many(1))
        except CatalogUnavailable as error:
            return str(error)
        return "nothing"

    with faults.armed({"commit.head": faults.on_count(1, lambda: answers.append(in_child(work)))}):
        assert table.append(many(1)).version == 3
    assert "forked while its parent" in answers[0]
    assert table.append(many(1)).version == 4


def test_a_parent_that_ends_leaves_its_child_a_sound_catalog(tmp_path):
    url, warehouse = f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "warehouse")
    lake = lakehouse.connect(url, warehouse)
    table = lake.create_table("flights", SCHEMA, time="time")
    context = multiprocessing.get_context("fork")
    go, ready = context.Event(), context.Event()

    def work():
        table.append(many(1))
        ready.set()
        assert go.wait(60)
        table.append(many(1))

    process = context.Process(target=work)
    process.start()
    assert ready.wait(60)
    lake.close()  # the last to close brings the log in and deletes it: the child must be seen
    with lakehouse.connect(url, warehouse) as other:
        other.table("flights").append(many(1))
    go.set()
    process.join(60)
    assert process.exitcode == 0
    with lakehouse.connect(url, warehouse) as other:
        assert other.table("flights").scan().count() == 3
