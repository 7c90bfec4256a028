"""Tombstones and data become visible in one version: no reader ever sees neither or both."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakehouse.testing.rows import SCHEMA, arrow

TURNS = 25


def watch(read, done: threading.Event) -> list:
    """Everything that a reader saw, in order, each state once."""
    seen = []
    while not done.is_set():
        now = read()
        if not seen or seen[-1] != now:
            seen.append(now)
    return seen


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("interval", "keys"),
    [("2013-01-05", None), (("2013-01-05T06:00", "2013-01-05T18:00"), None), ("2013-01-05", {"client": "a"})],
    ids=["a whole chunk", "a part", "a key"],
)
def test_a_reader_sees_before_or_after_a_replace_never_between(table, connect, interval, keys):
    table.append(arrow([("2013-01-05T12:00", "a", 0), ("2013-01-05T13:00", "a", 0)]))
    done = threading.Event()
    there = connect().table("flights")

    def read() -> tuple[int, ...]:
        return tuple(there.scan(columns=["value"]).to_arrow().column("value").to_pylist())

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(watch, read, done) for _ in range(2)]
        try:
            for turn in range(1, TURNS):
                table.replace(
                    arrow([("2013-01-05T12:00", "a", turn), ("2013-01-05T13:00", "a", turn)]), interval, keys=keys
                )
        finally:
            done.set()
        for reader in readers:
            seen = reader.result(30)
            assert all(len(pair) == 2 and pair[0] == pair[1] for pair in seen), seen
            turns = [pair[0] for pair in seen]
            assert turns == sorted(turns)


@pytest.mark.timeout(300)
def test_a_reader_sees_a_compaction_never(table, connect):
    done = threading.Event()
    there = connect().table("flights")
    for turn in range(6):
        table.append(arrow([("2013-01-05", "a", turn)]))
    version = table.version

    def read() -> int:
        return there.scan().count()

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(watch, read, done)
        try:
            for _ in range(10):
                assert table.compact() is not None
                for _ in range(3):
                    table.append(arrow([("2013-01-06", "a", 0)]))
                    table.replace(None, "2013-01-06")
                table.restore(version)
        finally:
            done.set()
        assert set(reader.result(30)) <= {6, 7}


@pytest.mark.timeout(300)
def test_a_reader_of_two_tables_at_one_version_sees_both_or_none(lake, table, connect):
    lake.create_table("lookup", SCHEMA, time="time")
    other = connect()
    done = threading.Event()

    def read() -> tuple:
        head = other.head
        return tuple(
            tuple(other.table(name).scan(columns=["value"], as_of=head).to_arrow().column("value").to_pylist())
            for name in ("flights", "lookup")
        )

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(watch, read, done)
        try:
            for turn in range(TURNS):
                with lake.transaction() as tx:
                    tx.table("flights").replace(arrow([("2013-01-05", "a", turn)]), "2013-01-05")
                    tx.table("lookup").replace(arrow([("2013-01-05", "a", turn)]), "2013-01-05")
        finally:
            done.set()
        assert all(one == two for one, two in reader.result(30))
