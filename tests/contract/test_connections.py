"""What a commit's answer means on the disk, and that no connection outlives its catalog."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import lakehouse
from lakehouse.catalog import database
from lakehouse.errors import CommitUnknown
from lakehouse.testing.rows import SCHEMA, many


@pytest.fixture
def table(tmp_path):
    """A table of an embedded catalog: PostgreSQL syncs its own log."""
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        yield lake.create_table("flights", SCHEMA, time="time")


@pytest.fixture
def synced(table, monkeypatch):
    """The newest version in SQLite's log at each time that it was synced."""
    versions = []
    sync = os.fdatasync
    log = Path(f"{table._lake.catalog._database.url.database}-wal")

    def noted(handle):
        if os.fstat(handle).st_ino == log.stat().st_ino:
            versions.append(table._lake.catalog.head())
        sync(handle)

    monkeypatch.setattr(database.os, "fdatasync", noted)
    return versions


def test_each_append_is_answered_after_its_commit_was_synced(table, synced):
    answered = [table.append(many(10, step_us=1000)).version for _ in range(3)]
    assert synced == answered


def test_a_commit_that_the_disk_does_not_confirm_is_unknown_and_there(table, monkeypatch):
    def broken(_):
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(database.os, "fdatasync", broken)
    with pytest.raises(CommitUnknown, match="check the disk"):
        table.append(many(10, step_us=1000))
    monkeypatch.undo()
    assert table.scan().count() == 10


def test_a_connection_in_use_when_its_catalog_is_closed_is_closed_after(lake):
    held = lake.catalog._database

    def question(connection):
        driver = connection.connection.driver_connection
        held.close()
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
        return driver

    driver = held.read(question)
    if held.is_sqlite:
        with pytest.raises(database.sqlite.ProgrammingError, match="closed"):
            driver.execute("SELECT 1")
    else:
        assert driver.closed


def test_a_transaction_that_stands_still_lets_the_others_go_on_and_is_run_again(lake, monkeypatch):
    if lake.catalog._database.is_sqlite:
        return  # its lock goes with its process, and a process that is paused holds up the others
    monkeypatch.setattr(database, "_IDLE_TIMEOUT_MS", 200)
    paused = database.Database(lake.catalog.url)
    tries = []

    def work(connection):
        database.take_head(connection)
        tries.append(connection.connection.driver_connection)
        if len(tries) == 1:
            other = lake.create_table("flights", SCHEMA, time="time")  # waits for the head
            assert other.version > 0
        return connection.exec_driver_sql("SELECT 1").scalar()

    assert paused.run(work) == 1
    assert len(tries) == 2
    paused.close()
