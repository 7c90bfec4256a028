"""A copy of a file that an erasure replaced is neither read from nor kept, whenever the reader began."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.catalog.commit import leftover
from lakehouse.reading import follow
from lakehouse.reading.scan import planned_read
from lakehouse.spark_source import LakehouseSource
from lakehouse.testing.object_stores import Store
from lakehouse.testing.store_faults import Fault, Rule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind

DAY = datetime(2024, 1, 1, tzinfo=UTC)


def events(ids: range) -> pa.Table:
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("label", pa.string())])
    return pa.table([[DAY + timedelta(days=one % 3) for one in ids], list(ids), ["secret"] * len(ids)], schema=schema)


def opened(tmp_path: Path, machine: str = "one") -> lakehouse.Lake:
    return lakehouse.connect(cache_dir=tmp_path / machine)


@pytest.fixture
def lake(store: Store, tmp_path: Path) -> Iterator[lakehouse.Lake]:
    with opened(tmp_path) as lake:
        lake.create_table("events", "at TIMESTAMP, id BIGINT, label STRING", time="at").append(events(range(30)))
        yield lake


def copies(lake: lakehouse.Lake) -> set[str]:
    root = lake.session.warehouse.root
    return {one.relative_to(root).as_posix() for one in root.rglob("*.parquet") if ".parts" not in one.parts}


def left(lake: lakehouse.Lake) -> set[str]:
    """Copies of files that the catalog names no more."""
    return copies(lake) - {one.path for one in lake.catalog.checks().files()}


def test_a_scan_that_was_planned_before_reads_what_the_erasure_left(lake: lakehouse.Lake, tmp_path: Path) -> None:
    with opened(tmp_path, "two") as other:
        scan = other.table("events").scan()
        assert len(scan.plan().segments) == 3
        lake.table("events").erase("id = 7")
        assert 7 not in scan.to_arrow()["id"].to_pylist()  # nothing was fetched yet
        lake.table("events").erase("id = 8")
        assert not {7, 8} & set(scan.to_arrow()["id"].to_pylist())  # what was fetched is dropped
        assert left(other) == set()


def test_a_read_on_the_way_brings_nothing_back_for_good(lake: lakehouse.Lake, tmp_path: Path) -> None:
    """It has planned before the erasure, and fetches after this machine has dropped what that replaced."""
    with opened(tmp_path, "two") as late, opened(tmp_path, "two") as soon:
        table = late.table("events")
        plan = planned_read(late.session, table.spec, table.version, None)
        lake.table("events").erase("id = 7")
        assert 7 not in soon.table("events").scan().to_arrow()["id"].to_pylist()
        late.session.warehouse.as_of_erasure(plan.erasure).fetch(plan.segments)
        assert left(late), "the store still has the old file"
        assert 7 not in soon.table("events").scan().to_arrow()["id"].to_pylist()
        assert left(soon) == set()
        # Nothing is looked for again, now that it is gone.
        before = late.cache.erasure
        soon.table("events").scan().to_arrow()
        assert late.cache.erasure == before > 0


FETCHING = """
import os, signal, sys
import lakehouse
from lakehouse.catalog.commit import leftover
from lakehouse.reading.scan import planned_read
lake = lakehouse.connect(cache_dir=sys.argv[1])
table = lake.table("events")
plan = planned_read(lake.session, table.spec, table.version, None)
print("planned", flush=True)
sys.stdin.readline()
lake.session.warehouse.as_of_erasure(plan.erasure).fetch(plan.segments)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_read_that_is_killed_leaves_its_copies_to_the_next(lake: lakehouse.Lake, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FETCHING, str(tmp_path / "two")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as late:
        assert late.stdout is not None
        assert late.stdin is not None
        assert late.stdout.readline() == "planned\n"
        lake.table("events").erase("id = 7")
        with opened(tmp_path, "two") as other:
            other.table("events").scan().to_arrow()
            late.stdin.write("\n")
            late.stdin.close()
            assert late.wait() == -signal.SIGKILL
            assert left(other)
            other.table("events").scan().to_arrow()
            assert left(other) == set()


def test_dropping_that_is_killed_half_way_is_done_again(lake: lakehouse.Lake) -> None:
    cache = lake.cache
    lake.table("events").scan().to_arrow()

    def killed() -> list[str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.drop_replaced(5, killed)
    assert (cache.erasure, cache.erasure_begun) == (0, 5)
    held = copies(lake)
    cache.drop_replaced(5, lambda: sorted(held)[:1])
    assert (cache.erasure, copies(lake)) == (5, set(sorted(held)[:1]))


def test_of_two_that_drop_at_once_the_later_says_when_it_is_done(lake: lakehouse.Lake) -> None:
    cache = lake.cache

    def another_begins() -> set[str]:
        cache.drop_replaced(7, lambda: copies(lake))
        return copies(lake)

    cache.drop_replaced(5, another_begins)
    assert cache.erasure == 7

    def an_older_plan_makes_a_copy() -> set[str]:
        cache.add("t/x", lambda file: file.write_bytes(b"old"), 7)
        return copies(lake)

    cache.drop_replaced(9, an_older_plan_makes_a_copy)
    assert cache.erasure == 7, "the next one has to look again"


def test_a_machine_without_the_catalog_drops_all_once(lake: lakehouse.Lake, tmp_path: Path) -> None:
    """As one of Spark's workers does, which hears of an erasure by the plans that it gets."""
    table = lake.table("events")
    with opened(tmp_path, "worker") as worker:
        before = list(table.segments())
        assert worker.session.warehouse.fetch(before) == {}
        table.erase("id = 7")
        now = list(table.segments())
        warehouse = worker.session.warehouse.as_of_erasure(lake.catalog.newest_erasure())
        assert warehouse.fetch(now) == {}
        assert copies(worker) == {one.path for one in now}
        worker.cache.misses = 0
        assert warehouse.fetch(now) == {}
        assert worker.cache.misses == 0


def test_a_statement_asks_for_the_newest_erasure_once(lake: lakehouse.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    look = leftover.newest_erasure

    def counted(connection: object) -> int:
        asked.append(connection)
        return look(connection)

    monkeypatch.setattr(leftover, "newest_erasure", counted)
    text = "SELECT count(*) FROM events a JOIN events b USING (id) JOIN events c USING (id) WHERE a.label <> 'x'"
    assert lake.sql(text).fetchall() == [(30,)]
    assert len(asked) == 1


def test_an_erasure_whose_exports_cannot_be_renewed_stands_and_says_so(lake: lakehouse.Lake, store: Store) -> None:
    lake.export()
    with StoreProxy(store.port) as proxy:
        options = store.through(proxy.port).options
        proxy.add(Rule(Fault.FORBIDDEN, kinds=[Kind.LIST], times=None))
        with lakehouse.connect(storage_options=options) as other:
            erased = other.table("events").erase("id = 7")
    assert erased.rows_deleted == 1
    assert [one.remedy for one in erased.residue if "exports" in one.what] == [
        "export again; the store could not be asked now"
    ]
    assert 7 not in lake.table("events").scan().to_arrow()["id"].to_pylist()


def ids(batches: Iterable[Any]) -> list[int]:
    return [one for batch in batches for one in batch["id"].to_pylist()]


@pytest.mark.parametrize("changes", [False, True])
def test_a_follower_that_looked_before_gives_and_keeps_what_the_erasure_left(
    lake: lakehouse.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, changes: bool
) -> None:
    """Commits are looked up before their batches are asked for; the store still has the files of then."""
    monkeypatch.setattr(follow, "BATCH_ROWS", 10)
    with opened(tmp_path, "two") as other:
        batches = other.table("events").follow(since=1, changes=changes, wait_seconds=0)
        first = next(batches).rows["id"].to_pylist()
        gone = min(set(range(30)) - set(first))
        lake.table("events").erase(f"id = {gone}")
        rest = ids(batch.rows for batch in batches)
        assert sorted([*first, *rest]) == [one for one in range(30) if one != gone]
        other.table("events").scan().to_arrow()
        assert left(other) == set()


def test_tasks_that_were_planned_before_leave_no_copy_behind(lake: lakehouse.Lake, tmp_path: Path) -> None:
    """Of a stream and of a read, on a machine that has dropped copies of the erasure before they ran."""
    options = {"table": "events", "cache_dir": str(tmp_path / "worker")}
    source = LakehouseSource(options)
    stream, read = source.streamReader(source.schema()), source.reader(source.schema())
    end = {"version": lake.head, "file": 0}
    of_stream, of_read = stream.partitions({"version": 1, "file": 0}, end), read.partitions()
    with opened(tmp_path, "worker") as worker:
        lake.table("events").erase("id = 7")
        worker.table("events").scan().to_arrow()
        assert sorted(ids(one for part in of_stream for one in stream.read(part))) == [
            one for one in range(30) if one != 7
        ]
        stream.stop()
        assert left(worker) == set()
        for part in of_read:  # which cannot plan again
            assert len(ids(read.read(part))) == 30
        worker.table("events").scan().to_arrow()
        assert left(worker) == set()
