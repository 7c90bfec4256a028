"""How connections to a catalog are opened, wait and end."""

from __future__ import annotations

import pytest
from sqlalchemy import text

import lakehouse
from lakehouse.catalog.store import database
from lakehouse.testing import behind
from lakehouse.testing.rows import SCHEMA


def test_a_connection_in_use_when_its_catalog_is_closed_is_closed_after(lake):
    held = database.Database(lake.catalog.address)

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


@pytest.mark.parametrize("catalog_url", ["postgresql"], indirect=True)
def test_a_transaction_that_stands_still_lets_the_others_go_on_and_is_run_again(lake, monkeypatch):
    """On SQLite the lock goes with its process, and a process that is paused holds up the others."""
    monkeypatch.setattr(database, "IDLE_TIMEOUT_MS", 200)
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


def test_a_server_that_shows_commits_before_they_are_on_the_disk_does_not_do_so_here(postgres_url, warehouse):
    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-c%20synchronous_commit%3Doff"
    with lakehouse.connect(url, warehouse) as lake:
        shown = behind.rows_of(lake.catalog, text("SHOW synchronous_commit"))
    assert shown == [("on",)]
