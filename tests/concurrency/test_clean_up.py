"""Clean-up beside everything else: writers lose nothing, readers see whole versions to their end."""

from __future__ import annotations

import threading

import pytest

from lakehouse.lake import Lake
from lakehouse.testing.rows import arrow, values

TURNS = 12


@pytest.mark.timeout(300)
def test_writers_and_readers_do_not_notice_that_versions_are_forgotten_and_files_collected(
    table, lake, connect, warehouse
):
    table.append(arrow([("2013-01-06", "b", -1)]))
    done = threading.Event()
    failures: list[BaseException] = []

    def replace(there):
        for turn in range(TURNS):
            rows = [("2013-01-05", "a", turn), ("2013-01-05T12:00", "a", turn)]
            there.replace(arrow(rows), "2013-01-05", wait_seconds=60)

    def append(there):
        for turn in range(TURNS):
            there.append(arrow([("2013-01-06", "b", turn)]))

    def compact(there):
        while not done.is_set():
            there.compact("2013-01-06")

    def read(there):
        while not done.is_set():
            scan = there.scan()
            scan.plan()
            done.wait(0.05)
            held = sorted(scan.to_arrow()["value"].to_pylist())
            replaced, appended = (there.scan(interval=day, as_of=scan.version) for day in ("2013-01-05", "2013-01-06"))
            assert len(set(values_of(replaced))) <= 1
            assert values_of(appended) == list(range(-1, len(values_of(appended)) - 1))
            assert held == sorted(values_of(replaced) + values_of(appended))

    def clean(there):
        while not done.is_set():
            Lake(there.session).expire(keep_last=1)
            Lake(there.session).collect(grace_seconds=0)

    def run(work):
        try:
            with connect(wait_seconds=60) as there:
                work(there.table("flights"))
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)
            done.set()

    writers = [threading.Thread(target=run, args=(work,)) for work in (replace, append)]
    others = [threading.Thread(target=run, args=(work,)) for work in (read, read, clean, clean, compact)]
    for thread in (*writers, *others):
        thread.start()
    for thread in writers:
        thread.join(200)
    done.set()
    for thread in others:
        thread.join(60)
    assert failures == []
    assert values(table) == sorted([TURNS - 1] * 2 + list(range(-1, TURNS)))
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert lake.check().findings == []
    stored = {path.relative_to(warehouse).as_posix() for path in warehouse.rglob("*") if path.is_file()}
    assert stored == {segment.path for segment in table.segments()}


def values_of(scan):
    return sorted(scan.to_arrow()["value"].to_pylist())
