"""Accidents of other systems, each with what had to happen; docs/accidents.md lists them all."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import time
from datetime import timedelta
from urllib.parse import quote

import numpy
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakehouse
from lakehouse.errors import CatalogUnavailable, CommitUnknown, LakehouseError, StorageUnavailable
from lakehouse.testing import strategies
from lakehouse.testing.rows import SCHEMA, arrow, many, values, visible


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_jumps_neither_reorders_versions_nor_changes_them(connect, table, monkeypatch, hours):
    first = table.append(arrow([("2013-01-05", "a", 0)]))
    genuine = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: genuine() + hours * 3_600_000_000_000)
    there = connect().table("flights")
    second = there.append(arrow([("2013-01-05", "a", 1)]))
    there.replace(arrow([("2013-01-06", "a", 2)]), "2013-01-06", wait_seconds=0)
    monkeypatch.undo()
    third = table.append(arrow([("2013-01-05", "a", 3)]))
    log = table.log()
    assert [one.version for one in log] == sorted((one.version for one in log), reverse=True)
    assert [one.committed_at for one in log] == sorted((one.committed_at for one in log), reverse=True)
    assert len({one.committed_at for one in log}) == len(log) == 4
    assert values(table, as_of=first.committed_at) == [0]
    assert values(table, as_of=second.committed_at) == [0, 1]
    assert values(table, as_of=third.version) == [0, 1, 2, 3]


def test_file_times_mean_nothing_and_a_copied_folder_is_the_same_lake(tmp_path, sqlite_url, warehouse):
    with lakehouse.connect(sqlite_url, str(warehouse)) as lake:
        table = lake.create_table("flights", SCHEMA, time="time")
        commits = [table.append(arrow([("2013-01-05", "a", value)])) for value in range(4)]
        table.replace(arrow([("2013-01-05", "a", 9)]), ("2013-01-05", "2013-01-05T12:00"))
        head = table.version
    copy = tmp_path / "a copy of it"
    copy.mkdir()
    shutil.copy(tmp_path / "catalog.db", copy / "catalog.db")
    shutil.copytree(warehouse, copy / "warehouse", copy_function=shutil.copyfile)
    for path in (copy / "warehouse").rglob("*"):
        os.utime(path, (0, 0))
    with lakehouse.connect(f"sqlite:///{copy}/catalog.db", f"file://{quote(str(copy))}/warehouse/") as lake:
        table = lake.table("flights")
        assert [values(table, as_of=one.committed_at) for one in commits] == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
        assert (table.version, values(table)) == (head, [9])
        table.append(arrow([("2013-01-05", "a", 10)]))
        assert values(table) == [9, 10]
    with lakehouse.connect(sqlite_url, str(warehouse)) as lake:
        assert values(lake.table("flights")) == [9]


def test_a_moved_catalog_finds_its_warehouse_again(tmp_path, sqlite_url, warehouse):
    with lakehouse.connect(sqlite_url, str(warehouse)) as lake:
        lake.create_table("flights", SCHEMA, time="time").append(arrow([("2013-01-05", "a", 1)]))
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (tmp_path / "catalog.db").rename(moved / "catalog.db")
    warehouse.rename(moved / "files")
    with lakehouse.connect(f"sqlite:///{moved}/catalog.db", str(moved / "files")) as lake:
        lake.table("flights").append(arrow([("2013-01-05", "a", 2)]))
        assert values(lake.table("flights")) == [1, 2]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    batches=st.lists(strategies.rows(min_size=1, max_size=5), min_size=1, max_size=4),
    hidden=strategies.intervals(),
    interval=st.none() | strategies.intervals(),
    least=st.integers(-(2**63), 2**63 - 1),
    client=strategies.clients(),
)
def test_a_pruned_read_is_the_unpruned_one_filtered(lake, batches, hidden, interval, least, client):
    table = lake.create_table(f"t_{lake.head}", SCHEMA, time="time", cluster_by=("client",))
    for rows in batches:
        table.append(arrow(rows))
    table.replace(None, hidden)
    every = visible(table)
    quoted = None if client is None else client.replace("'", "\\'")
    same = "client IS NULL" if quoted is None else f"client = '{quoted}'"
    found = visible(table, where=f"value >= {least} AND {same}", interval=interval)
    assert found == [
        row for row in every if row[1] == client and row[2] >= least and (interval is None or interval.contains(row[0]))
    ]


NAMES = ["a b", "100% %20", "ü/ñ", "a=b&c", "NULL"]
VALUES = [*NAMES, "O'Hare", 'say "hi"', "..", "%20", "", None]


@pytest.mark.parametrize("name", NAMES)
def test_names_and_values_with_spaces_and_signs_make_no_duplicates(lake, name):
    schema = pa.schema([("time", SCHEMA.field("time").type), (name, pa.string()), ("value", pa.int64())])
    table = lake.create_table("t", schema, time="time", cluster_by=(name,))
    day = SCHEMA.field("time").type

    def rows(clients, value):
        instants = pa.array([1_357_344_000_000_000] * len(clients), pa.int64()).cast(day)
        return pa.table([instants, pa.array(clients, pa.string()), pa.array([value] * len(clients))], schema=schema)

    for _ in range(2):
        table.append(rows(VALUES, 0), txn=("feed", 1))
    for value, client in enumerate(VALUES, start=1):
        table.replace(rows([client], value), "2013-01-05", keys={name: client})
    table.compact()
    found = table.scan().to_arrow()
    assert sorted(found["value"].to_pylist()) == list(range(1, len(VALUES) + 1))
    assert dict(zip(found["value"].to_pylist(), found[name].to_pylist(), strict=True)) == dict(enumerate(VALUES, 1))


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("kind", ["append", "replace", "compact"])
def test_a_refused_fsync_fails_the_operation_and_the_next_writes_other_files(table, warehouse, monkeypatch, kind, nth):
    for value in range(4):
        table.append(arrow([(f"2013-01-0{5 + value % 2}", "a", value)]))
    before, head = {one.path for one in table.segments()}, table.version
    calls = 0
    genuine = os.fsync

    def failing(handle):
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError(errno.EIO, "Input/output error")
        genuine(handle)

    def work():
        rows = arrow([("2013-01-05", "a", 8), ("2013-01-06", "a", 9)])
        match kind:
            case "append":
                return table.append(rows)
            case "replace":
                return table.replace(rows, ("2013-01-05", "2013-01-07"))
            case "compact":
                return table.compact()

    expected = {"append": [0, 1, 2, 3, 8, 9], "replace": [8, 9], "compact": [0, 1, 2, 3]}[kind]
    monkeypatch.setattr(os, "fsync", failing)
    refused = None
    try:
        work()
    except StorageUnavailable as error:
        refused = error
    monkeypatch.undo()
    if refused is not None:
        assert "begin again" in str(refused)
        assert (values(table), table.version) == ([0, 1, 2, 3], head)
        assert table.locks() == []
        tried = {one.path for one in table.segments()}
        assert tried == before
        work()
    assert (calls >= nth) is (refused is not None)
    assert values(table) == expected
    assert all((warehouse / one.path).is_file() for one in table.segments())
    assert values(table, as_of=head) == [0, 1, 2, 3]


class FullDisk:
    """While it is entered, no file of this process grows beyond a size: as on a disk without room."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __enter__(self) -> None:
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._size, self._before[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


@pytest.mark.parametrize("size", [600_000, 1_000_000, 3_190_000])
def test_a_full_disk_while_rows_are_written_leaves_nothing_and_says_so(table, warehouse, size):
    table.append(arrow([("2013-01-05", "a", -1)]))
    head = table.version
    rows = many(400_000, step_us=1000)
    noise = pa.array(numpy.random.default_rng(1).integers(0, 2**62, 400_000))
    rows = rows.set_column(2, "value", noise)
    with FullDisk(size), pytest.raises(StorageUnavailable, match="cannot be written; check its disk"):
        table.append(rows)
    assert (values(table), table.version) == ([-1], head)
    with FullDisk(size), pytest.raises(StorageUnavailable):
        table.replace(rows, "2013-01-05")
    assert (values(table), table.version) == ([-1], head)
    assert table.locks() == []
    assert [path.name for path in warehouse.rglob("*.parquet")] == [table.segments()[0].path.rpartition("/")[2]]
    table.replace(rows, "2013-01-05", wait_seconds=0)
    assert table.scan().count() == 400_000


@pytest.mark.parametrize("room", [0, 4096, 12_000, 20_000])
def test_a_full_disk_under_the_catalog_commits_wholly_or_not_at_all(sqlite_url, tmp_path, warehouse, room):
    with lakehouse.connect(sqlite_url, str(warehouse)) as lake:
        table = lake.create_table("flights", SCHEMA, time="time")
        other = lake.create_table("other", SCHEMA, time="time")
        for value in range(3):
            table.append(arrow([("2013-01-05", "a", value)]))
        done = [0, 1, 2]
        log = tmp_path / "catalog.db-wal"
        used = max(log.stat().st_size if log.exists() else 0, (tmp_path / "catalog.db").stat().st_size)
        errors = []
        with FullDisk(used + room):
            for value in range(3, 40):
                try:
                    with lake.transaction() as tx:
                        tx.table("flights").append(arrow([("2013-01-05", "a", value)]))
                        tx.table("other").append(arrow([("2013-01-05", "a", value)]))
                except LakehouseError as error:
                    errors.append(error)
                else:
                    done.append(value)
            assert values(table) == done
        assert errors
        assert {type(error) for error in errors} <= {CatalogUnavailable, CommitUnknown}
        assert values(table) == done
        assert values(other) == done[3:]
        table.append(arrow([("2013-01-05", "a", 99)]))
    with lakehouse.connect(sqlite_url, str(warehouse)) as lake:
        assert values(lake.table("flights")) == [*done, 99]
        assert values(lake.table("other")) == done[3:]
        lake.table("flights").replace(None, "2013-01-05", wait_seconds=0)


def test_a_batch_that_was_dropped_and_appended_again_is_visible_under_new_ids(table):
    rows = arrow([("2013-01-05", "a", 1), ("2013-01-05", "b", 2)])
    first = table.append(rows)
    before = {one.id for one in table.segments()}
    table.drop("2013-01-05")
    table.append(rows)
    assert values(table) == [1, 2]
    assert before.isdisjoint(one.id for one in table.segments())
    assert values(table, as_of=first.version) == [1, 2]


def test_a_clock_that_jumps_by_a_day_ends_no_lease(connect, table, monkeypatch):
    """The server's clock counts, or one that goes by the ticks of this host since its boot."""
    holder = table.begin_replace("2013-01-05")
    holder.write(arrow([("2013-01-05", "a", 1)]))
    genuine = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: genuine() + int(timedelta(days=1).total_seconds()) * 10**9)
    there = connect().table("flights")
    with pytest.raises(lakehouse.LakehouseError, match="holds the chunks"):
        there.replace(None, "2013-01-05", wait_seconds=0)
    holder.commit()
    assert values(table) == [1]
