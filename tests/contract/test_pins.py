"""Pins: what a reader can see is neither forgotten nor deleted under it."""

from __future__ import annotations

import gc
import logging
import os
import threading

import pytest
from sqlalchemy import text

from lakehouse.catalog.store.database import Database
from lakehouse.engine.duckdb import QueryLimits
from lakehouse.errors import CatalogUnavailable, InvalidInput, VersionNotFound
from lakehouse.session import pins
from lakehouse.sql.looking import answer
from lakehouse.testing import behind
from lakehouse.testing.rows import SCHEMA, arrow, values

DAY = "2013-01-05"


def pinned(lake) -> list[int]:
    query = text("SELECT version FROM pin ORDER BY version")
    return [version for (version,) in behind.rows_of(lake.catalog, query)]


def clean_up(lake):
    expired = lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    return expired


@pytest.fixture
def reader(connect, table):
    """The same table through a handle of its own, as in another process."""
    table.append(arrow([(DAY, "a", 1)]))
    return connect().table("flights")


def test_a_scan_that_was_planned_before_the_clean_up_reads_to_its_end(lake, table, reader):
    planned, unplanned = reader.scan(), reader.scan()
    assert len(planned.plan().files) == 1
    for n in range(3):
        table.replace(arrow([(DAY, "a", n)]), DAY)
        assert clean_up(lake).held == "a reader"
    assert [scan.to_arrow()["value"].to_pylist() for scan in (planned, unplanned)] == [[1], [1]]
    assert pinned(lake) == [planned.version]
    del planned, unplanned
    gc.collect()
    reader.session.pins.beat()
    assert pinned(lake) == []
    gone = clean_up(lake)
    assert (gone.segments, gone.held) == (3, "")
    assert values(table) == [2]


def test_a_lazy_result_is_held_after_its_scan(lake, table, connect, monkeypatch):
    table.append(arrow([(DAY, "a", 1)]))
    there = connect(pin_seconds=3600)
    relation = there.table("flights").scan().to_duckdb()
    table.replace(arrow([(DAY, "a", 2)]), DAY)
    gc.collect()
    there.session.pins.beat()
    clean_up(lake)
    assert relation.fetchall()[0][2] == 1
    later = pins.steady_seconds() + 3600
    monkeypatch.setattr(pins, "steady_seconds", lambda: later)
    there.session.pins.beat()
    assert pinned(lake) == []


def test_repeated_scans_write_nothing(lake, table, reader, monkeypatch):
    assert values(reader) == [1]
    table.append(arrow([(DAY, "a", 2)]))
    with monkeypatch.context() as patch:
        patch.setattr(Database, "run", None)
        assert values(reader) == [1, 2]
        assert values(reader) == [1, 2]


def test_a_scan_of_an_older_version_lowers_the_pin_and_a_beat_raises_it(lake, table, reader):
    old = reader.version
    table.append(arrow([(DAY, "a", 2)]))
    head = reader.scan()
    assert pinned(lake) == [head.version]
    older = reader.scan(as_of=old)
    assert pinned(lake) == [old]
    del older
    gc.collect()
    reader.session.pins.beat()
    assert pinned(lake) == [head.version]


def test_a_table_that_has_not_changed_for_long_does_not_hold_all_history(lake, table, reader):
    other = lake.create_table("other", SCHEMA, time="time")
    for n in range(3):
        other.replace(arrow([(DAY, "a", n)]), DAY)
    scan = reader.scan(as_of=reader.version)
    assert pinned(lake) == [lake.head]
    assert clean_up(lake).segments == 2
    assert scan.count() == 1


def test_a_reader_of_a_tag_may_go_on_when_the_tag_is_gone(lake, table, reader):
    lake.tag("kept")
    for n in range(2, 4):
        table.replace(arrow([(DAY, "a", n)]), DAY)
    clean_up(lake)
    scan = reader.scan(as_of="kept")
    lake.untag("kept")
    assert clean_up(lake).segments == 0
    assert scan.to_arrow()["value"].to_pylist() == [1]
    del scan
    gc.collect()
    reader.session.pins.beat()
    assert clean_up(lake).segments == 1


def test_a_scan_of_what_was_forgotten_between_is_refused_and_one_of_the_head_looks_again(
    lake, table, reader, monkeypatch
):
    catalog = reader.session.catalog
    resolve = catalog.resolve_as_of
    passed: list[int] = []

    def overtaken(*args):
        point = resolve(*args)
        if len(passed) < 2:
            table.replace(arrow([(DAY, "a", 10 + len(passed))]), DAY)
            passed.append(point[0])
            clean_up(lake)
        return point

    monkeypatch.setattr(catalog, "resolve_as_of", overtaken)
    assert values(reader) == [11]
    passed.clear()
    reader.session.pins.beat()
    with pytest.raises(VersionNotFound, match="expired"):
        reader.scan(as_of=table.version)


def test_a_pin_that_ran_out_is_placed_anew_and_holds_nobody_up(lake, table, connect, caplog):
    there = connect(lease_seconds=0.2)
    reader = there.table("flights")
    table.append(arrow([(DAY, "a", 1)]))
    scan = reader.scan()
    there.session.heartbeat.close()
    threading.Event().wait(0.4)
    table.replace(arrow([(DAY, "a", 2)]), DAY)
    assert clean_up(lake).segments == 1
    with caplog.at_level(logging.WARNING):
        there.session.pins.beat()
    assert "the pin expired" in caplog.text
    with pytest.raises(VersionNotFound, match="expired"):
        scan.to_arrow()
    assert values(reader) == [2]


def test_the_heartbeat_keeps_a_pin_while_its_scan_lives(lake, table, connect):
    there = connect(lease_seconds=1.5)
    table.append(arrow([(DAY, "a", 1)]))
    scan = there.table("flights").scan()
    threading.Event().wait(2.5)
    table.replace(arrow([(DAY, "a", 2)]), DAY)
    assert clean_up(lake).segments == 0
    assert scan.to_arrow()["value"].to_pylist() == [1]


def test_close_lets_go(lake, table, reader):
    held = reader.scan()
    assert len(pinned(lake)) == 1
    reader.session.close()
    assert pinned(lake) == []
    assert held.version


def test_a_catalog_that_takes_no_pin_is_read_without_one(lake, table, reader, monkeypatch, caplog):
    def refuse(*_, **__):
        raise CatalogUnavailable("attempt to write a readonly database")

    monkeypatch.setattr(reader.session.catalog, "pin", refuse)
    with caplog.at_level(logging.WARNING):
        assert values(reader) == values(reader) == [1]
    assert caplog.text.count("without a pin") == 1
    assert "catalog_unavailable: attempt to write" in caplog.text


def test_a_forked_child_has_a_pin_of_its_own(lake, table, reader):
    held = reader.scan()
    before = pinned(lake)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            mine = reader.scan()
            status = 0 if len(pinned(lake)) == 2 and len(mine.plan().files) == 1 else 2
            reader.session.close()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert pinned(lake) == before
    assert held.count() == 1


STATEMENTS = {
    "merge": """MERGE INTO flights t USING (SELECT client FROM flights) AS s
        ON t.client = s.client WHEN MATCHED THEN DELETE""",
    "insert": "INSERT INTO flights SELECT * FROM flights",
    "a merge that is refused": "MERGE INTO flights t USING flights s ON true WHEN MATCHED THEN UPDATE SET value = 1",
    "an insert that is refused": "INSERT INTO flights SELECT NULL, client, value FROM flights",
    "a source that fails": "INSERT INTO flights SELECT time, client, CAST(client AS INT) FROM flights",
    "delete": "DELETE FROM flights WHERE value > 1",
    "update": "UPDATE flights SET value = value + 1",
}


@pytest.mark.parametrize("text", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_a_statement_that_has_ended_holds_nothing(lake, table, text):
    table.append(arrow([(DAY, "a", 1), (DAY, "b", 2)]))
    kept = None  # whoever keeps an error keeps its frames, and all that they name
    try:
        lake.sql(text, engine="duckdb")
    except InvalidInput as error:
        kept = error
    lake.session.pins.beat()
    assert pinned(lake) == []
    assert (kept is not None) is (text in (one for name, one in STATEMENTS.items() if " " in name))


def test_a_look_by_sql_lets_go_of_its_version_when_it_has_its_answer(lake, table):
    table.append(arrow([(DAY, "a", 1)]))
    found = answer(lake.session, "SELECT * FROM flights", as_of=None, limits=QueryLimits(10, 1_000_000, 1 << 30))
    gc.collect()
    lake.session.pins.beat()
    assert pinned(lake) == []
    assert found.rows.num_rows == 1


def test_a_lazy_statement_is_held_until_it_may_have_been_read(lake, table):
    table.append(arrow([(DAY, "a", 1)]))
    relation = lake.sql("SELECT * FROM flights", engine="duckdb")
    version = lake.head
    table.replace(arrow([(DAY, "a", 2)]), DAY)
    gc.collect()
    lake.session.pins.beat()
    assert pinned(lake) == [version]
    clean_up(lake)
    assert relation.fetchall()[0][2] == 1


def test_a_stream_holds_its_version_until_it_was_read(lake, table):
    table.append(arrow([(DAY, "a", 1)]))
    stream = table.scan().to_reader()
    version = lake.head
    table.replace(arrow([(DAY, "a", 2)]), DAY)
    gc.collect()
    lake.session.pins.beat()
    assert pinned(lake) == [version]
    clean_up(lake)
    assert stream.read_all().column("value").to_pylist() == [1]
    del stream
    gc.collect()
    lake.session.pins.beat()
    assert pinned(lake) == []


def test_a_connection_of_views_keeps_its_version_until_it_is_closed_or_gone(lake, table, connect):
    table.append(arrow([(DAY, "a", 1)]))
    lake.tag("first")
    there = connect()
    version = lake.head
    closed, gone, tagged = there.duckdb(), there.duckdb(), there.duckdb("first")
    relation = gone.sql("SELECT value FROM flights")
    lake.untag("first")
    for n in range(2, 5):
        table.replace(arrow([(DAY, "a", n)]), DAY)
        clean_up(lake)
        there.session.pins.beat()
    assert pinned(lake) == [version]
    for connection in (closed, tagged):
        assert connection.execute("SELECT value, lake_version() FROM flights").fetchall() == [(1, version)]
        connection.close()
    del gone, connection
    gc.collect()
    there.session.pins.beat()
    assert pinned(lake) == [version]  # a relation keeps its connection
    assert relation.fetchall() == [(1,)]
    del relation
    gc.collect()
    there.session.pins.beat()
    assert pinned(lake) == []
    assert clean_up(lake).segments == 3
    with pytest.raises(VersionNotFound):
        there.duckdb(version)
    with there.duckdb() as newest:
        there.close()
        assert newest.execute("SELECT value FROM flights").fetchall() == [(4,)]


def test_a_lazy_frame_and_a_dataset_keep_their_version_while_they_live(lake, table, connect):
    table.append(arrow([(DAY, "a", 1)]))
    there = connect(pin_seconds=0.001)
    frame = there.table("flights").scan().to_polars(lazy=True).select("value")
    dataset = there.table("flights").scan().to_dataset()
    for left in (2, 3):
        table.replace(arrow([(DAY, "a", left)]), DAY)
        gc.collect()
        there.session.pins.beat()
        clean_up(lake)
        if frame is not None:
            assert frame.collect().rows() == [(1,)]
            frame = None
    assert dataset.to_table(columns=["value"]).to_pylist() == [{"value": 1}]
    del dataset
    gc.collect()
    there.session.pins.beat()
    assert pinned(lake) == []
