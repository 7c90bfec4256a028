"""Two of every call that keeps a lake in shape, at the same moment: each does its part, or says what was in its way."""

from __future__ import annotations

import threading

import pytest

from lakehouse.admin import export
from lakehouse.catalog.forget import expiry
from lakehouse.storage.exports import EXPORTS
from lakehouse.testing import faults
from lakehouse.testing.faults import Gate
from lakehouse.testing.rows import values
from tests.concurrency.calls import CALLS, DAY, fill

AT_ONCE = 4
ROUNDS = 2


def at_once(handles, call):
    """Call on every handle at one moment; return what each raised."""
    barrier = threading.Barrier(len(handles))
    raised: list[BaseException | None] = [None] * len(handles)

    def work(place):
        barrier.wait()
        try:
            call(handles[place])
        except BaseException as error:  # noqa: BLE001 - the test looks at every one
            raised[place] = error

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(handles))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [error for error in raised if error is not None]


@pytest.mark.parametrize("name", CALLS)
def test_the_same_call_at_once_does_its_part_or_says_what_was_in_its_way(connect, lake, name):
    call, may_say = CALLS[name]
    handles = [connect() for _ in range(AT_ONCE)]
    for turn in range(ROUNDS):
        fill(lake)
        before = values(lake.table("flights"))
        raised = at_once(handles, call)
        assert [error for error in raised if not isinstance(error, may_say)] == []
        assert len(raised) < AT_ONCE or turn > 0
        if name not in ("erase", "restore"):
            assert values(lake.table("flights")) == before
        checked = lake.check()
        assert checked.findings == [], name
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert lake.check().findings == []


def test_an_expiry_that_another_one_overtook_forgets_what_is_left(connect, lake, monkeypatch):
    """It found what is dead, and all of that is gone when its turn comes."""
    monkeypatch.setattr(expiry, "MOST_ENTRIES", 3)
    fill(lake)
    lake.untag("kept")
    lake.table("flights").replace(None, DAY)
    gate, results = Gate(), []
    with faults.armed({"expire.recorded": faults.on_count(1, gate.hold)}):
        slow = threading.Thread(target=lambda: results.append(connect().expire(keep_last=1)))
        slow.start()
        gate.wait_reached()
        fast = lake.expire(keep_last=1)
        gate.open()
        slow.join()
    assert fast.segments > 0
    assert [(one.segments, one.tombstones, one.bytes) for one in results] == [(0, 0, 0)]
    assert lake.check().findings == []


def test_an_expiry_overtaken_between_its_look_and_its_deletions_forgets_nothing_twice(connect, lake, monkeypatch):
    monkeypatch.setattr(expiry, "MOST_ENTRIES", 1)
    fill(lake)
    lake.untag("kept")
    lake.table("flights").replace(None, DAY)
    foreseen, results, other = lake.expire(keep_last=1, dry_run=True), [], connect()
    overtaking = faults.on_count(2, lambda: results.append(other.expire(keep_last=1)))
    with faults.armed({"expire.forgotten": overtaking}):
        results.append(lake.expire(keep_last=1))
    assert len(results) == 2
    assert sum(one.segments for one in results) == foreseen.segments
    assert sum(one.bytes for one in results) == foreseen.bytes
    assert lake.check().findings == []


@pytest.mark.parametrize("name", ["expire", "expire and collect", "everything", "check", "export", "erase"])
def test_other_processes_may_call_it_at_the_same_moment(start, lake, name):
    may_say = {one.__name__ for one in CALLS[name][1]}
    fill(lake)
    for _ in range(2):
        fill(lake)
        children = [start("call", name=name) for _ in range(3)]
        assert [one.hear() for one in children] == [{"ready": True}] * 3
        for one in children:
            one.signal()
        heard = [one.hear() for one in children]
        assert [one for one in heard if one != {"done": True} and one.get("error") not in may_say] == []
    assert lake.check().findings == []


def test_an_export_that_a_newer_one_took_away_at_once_was_done(lake, connect, warehouse, monkeypatch):
    fill(lake)
    prune, other = export.prune_exports, connect()

    def later(*given):
        monkeypatch.setattr(export, "prune_exports", prune)
        other.export(keep=1)
        prune(*given)

    monkeypatch.setattr(export, "prune_exports", later)
    done = lake.export()
    assert (done.version, done.bytes > 0) == (lake.head, True)
    (left,) = (warehouse / EXPORTS).iterdir()
    assert left.name not in done.path
