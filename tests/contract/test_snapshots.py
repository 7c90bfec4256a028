"""A snapshot of the catalog: what is asked within it is answered from one state, whatever is committed meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakehouse.errors import TableNotFound
from lakehouse.testing.rows import arrow


def test_all_reads_in_a_snapshot_see_one_state(lake, table):
    first = table.append(arrow([("2013-01-05", "a", 1)])).version
    catalog = lake.session.catalog

    def look():
        before = catalog.head()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(table.append, arrow([("2013-01-05", "a", 2)])).result()
        return before, catalog.head(), table.version, catalog.snapshot(catalog.head)

    assert catalog.snapshot(look) == (first,) * 4
    assert lake.head == first + 1


def test_a_snapshot_ends_with_its_work_also_where_that_fails(lake, table):
    catalog = lake.session.catalog
    with pytest.raises(TableNotFound):
        catalog.snapshot(lambda: catalog.table("nowhere"))
    version = table.append(arrow([("2013-01-05", "a", 1)])).version
    assert catalog.head() == version


def test_a_query_of_many_tables_reads_all_of_them_at_one_version(lake, table):
    other = lake.create_table("other", "time TIMESTAMP, client STRING, value BIGINT", time="time")
    ended = threading.Event()

    def write():
        for number in range(40):
            with lake.transaction() as tx:
                tx.table("other").append(arrow([("2013-01-05", "a", number)]))
                tx.table(table.name).append(arrow([("2013-01-05", "a", number)]))
        ended.set()

    text = f"SELECT (SELECT count(*) FROM other), (SELECT count(*) FROM {table.name}), (SELECT count(*) FROM other)"
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        seen = []
        while not ended.is_set():
            seen += lake.sql(text, engine="duckdb").fetchall()
            if writing.done():
                break
        writing.result()
    assert len(set(seen)) > 1
    assert [row for row in seen if len(set(row)) > 1] == []
    assert other.scan().count() == 40
