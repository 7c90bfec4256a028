"""A reader that was held up past its lease, and whose files are gone since, gets an error that says so."""

from __future__ import annotations

import threading

import duckdb
import pytest

from lakehouse.engine.duckdb import QueryLimits, result
from lakehouse.errors import LockLost, SegmentUnreadable, VersionNotFound
from lakehouse.lake import Lake
from lakehouse.sql.looking import answer
from lakehouse.storage.verify import verified
from lakehouse.testing import faults
from lakehouse.testing.rows import KEYED, arrow, values

DAY = "2013-01-05"
pytestmark = pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
BY_NAME = (SegmentUnreadable, VersionNotFound)


def look(table, statement):
    """What a query process does for ``lake.query``, in this process, so that it can be held up."""
    return answer(table.session, statement, as_of=None, limits=QueryLimits(10, 1_000_000, 1 << 30)).rows


READS = {
    "to_arrow": lambda table: table.scan().to_arrow(),
    "to_pandas": lambda table: table.scan().to_pandas(),
    "to_polars": lambda table: table.scan().to_polars(),
    "to_reader": lambda table: table.scan().to_reader().read_all(),
    "to_duckdb": lambda table: table.scan().to_duckdb(),
    "lazy": lambda table: table.scan().to_polars(lazy=True).collect(),
    "views": lambda table: Lake(table.session).duckdb().close(),
    "count": lambda table: table.scan(where="value % 2 = 0").count(),
    "masked": lambda table: table.scan(where="client = 'a'").to_arrow(),
    "sql": lambda table: Lake(table.session).sql("SELECT sum(value) FROM flights", engine="duckdb").fetchall(),
    "query": lambda table: look(table, "SELECT sum(value) FROM flights"),
    "explain": lambda table: look(table, "EXPLAIN SELECT sum(value) FROM flights"),
    "changes": lambda table: table.changes(table.log()[-1].version).to_arrow(),
}
WRITES = {
    "delete": lambda table: table.delete("value % 2 = 0"),
    "update": lambda table: table.update({"client": "'z'"}, "value % 2 = 0"),
    "merge": lambda table: table.merge(arrow([(DAY, "a", 1)]), "target.value = source.value"),
    "erase": lambda table: table.erase("value % 2 = 0"),
    "compact": lambda table: table.compact(),
    "resolve": lambda table: table.resolve(),
}


@pytest.fixture
def held(connect, lake):
    """The table through a process that has stopped renewing its leases, and what makes all that it reads go."""
    table = lake.create_table("flights", KEYED, time="time", primary_key=("value",))
    for first in (0, 20):
        table.append(arrow([(DAY, "a", first + value) for value in range(20)]))
    table.delete("value IN (3, 23)")
    table.upsert(arrow([(DAY, "b", 5)]))
    there = connect(lease_seconds=0.1)

    def take_away():
        there.session.heartbeat.close()
        threading.Event().wait(0.3)  # its lease runs out
        table.replace(arrow([(DAY, "c", 99)]), DAY)
        table.clean()
        lake.expire(keep_last=1)
        lake.collect(grace_seconds=0)

    return there.table("flights"), take_away


def assert_named(lake, ask, *others):
    """An answer from before is an answer; else the error says what is gone."""
    try:
        ask()
    except (*BY_NAME, *others):
        pass
    assert lake.check().findings == []
    assert 99 in values(lake.table("flights"))


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_what_it_found_in_the_catalog_is_gone_when_it_looks_into_it(held, lake, name, monkeypatch):
    table, take_away = held
    catalog, found = table.session.catalog, []

    def looking(look):
        def look_and_wait(*args, **named):
            answer = look(*args, **named)
            if not found:
                found.append(True)
                take_away()
            return answer

        return look_and_wait

    for look in ("live", "come", "feed"):
        monkeypatch.setattr(catalog, look, looking(getattr(catalog, look)))
    assert_named(lake, lambda: {**READS, **WRITES}[name](table), *((LockLost,) if name in WRITES else ()))
    assert found or name == "erase"


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_files_that_it_has_looked_at_are_gone_when_it_reads_them(held, lake, name, monkeypatch):
    table, take_away = held
    looked = faults.on_count(1, take_away)

    def look_and_wait(*args, **options):
        files = verified(*args, **options)
        looked()
        return files

    monkeypatch.setattr(result, "verified", look_and_wait)
    others = (LockLost,) if name in WRITES else (duckdb.IOException,) if name == "sql" else ()
    found = []
    try:
        found.append({**READS, **WRITES}[name](table))
    except (*BY_NAME, *others):
        pass
    monkeypatch.undo()
    assert lake.check().findings == []


@pytest.mark.parametrize("name", READS)
def test_what_it_planned_to_read_is_gone_when_it_opens_it(held, lake, name):
    table, take_away = held
    with faults.armed({"read.planned": faults.on_count(1, take_away)}):
        if name in ("changes", "explain"):
            take_away()
        assert_named(lake, lambda: READS[name](table))


@pytest.mark.parametrize("name", WRITES)
def test_what_it_began_upon_is_gone_when_it_looks_at_it(held, lake, name):
    table, take_away = held
    with faults.armed({"begin.registered": faults.on_count(1, take_away)}):
        assert_named(lake, lambda: WRITES[name](table), LockLost)


@pytest.mark.parametrize("name", ["to_reader", "changes"])
def test_a_stream_that_was_begun_fails_by_name(held, lake, name):
    table, take_away = held
    stream = table.scan().to_reader() if name == "to_reader" else table.changes(table.log()[-1].version).to_reader()
    take_away()
    with pytest.raises(BY_NAME):
        stream.read_all()


def test_a_change_feed_that_was_asked_for_fails_by_name(held, lake):
    table, take_away = held
    changes = table.changes(table.log()[-1].version)
    take_away()
    for read in (changes.to_arrow, changes.count, changes.to_pandas):
        with pytest.raises(BY_NAME):
            read()


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("name", ["to_arrow", "to_reader", "to_duckdb", "count", "to_polars", "plan"])
def test_a_scan_that_was_made_fails_by_name(held, lake, name, planned):
    table, take_away = held
    scan = table.scan(where="value % 3 = 1")
    if planned:
        scan.plan()
    take_away()
    if planned and name == "plan":
        assert scan.plan().segments
        return
    with pytest.raises(BY_NAME):
        getattr(scan, name)()


def test_a_lazy_relation_names_the_file_that_is_gone(held, lake):
    """It is DuckDB's own, and so is its error."""
    table, take_away = held
    relation = table.scan().to_duckdb()
    take_away()
    with pytest.raises(Exception, match=r"\.parquet"):
        relation.fetchall()


@pytest.fixture
def erasing(connect, lake):
    """A table through a process, and another one that erases a row of it and collects at once what that left."""
    table = lake.create_table("flights", KEYED, time="time", primary_key=("value",))
    for first in (0, 20):
        table.append(arrow([(DAY, "a", first + value) for value in range(20)]))
    table.delete("value IN (3, 23)")
    table.upsert(arrow([(DAY, "b", 5)]))
    there = connect()

    def erase():
        lake.table("flights").erase("value = 4 OR value = 25")
        assert lake.collect(grace_seconds=0).files

    return there.table("flights"), erase


LEFT = [value for value in range(40) if value not in (3, 4, 23, 25)]


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_who_planned_before_an_erasure_plans_again(erasing, lake, name, monkeypatch):
    table, erase = erasing
    catalog, fired = table.session.catalog, []

    def looking(look):
        def look_and_erase(*args, **named):
            answer = look(*args, **named)
            if not fired:
                fired.append(True)
                erase()
            return answer

        return look_and_erase

    for look in ("live", "come", "stored", "feed"):
        monkeypatch.setattr(catalog, look, looking(getattr(catalog, look)))
    answer = {**READS, **WRITES}[name](table)
    assert fired
    if name in ("to_arrow", "to_reader"):
        assert sorted(answer["value"].to_pylist()) == LEFT
    elif name in ("sql", "query"):
        assert sum(LEFT) in (answer[0] if name == "sql" else answer.column(0).to_pylist())
    elif name == "count":
        assert answer == sum(value % 2 == 0 for value in LEFT)
    even_left = [value for value in LEFT if value % 2]
    left = {"delete": even_left, "erase": even_left}.get(name, LEFT)
    assert sorted(values(lake.table("flights"))) == left
    assert lake.check(deep=True).findings == []


@pytest.mark.parametrize("name", ["to_reader", "changes"])
def test_a_stream_that_was_begun_before_an_erasure_goes_on_or_fails_by_name(erasing, name):
    table, erase = erasing
    stream = table.scan().to_reader() if name == "to_reader" else table.changes(table.log()[-1].version).to_reader()
    erase()
    try:
        found = sorted(stream.read_all()["value"].to_pylist())
    except SegmentUnreadable:
        return
    assert name == "changes" or found == LEFT
