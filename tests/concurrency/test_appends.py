"""Appends never wait, never fail, and are seen in the order of their versions."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakehouse.testing.rows import arrow, values

THREADS, TURNS = 8, 25


def prefixes(found: list[int], size: int = 1000) -> dict[int, int]:
    """How many values of each writer were seen, asserting that they are its first."""
    by_writer: dict[int, list[int]] = {}
    for value in found:
        by_writer.setdefault(value // size, []).append(value % size)
    for writer, seen in by_writer.items():
        assert seen == list(range(len(seen))), (writer, seen)
    return {writer: len(seen) for writer, seen in by_writer.items()}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("handles", ["shared", "one each"])
def test_eight_threads_append_without_a_failure_and_readers_see_prefixes_only(lake, table, connect, handles):
    start = table.version
    barrier = threading.Barrier(THREADS)
    tables = [table if handles == "shared" else connect().table("flights") for _ in range(THREADS)]

    def write(writer: int) -> list[int]:
        barrier.wait(30)
        return [
            tables[writer].append(arrow([(f"2013-01-{1 + turn % 3:02d}", "a", writer * 1000 + turn)])).version
            for turn in range(TURNS)
        ]

    done = threading.Event()

    def read() -> int:
        there = connect().table("flights")
        counts: dict[int, int] = {}
        reads = 0
        while not done.is_set():
            scan = there.scan(columns=["value"])
            now = prefixes(sorted(scan.to_arrow().column("value").to_pylist()))
            assert sum(now.values()) == scan.plan().version - start
            assert all(now.get(writer, 0) >= count for writer, count in counts.items())
            counts = now
            reads += 1
        return reads

    with ThreadPoolExecutor(THREADS + 1) as pool:
        reader = pool.submit(read)
        try:
            made = [version for versions in pool.map(write, range(THREADS)) for version in versions]
        finally:
            done.set()
        assert reader.result(60) > 0
    assert sorted(made) == list(range(start + 1, start + 1 + THREADS * TURNS))
    assert values(table) == sorted(writer * 1000 + turn for writer in range(THREADS) for turn in range(TURNS))
    assert [commit.version for commit in table.log(THREADS * TURNS)] == sorted(made, reverse=True)


@pytest.mark.timeout(300)
def test_several_processes_write_one_catalog(table, start):
    first = table.version
    children = [start("append", table="flights", time="2013-01-05", value=1000 * index, count=10) for index in range(3)]
    assert all(child.hear() == {"ready": True} for child in children)
    for child in children:
        child.signal()
    here = [table.append(arrow([("2013-01-05", "a", 9000 + turn)])).version for turn in range(10)]
    there = [child.hear()["versions"] for child in children]
    assert [child.end() for child in children] == [0, 0, 0]
    assert sorted([*here, *(version for versions in there for version in versions)]) == list(
        range(first + 1, first + 41)
    )
    assert prefixes(values(table)) == {0: 10, 1: 10, 2: 10, 9: 10}
    assert [segment.ordinal for segment in sorted(table.segments(), key=lambda one: one.ordinal)] == list(
        range(first + 1, first + 41)
    )


@pytest.mark.timeout(300)
def test_appends_to_many_tables_share_one_sequence_of_versions(lake):
    tables = [
        lake.create_table(f"t{index}", "time TIMESTAMP, client STRING, value BIGINT", time="time") for index in range(4)
    ]
    start = lake.head

    def write(index: int) -> list[int]:
        return [tables[index].append(arrow([("2013-01-05", "a", turn)])).version for turn in range(10)]

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(write, range(4)))
    assert sorted(version for versions in made for version in versions) == list(range(start + 1, start + 41))
    for index, versions in enumerate(made):
        assert [commit.version for commit in tables[index].log(10)] == sorted(versions, reverse=True)
        assert values(tables[index], as_of=versions[4]) == [0, 1, 2, 3, 4]
